//! The material of the codecs: a film with scene changes, a piece of sound, and speech, made of
//! ffmpeg's own sources with fixed seeds. The same version of ffmpeg makes the same files
//! everywhere.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::machine::{Machine, Program};
use crate::media;

/// The film's pictures: H.263's largest, so that a decoder of today has as much to do in 30 ms as
/// the paper's had with 320x240 on a processor of 1 GHz.
pub(super) const WIDTH: usize = 1408;
pub(super) const HEIGHT: usize = 1152;

/// Pictures a second of the film, one that MPEG-1 knows. (Played, it gets the paper's 30 ms for
/// each.)
const RATE: u32 = 30;

const SCENE: u32 = 170;

/// How often the six kinds of scenes come, each time other ones.
const ROUNDS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Material {
    /// The film as MPEG-1, groups of twelve pictures with two B between others.
    Mpeg1,
    /// The film as H.263, an I picture every sixty.
    H263,
    /// Every third picture of that film, uncompressed, for an encoder that takes its time.
    Pictures,
    /// Music and speech: MP3 of variable rate.
    Mp3,
    /// Speech, uncompressed, 8 kHz.
    Speech,
}

impl Material {
    /// Its file (of [`Material::Pictures`], the film they are from): made now unless it was made
    /// before.
    pub(super) fn file(self, machine: &Machine) -> anyhow::Result<PathBuf> {
        let (name, graph, options): (_, _, &[&str]) = match self {
            Self::Mpeg1 => (
                "demands-4-film-mpeg1.avi",
                film(12),
                &["-c:v", "mpeg1video", "-q:v", "5", "-bf", "2", "-g", "12"],
            ),
            Self::H263 | Self::Pictures => (
                "demands-4-film-h263.avi",
                film(4),
                &["-c:v", "h263", "-q:v", "5", "-g", "60"],
            ),
            Self::Mp3 => (
                "demands-4-sound.mp3",
                sound(),
                &["-c:a", "libmp3lame", "-q:a", "4"],
            ),
            Self::Speech => (
                "demands-4-speech.raw",
                format!("{}[all]", speech(8000, "mono")),
                &["-f", "s16le"],
            ),
        };
        let inputs = ["-filter_complex", &graph, "-map", "[all]"];
        let all = [&inputs, ["-threads", "1", "-bitexact"].as_slice(), options];
        media::made(machine, name, &all.concat())
    }

    /// The input of a program that is held to its pace by it.
    pub(super) fn open(self, machine: &Machine, file: &Path) -> anyhow::Result<Source> {
        if self != Self::Pictures {
            let opened =
                File::open(file).with_context(|| format!("cannot read {}", file.display()));
            return Ok(Source {
                bytes: Box::new(opened?),
                _player: None,
            });
        }
        let mut command = Command::new("ffmpeg");
        command
            .args(["-loglevel", "error", "-nostdin", "-threads", "1", "-i"])
            .arg(file)
            .args(["-r", "10", "-f", "rawvideo", "-"])
            .stdout(Stdio::piped());
        let mut player = Program::start(command, &machine.file("demands-source.stderr"))?;
        let Some(pictures) = player.take_output() else {
            bail!("the output of the film's decoder is no pipe");
        };
        Ok(Source {
            bytes: Box::new(pictures),
            _player: Some(player),
        })
    }
}

pub(super) struct Source {
    bytes: Box<dyn Read>,
    /// Ends with the source.
    _player: Option<Program>,
}

impl Source {
    pub(super) fn next(&mut self, length: usize) -> anyhow::Result<Vec<u8>> {
        let mut job = vec![0; length];
        let read = self.bytes.read_exact(&mut job);
        read.context("the material is too short for that many jobs")?;
        Ok(job)
    }
}

/// 18 scenes of 170 pictures each: six kinds, three times; all with the grain of a film, which
/// makes them the more alike the coarser it is.
fn film(grain: u32) -> String {
    let full = format!("size={WIDTH}x{HEIGHT}:rate={RATE}");
    // Slow sources are made small and enlarged.
    let half = format!("size={}x{}:rate={RATE}", WIDTH / 2, HEIGHT / 2);
    let quarter = format!("size={}x{}:rate={RATE}", WIDTH / 4, HEIGHT / 4);
    let first = format!("trim=end_frame={SCENE}");
    let mut scenes = String::new();
    let mut names = String::new();
    for round in 0..ROUNDS {
        let seed = 7 + round;
        let (from, to) = (600 * round, 600 * round + SCENE);
        let rule = [18, 110, 30].get(round as usize).copied().unwrap_or(18);
        let turned = format!("trim=start_frame={from}:end_frame={to}");
        let kinds = [
            format!("testsrc2={full},{turned}"),
            format!(
                "mandelbrot={half}:start_scale={}:end_scale=0.001:end_pts=400,{first}",
                3 - round
            ),
            format!("gradients={full}:seed={seed}:speed=0.02,{first}"),
            format!(
                "life={quarter}:seed={seed}:mold=10:ratio=0.1:death_color=#405060:life_color=#90b090,{first}"
            ),
            format!("testsrc2={full},{turned},hflip,hue=s=0.5"),
            format!("cellauto={half}:seed={seed}:rule={rule},{first},eq=contrast=0.2"),
        ];
        for (kind, source) in kinds.iter().enumerate() {
            let name = format!("[scene{round}{kind}]");
            scenes += &format!(
                "{source},setpts=PTS-STARTPTS,format=yuv420p,scale={WIDTH}:{HEIGHT},setsar=1{name};"
            );
            names += &name;
        }
    }
    let all = 6 * ROUNDS;
    format!("{scenes}{names}concat=n={all},noise=alls={grain}:allf=t[all]")
}

/// Music: two voices, a chord whose root changes twice a second, drums, and now and then speech.
fn sound() -> String {
    let root = "(220*pow(2,mod(floor(2*t)*5,12)/12))";
    let voice = |of_root: f64| format!("0.15*sin(2*PI*{of_root}*{root}*t)");
    let chord = format!("{}+{}", voice(1.0), voice(1.5));
    let melody = format!("{}*(1-mod(4*t,1))", voice(3.0));
    format!(
        "aevalsrc='{chord}+{melody}|{chord}':sample_rate=44100[music];\
         anoisesrc=color=white:seed=7:sample_rate=44100:amplitude=0.3,\
         volume='exp(-12*mod(t,0.5))':eval=frame[drums];\
         {}[said];\
         [music][drums][said]amix=inputs=3,atrim=duration=32[all]",
        speech(44100, "stereo")
    )
}

const TEXT: &str = "A scheduler decides who runs and for how long. A film needs a picture every thirty milliseconds \
                    and does not care how early it is ready. Speech comes in frames of twenty milliseconds. Most of \
                    them are alike, some are silent, and hardly any takes twice as long as another. Whoever plans for the \
                    longest wastes what the others leave.";

/// The text by several voices, one after the other.
fn speech(rate: u32, channels: &str) -> String {
    let mut text = String::new();
    let mut names = String::new();
    let voices = ["slt", "kal16", "awb", "rms"];
    for voice in voices {
        text += &format!(
            "flite=voice={voice}:text='{TEXT}',\
             aformat=sample_fmts=s16:sample_rates={rate}:channel_layouts={channels}[{voice}];"
        );
        names += &format!("[{voice}]");
    }
    format!("{text}{names}concat=n={}:v=0:a=1", voices.len())
}
