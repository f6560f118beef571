//! A film, and mplayer, which prints after each frame how far sound and picture are apart.
//!
//! Its status line reads `A:  9.7 V:  9.7 A-V:  0.002 ct: -0.012 ...`: the position of the sound,
//! of the picture, and the difference, in seconds. Without `-framedrop` it shows every frame,
//! however late, and prints one line for each.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::machine::{Machine, Program};
use crate::statistics::quantile;

/// The name tells what is inside, so that a film made otherwise is never taken for it.
const NAME: &str = "film-1080p25-h264-16M-grain20";

/// A film made of ffmpeg's own sources: 1920x1080, 25 frames a second, H.264 with AAC sound, as in
/// LFS++, section 7.1; with film grain, so that decoding it takes as long as a real film's.
pub(crate) fn film(machine: &Machine, seconds: u64) -> anyhow::Result<PathBuf> {
    let picture = "testsrc2=size=1920x1080:rate=25,noise=alls=20:allf=t";
    let sound = "sine=frequency=440:sample_rate=48000";
    let length = seconds.to_string();
    let options = [
        &["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound][..],
        &["-t", length.as_str(), "-pix_fmt", "yuv420p"],
        &["-c:v", "libx264", "-preset", "superfast", "-b:v", "16M"],
        &["-c:a", "aac"],
    ];
    made(
        machine,
        &format!("{NAME}-{seconds}s.mkv"),
        &options.concat(),
    )
}

/// The file that ffmpeg makes with these options, from the cache if one of that name was made
/// before.
pub(crate) fn made(machine: &Machine, name: &str, options: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = cache();
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(name);
    if !path.is_file() {
        println!("making {name}, once; it is kept in {}", folder.display());
        let unfinished = folder.join(format!("unfinished-{name}"));
        make(machine, &unfinished, options)?;
        fs::rename(&unfinished, &path).with_context(|| format!("cannot name {name}"))?;
    }
    Ok(path)
}

fn cache() -> PathBuf {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    of("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(of("HOME")?).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("onbeat")
}

fn make(machine: &Machine, path: &Path, options: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("ffmpeg");
    command
        .args(["-hide_banner", "-loglevel", "error", "-nostdin", "-y"])
        .args(options)
        .arg(path)
        .stdout(Stdio::null());
    let messages = machine.file("film.stderr");
    if !machine.run(command, &messages, Duration::from_secs(3600))? {
        bail!(
            "ffmpeg made no {}: its messages are in {}",
            path.display(),
            messages.display()
        );
    }
    Ok(())
}

/// A busy machine may take that long to show the first frame.
const FIRST_FRAME: Duration = Duration::from_secs(60);

pub(crate) struct Frame {
    /// When, in seconds since the first one.
    pub(crate) at_s: f64,
    /// How far the sound was ahead of the picture, in seconds.
    pub(crate) desync_s: f64,
}

#[derive(Default)]
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
}
