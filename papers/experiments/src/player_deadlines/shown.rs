//! How much what was shown differs from what should have been: the root mean square error of
//! section 8.3 of the paper, "Quality of Experience".
//!
//! In place of a dropped frame the screen still has the last one that was shown. The errors of all
//! frames are added up; a frame that was shown adds nothing. As the paper's figures exceed what
//! eight bits a colour can give, its unit is taken to be that of 16 bits a colour, which
//! ImageMagick uses.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::film::{FRAMES, SIZE};
use crate::machine::{Machine, Program};

type Picture = Vec<u8>;

/// From eight bits a colour to 16.
const SCALE: f64 = 257.0;

/// The sum of the errors in each of several playings, of which each says of every frame, in the
/// order of presentation, whether it was shown.
pub(crate) fn errors(
    machine: &Machine,
    film: &Path,
    playings: &[&[bool]],
) -> anyhow::Result<Vec<f64>> {
    let mut command = Command::new("ffmpeg");
    command
        .args(["-hide_banner", "-loglevel", "error", "-nostdin", "-i"])
        .arg(film)
        .args(["-an", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"])
        .stdout(Stdio::piped());
    let mut ffmpeg = Program::start(command, &machine.file("player-deadlines.stderr"))?;
    let Some(mut pictures) = ffmpeg.take_output() else {
        bail!("ffmpeg's output is no pipe");
    };
    let mut screens: Vec<Screen> = playings.iter().map(|_| Screen::default()).collect();
    let mut picture: Picture = vec![0; SIZE.0 * SIZE.1 * 3];
    for frame in 0..FRAMES {
        machine.go_on()?;
        pictures
            .read_exact(&mut picture)
            .context("ffmpeg did not decode the whole film")?;
        for (screen, playing) in screens.iter_mut().zip(playings) {
            screen.is_due(&picture, playing.get(frame).copied().unwrap_or(false));
        }
    }
    Ok(screens.into_iter().map(|screen| screen.error).collect())
}

/// The viewer's picture, and the errors until now. Black before the first picture.
#[derive(Default)]
struct Screen {
    last: Picture,
    error: f64,
}

impl Screen {
    fn is_due(&mut self, picture: &[u8], shown: bool) {
        if shown {
            self.last.clear();
            self.last.extend_from_slice(picture);
        } else {
            self.last.resize(picture.len(), 0);
            self.error += root_mean_square(picture, &self.last);
        }
    }
}

/// The mean over the three colours of the root of the mean square difference.
fn root_mean_square(wanted: &[u8], seen: &[u8]) -> f64 {
    let mut squares = [0.0_f64; 3];
    for (wanted, seen) in wanted.chunks_exact(3).zip(seen.chunks_exact(3)) {
        for ((square, wanted), seen) in squares.iter_mut().zip(wanted).zip(seen) {
            *square += (f64::from(*wanted) - f64::from(*seen)).powi(2);
        }
    }
    let pixels = (wanted.len() / 3).max(1) as f64;
    let roots: f64 = squares.iter().map(|square| (square / pixels).sqrt()).sum();
    roots / 3.0 * SCALE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_place_of_a_dropped_frame_the_last_shown_one_is_seen_or_black() {
        let mut screen = Screen::default();
        for (picture, shown) in [(2, false), (9, true), (10, false), (12, false)] {
            screen.is_due(&[picture; 3], shown);
        }
        assert_eq!(screen.error, (2.0 + 1.0 + 3.0) * SCALE);
    }
}
