//! The programs: how each is started, and from what is known what it did.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A program.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TestedProgram {
    /// mplayer, a film of 1080p25 on an X display.
    Mplayer,
    /// mpv, the same film.
    Mpv,
    /// mpv, drawing with OpenGL, which llvmpipe computes.
    MpvGl,
    /// gst-launch-1.0, the same film.
    Gst,
    /// Chromium, headless, a page that draws a canvas at each animation frame.
    Chromium,
    /// Chocolate Doom playing a demo of Freedoom's, 35 frames a second.
    Doom,
    /// ffmpeg grabbing a display 30 times a second and encoding it.
    Grab,
    /// PipeWire with a player of sound.
    PwCat,
    /// jackd with the dummy driver and two clients.
    Jack,
    /// cyclictest with two threads, each bound to a CPU.
    CyclicPinned,
    /// The same, not bound.
    CyclicFree,
    /// A control loop in Python that sleeps relative times.
    Loop,
    /// ffmpeg transcoding a film as fast as it can: a batch program.
    Transcode,
    /// A C++ compiler, again and again: a batch program.
    Gcc,
    /// sort, of a big file: a batch program.
    Sort,
}

/// From what it is known what a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// The display server's frames.
    Display,
    /// The page's own count.
    Page,
    /// The frames that ffmpeg says it has encoded.
    Progress,
    /// PipeWire's profile.
    Pipewire,
    /// The xruns that jackd tells of.
    Xruns,
    /// cyclictest's histogram.
    Histogram,
    /// The jobs that the program writes down itself.
    Jobs,
    /// Its CPU time alone: a batch program.
    Nothing,
}

/// A job of the control loop: 2 ms of work each 10 ms. In time: done before the next is due.
const LOOP: &str = "
import sys, time
seconds, told = float(sys.argv[1]), sys.argv[2]
began = time.monotonic()
jobs = []
while True:
    due = time.monotonic()
    if due - began > seconds: break
    x = 0
    while x < 12000: x += 1
    time.sleep(0.009)
    jobs.append(time.monotonic() - due)
open(told, 'w').write(' '.join('%.6f' % job for job in jobs))
";

/// The surroundings of a program.
pub(super) struct Around<'a> {
    /// The X display.
    pub(super) display: &'a str,
    /// The film.
    pub(super) film: &'a Path,
    /// For how long it runs.
    pub(super) time: Duration,
    /// Where it may write what it did.
    pub(super) told: &'a Path,
    /// A folder of its own, empty.
    pub(super) folder: &'a Path,
    /// Where the page is.
    pub(super) page: &'a str,
    /// Whether it may ask for real-time priority itself.
    pub(super) realtime: bool,
}

impl TestedProgram {
    /// In the tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mplayer => "mplayer, 1080p25",
            Self::Mpv => "mpv --vo=x11, 1080p25",
            Self::MpvGl => "mpv --vo=gpu on llvmpipe, 720p25",
            Self::Gst => "gst-launch-1.0 to ximagesink, 1080p25",
            Self::Chromium => "chromium, animation frames",
            Self::Doom => "chocolate-doom, 35 Hz",
            Self::Grab => "ffmpeg x11grab 30/s, x264 ultrafast",
            Self::PwCat => "PipeWire and pw-cat, cycles in time",
            Self::Jack => "jackd and two clients, cycles in time",
            Self::CyclicPinned => "cyclictest, 2 x 4 ms, pinned",
            Self::CyclicFree => "cyclictest, 2 x 4 ms, free",
            Self::Loop => "Python loop, 10 ms",
            Self::Transcode => "ffmpeg transcode (batch)",
            Self::Gcc => "g++ (batch)",
            Self::Sort => "sort (batch)",
        }
    }

    /// It has no deadlines: what counts is what it leaves to others.
    pub(super) const fn is_batch(self) -> bool {
        matches!(self, Self::Transcode | Self::Gcc | Self::Sort)
    }

    /// The commands that it needs.
    pub(super) const fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Mplayer => &["mplayer"],
            Self::Mpv | Self::MpvGl => &["mpv"],
            Self::Gst => &["gst-launch-1.0"],
            Self::Chromium => &["chromium"],
            Self::Doom => &["chocolate-doom"],
            Self::Grab => &["ffmpeg", "mplayer"],
            Self::PwCat => &["pipewire", "pw-cat", "wireplumber", "dbus-run-session"],
            Self::Jack => &["jackd", "jack_metro"],
            Self::CyclicPinned | Self::CyclicFree => &["cyclictest"],
            Self::Loop => &["python3"],
            Self::Transcode => &["ffmpeg"],
            Self::Gcc => &["g++"],
            Self::Sort => &["sort"],
        }
    }

    /// From what it is known what it did.
    pub(super) const fn measure(self) -> Measure {
        match self {
            Self::Mplayer | Self::Mpv | Self::MpvGl | Self::Gst | Self::Doom => Measure::Display,
            Self::Chromium => Measure::Page,
            Self::Grab | Self::Transcode => Measure::Progress,
            Self::PwCat => Measure::Pipewire,
            Self::Jack => Measure::Xruns,
            Self::CyclicPinned | Self::CyclicFree => Measure::Histogram,
            Self::Loop => Measure::Jobs,
            Self::Gcc | Self::Sort => Measure::Nothing,
        }
    }

    /// Runtime and period in microseconds that a person would find out for a program of one thread:
    /// half as much again as it takes.
    pub(super) const fn by_hand(self) -> Option<(u64, u64)> {
        match self {
            Self::Mplayer => Some((33_000, 40_000)),
            Self::Doom => Some((10_000, 28_571)),
            Self::Loop => Some((3000, 10_000)),
            _ => None,
        }
    }

    /// Whether it asks for real-time priority by itself.
    pub(super) const fn asks_for_realtime(self) -> bool {
        matches!(self, Self::PwCat | Self::Jack)
    }

    /// The frames or jobs of a second where nothing hinders it.
    pub(super) const fn rate(self) -> Option<f64> {
        match self {
            Self::Jack => Some(48_000.0 / 512.0),
            Self::CyclicPinned | Self::CyclicFree => Some(2.0 * 250.0),
            _ => None,
        }
    }

    /// The size of what it shows.
    pub(super) const fn frame_pixels(self) -> u64 {
        match self {
            Self::MpvGl => 1280 * 720,
            Self::Doom => 1280 * 960,
            _ => 1920 * 1080,
        }
    }

    /// It ends by itself, and tells what it did at its end.
    pub(super) const fn ends_by_itself(self) -> bool {
        matches!(self, Self::CyclicPinned | Self::CyclicFree | Self::Loop)
    }

    /// How it is started, on its own.
    pub(super) fn command(self, around: &Around<'_>) -> Command {
        let mut command = match self {
            Self::Mplayer => {
                let mut command = Command::new("mplayer");
                command.args(crate::media::arguments(around.film));
                command
            }
            Self::Mpv | Self::MpvGl => {
                let mut command = Command::new("mpv");
                command.args(["--no-config", "--ao=null", "--really-quiet", "--loop=inf"]);
                command.args(if self == Self::Mpv {
                    &["--vo=x11"][..]
                } else {
                    // As much as two CPUs can compute 25 times a second.
                    &[
                        "--vo=gpu",
                        "--gpu-sw",
                        "--gpu-context=x11egl",
                        "--geometry=1280x720",
                        "--scale=bilinear",
                        "--cscale=bilinear",
                        "--dscale=bilinear",
                        "--dither=no",
                    ]
                });
                command.arg(around.film);
                command
            }
            Self::Gst => {
                let mut command = Command::new("gst-launch-1.0");
                command.args(["-q", "filesrc"]);
                command.arg(format!("location={}", around.film.display()));
                let rest = "! matroskademux ! h264parse ! avdec_h264 ! videoconvert ! ximagesink";
                command.args(rest.split(' '));
                command
            }
            Self::Chromium => {
                let mut command = Command::new("chromium");
                command
                    .args("--headless --no-sandbox --disable-gpu --disable-quic".split(' '))
                    .args("--no-first-run --disable-background-networking".split(' '))
                    .args("--disable-component-update --disable-sync".split(' '))
                    .arg(format!("--user-data-dir={}", around.folder.display()))
                    .arg(around.page);
                command
            }
            Self::Doom => {
                let mut command = Command::new("/usr/games/chocolate-doom");
                command
                    .args("-iwad /usr/share/games/doom/freedoom1.wad -nosound -window".split(' '))
                    .args("-geometry 1280x960 -playdemo demo1 -nograb -config".split(' '))
                    .arg(around.folder.join("default.cfg"))
                    .arg("-extraconfig")
                    .arg(around.folder.join("extra.cfg"))
                    .env("SDL_RENDER_DRIVER", "software")
                    .env("HOME", around.folder);
                command
            }
            Self::Grab => {
                let mut command = Command::new("ffmpeg");
                command
                    .args("-nostdin -loglevel error -y -f x11grab -framerate 30".split(' '))
                    .args(["-video_size", "1920x1080", "-i", around.display])
                    .args(
                        "-c:v libx264 -preset ultrafast -f null -stats_period 0.03 -progress"
                            .split(' '),
                    )
                    .arg(around.told)
                    .arg("-");
                command
            }
            Self::PwCat => Command::new("pw-cat"),
            Self::Jack => {
                let how = if around.realtime { "-R -P 10" } else { "-r" };
                // jackd has a session of its own, which the end of a process group does not reach.
                let script = format!(
                    "jackd -n onbeat{} {how} -d dummy -r 48000 -p 512 2>&1 &\n\
                     trap \"kill $!\" TERM INT EXIT\n\
                     jack_wait -s onbeat{0} -w -t 10 >/dev/null\n\
                     JACK_DEFAULT_SERVER=onbeat{0}; export JACK_DEFAULT_SERVER\n\
                     jack_metro -b 120 >/dev/null & jack_simple_client c onbeat{0} >/dev/null &\n\
                     wait",
                    std::process::id()
                );
                let mut command = Command::new("sh");
                command.arg("-c").arg(script);
                command.env("JACK_NO_AUDIO_RESERVATION", "1");
                command
            }
            Self::CyclicPinned | Self::CyclicFree => {
                let mut command = Command::new("cyclictest");
                command
                    .args("--policy=other -t 2 -i 4000 -q -h 4000".split(' '))
                    .arg(format!("--histfile={}", around.told.display()))
                    .arg("-D")
                    .arg(around.time.as_secs().to_string());
                if self == Self::CyclicPinned {
                    command.arg("-a");
                }
                command
            }
            Self::Loop => {
                let mut command = Command::new("python3");
                let seconds = around.time.as_secs_f64().to_string();
                command.args(["-c", LOOP, &seconds]).arg(around.told);
                command
            }
            Self::Transcode => {
                let mut command = Command::new("ffmpeg");
                command
                    .args("-nostdin -loglevel error -y -stream_loop -1 -i".split(' '))
                    .arg(around.film)
                    .args("-c:v libx264 -preset medium -f null".split(' '))
                    .args("-stats_period 0.03 -progress".split(' '))
                    .arg(around.told)
                    .arg("-");
                command
            }
            Self::Gcc => {
                let source =
                    "#include <regex>\n#include <map>\n#include <iostream>\nint main() {}\n";
                let script = format!(
                    "while :; do printf '%s' '{source}' | g++ -O2 -x c++ -c -o /dev/null -; done"
                );
                let mut command = Command::new("sh");
                command.arg("-c").arg(script);
                command
            }
            Self::Sort => {
                let script = "seq 1 3000000 | shuf >lines; while :; do sort lines >sorted; done";
                let mut command = Command::new("sh");
                command.arg("-c").arg(script).current_dir(around.folder);
                command
            }
        };
        command.env("DISPLAY", around.display).stdout(Stdio::null());
        command
    }
}
