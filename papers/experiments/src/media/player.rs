//! mplayer, and what it prints after each frame: how far sound and picture are apart.
//!
//! Its status line reads `A:  9.7 V:  9.7 A-V:  0.002 ct: -0.012 ...`: the position of the sound,
//! of the picture, and the difference, in seconds. Without `-framedrop` it shows every frame,
//! however late, and prints one line for each.

use std::io::Read;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::bail;
use serde::Serialize;

use crate::machine::{Machine, Program};
use crate::results::quantile;

/// A busy machine may take that long to show the first frame.
const FIRST_FRAME: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Frame {
    /// When, in seconds since the first one.
    pub(crate) at_s: f64,
    /// How far the sound was ahead of the picture, in seconds.
    pub(crate) desync_s: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Played {
    pub(crate) frames: Vec<Frame>,
}

impl Played {
    /// The absolute desynchronisation that the fraction `p` of the frames stays within.
    pub(crate) fn desync(&self, p: f64) -> f64 {
        let absolute: Vec<f64> = self.frames.iter().map(|f| f.desync_s.abs()).collect();
        quantile(&absolute, p)
    }
}

/// The arguments that make mplayer play `film` on a display without sound card, keyboard or remote
/// control, telling about every frame.
fn arguments(film: &Path) -> Vec<std::ffi::OsString> {
    let options = "-vo x11 -ao null -nolirc -noautosub -noconsolecontrols -nojoystick".split(' ');
    options.map(Into::into).chain([film.into()]).collect()
}

/// Plays `film` with `command` (mplayer, or something that starts it, without its arguments) and
/// watches for `time` from the first frame on; then ends it.
pub(crate) fn play(
    machine: &Machine,
    mut command: Command,
    film: &Path,
    display: &str,
    time: Duration,
    messages: &Path,
) -> anyhow::Result<Played> {
    command
        .args(arguments(film))
        .env("DISPLAY", display)
        .stdout(Stdio::piped());
    let mut player = Program::start(command, messages)?;
    let Some(output) = player.take_output() else {
        bail!("the player's output is no pipe");
    };
    let lines = status_lines(output);
    let mut played = Played::default();
    let mut first = None;
    let give_up = Instant::now() + FIRST_FRAME;
    loop {
        machine.go_on()?;
        match lines.recv_timeout(Duration::from_millis(50)) {
            Ok((at, desync_s)) => {
                let since = at.duration_since(*first.get_or_insert(at));
                if since > time {
                    break;
                }
                let at_s = since.as_secs_f64();
                played.frames.push(Frame { at_s, desync_s });
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if first.is_none() && Instant::now() > give_up {
            break;
        }
        if first.is_some_and(|first| first.elapsed() > time + Duration::from_secs(1)) {
            break;
        }
    }
    player.end();
    if played.frames.is_empty() {
        bail!(
            "the player showed no frame: its messages are in {}",
            messages.display()
        );
    }
    Ok(played)
}

/// The desynchronisation in each status line, with the time at which the line came; the channel
/// closes with the output.
fn status_lines(mut output: ChildStdout) -> Receiver<(Instant, f64)> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            let at = Instant::now();
            rest.extend(buffer.iter().take(count));
            while let Some(end) = rest.iter().position(|b| matches!(b, b'\r' | b'\n')) {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let desync = desync_in(&String::from_utf8_lossy(&line));
                // The receiver is gone once the time is over; the output must still be read, or the
                // player would wait for it instead of ending.
                let _ = desync.map(|desync| sender.send((at, desync)));
            }
        }
    });
    receiver
}

fn desync_in(line: &str) -> Option<f64> {
    let (_, after) = line.split_once("A-V:")?;
    after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_desynchronisation_is_read_from_mplayers_status_line() {
        let line = "A:   9.7 V:   9.7 A-V: -0.012 ct: -0.012   0/  0  8% 26%  0.4% 0 0 \x1b[J\r";
        assert_eq!(desync_in(line), Some(-0.012));
        let late = "A:  20.4 V:  19.0 A-V:  1.466 ct: -0.002   0/  0  9% 91%";
        assert_eq!(desync_in(late), Some(1.466));
        assert_eq!(desync_in("Starting playback..."), None);
        assert_eq!(desync_in("A: 1.0 V: 1.0 A-V:"), None);
    }

    #[test]
    fn the_desynchronisation_counts_in_both_directions() {
        let frames = [0.01, -0.3, 0.02, 0.0]
            .map(|desync_s| Frame {
                at_s: 0.0,
                desync_s,
            })
            .to_vec();
        let played = Played { frames };
        assert_eq!(played.desync(1.0), 0.3);
        assert_eq!(played.desync(0.5), 0.01);
    }
}
