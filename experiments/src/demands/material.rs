//! What the codecs work on: a film with scene changes, a piece of sound, and speech, made of ffmpeg's own sources
//! with fixed seeds. The same version of ffmpeg makes the same files everywhere.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::machine::{Machine, Program};
use crate::media;

/// The film's pictures: H.263's largest, so that a decoder of today has as much to do in 30 ms as the paper's had
/// with 320x240 on a processor of 1 GHz.
pub(super) const WIDTH: usize = 1408;
/// Their height.
pub(super) const HEIGHT: usize = 1152;

/// Pictures a second of the film, one that MPEG-1 knows. (Played, it gets the paper's 30 ms for each.)
const RATE: u32 = 30;

/// Pictures in each scene.
const SCENE: u32 = 170;

/// How often the six kinds of scenes come, each time other ones.
const ROUNDS: u32 = 3;

/// One of the files, or what is made of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Material {
    /// The film as MPEG-1, groups of twelve pictures with two B between others.
    Mpeg1,
    /// The film as H.263, an I picture every sixty.
    H263,
    /// Every third picture of the film, uncompressed, for an encoder that takes its time.
    Pictures,
    /// Tones, chords, noise, speech, silence, drums: MP3 of variable rate.
    Mp3,
    /// Speech, uncompressed, 8 kHz.
    Speech,
}

impl Material {
    /// Its file (of [`Material::Pictures`], the film they are from): made now unless it was made before.
    pub(super) fn file(self, machine: &Machine) -> anyhow::Result<PathBuf> {
        let (name, graph, options): (_, _, &[&str]) = match self {
            Self::Mpeg1 | Self::Pictures => (
                "demands-2-film-mpeg1.avi",
                film(),
                &["-c:v", "mpeg1video", "-q:v", "5", "-bf", "2", "-g", "12"],
            ),
            Self::H263 => (
                "demands-2-film-h263.avi",
                film(),
                &["-c:v", "h263", "-q:v", "5", "-g", "60", "-frames:v", "1060"],
            ),
            Self::Mp3 => (
                "demands-2-sound.mp3",
                sound(),
                &["-c:a", "libmp3lame", "-q:a", "4"],
            ),
            Self::Speech => (
                "demands-2-speech.raw",
                speech(8000, "mono"),
                &["-f", "s16le"],
            ),
        };
        let inputs = ["-filter_complex", &graph, "-map", "[all]"];
        let all = [&inputs, ["-threads", "1", "-bitexact"].as_slice(), options];
        media::made(machine, name, &all.concat())
    }

    /// What a program reads that is held to its pace by its input.
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

/// Bytes for a program's input.
pub(super) struct Source {
    bytes: Box<dyn Read>,
    /// Ends with the source.
    _player: Option<Program>,
}

impl Source {
    /// The next job's input.
    pub(super) fn next(&mut self, length: usize) -> anyhow::Result<Vec<u8>> {
        let mut job = vec![0; length];
        let read = self.bytes.read_exact(&mut job);
        read.context("the material is too short for that many jobs")?;
        Ok(job)
    }
}

/// 18 scenes of 170 pictures each: six kinds, three times.
fn film() -> String {
    let full = format!("size={WIDTH}x{HEIGHT}:rate={RATE}");
    // Slow sources are made small and enlarged.
    let half = format!("size={}x{}:rate={RATE}", WIDTH / 2, HEIGHT / 2);
    let quarter = format!("size={}x{}:rate={RATE}", WIDTH / 4, HEIGHT / 4);
    let mut scenes = String::new();
    let mut names = String::new();
    for round in 0..ROUNDS {
        let seed = 7 + round;
        let (from, to) = (600 * round, 600 * round + SCENE);
        let first = format!("trim=end_frame={SCENE}");
        let noise = 4 * (round + 1);
        let rule = [18, 110, 30].get(round as usize).copied().unwrap_or(18);
        let kinds = [
            format!("testsrc2={full},trim=start_frame={from}:end_frame={to}"),
            format!(
                "mandelbrot={half}:start_scale={}:end_scale=0.001:end_pts=400,{first}",
                3 - round
            ),
            format!("gradients={full}:seed={seed}:speed=0.02,{first}"),
            format!(
                "life={quarter}:seed={seed}:mold=10:ratio=0.1:death_color=#203040:life_color=#c0ffc0,{first}"
            ),
            format!(
                "testsrc2={full},trim=start_frame={from}:end_frame={to},noise=alls={noise}:allf=t"
            ),
            format!("cellauto={half}:seed={seed}:rule={rule},{first}"),
        ];
        for (kind, source) in kinds.iter().enumerate() {
            let name = format!("[scene{round}{kind}]");
            scenes += &format!(
                "{source},setpts=PTS-STARTPTS,format=yuv420p,scale={WIDTH}:{HEIGHT},setsar=1{name};"
            );
            names += &name;
        }
    }
    format!("{scenes}{names}concat=n={}[all]", 6 * ROUNDS)
}

/// Seven pieces of eight seconds, a frame of which is 26 ms: 2140 frames.
fn sound() -> String {
    let shape = "aformat=sample_fmts=fltp:sample_rates=44100:channel_layouts=stereo";
    let formula = |left: &str, right: &str| format!("aevalsrc='{left}|{right}':sample_rate=44100");
    let noise =
        |colour: &str| format!("anoisesrc=color={colour}:seed=7:sample_rate=44100:amplitude=0.3");
    let chord = "0.2*sin(2*PI*262*t+3*sin(2*PI*5*t))+0.2*sin(2*PI*330*t)+0.2*sin(2*PI*392*t)";
    let pieces = [
        formula("0.4*sin(2*PI*440*t)", "0.4*sin(2*PI*660*t)"),
        formula(chord, chord),
        noise("pink"),
        format!(
            "{}[spoken];[spoken]anull",
            speech_in(44100, "stereo", "spoken")
        ),
        formula(
            "0.4*sin(2*PI*(50*t+500*t*t))",
            "0.4*sin(2*PI*(9000*t-500*t*t))",
        ),
        "anullsrc=sample_rate=44100".to_owned(),
        format!("{},volume='exp(-12*mod(t,0.5))':eval=frame", noise("white")),
    ];
    let mut text = String::new();
    let mut names = String::new();
    for (n, piece) in pieces.iter().enumerate() {
        text += &format!("{piece},{shape},atrim=duration=8,asetpts=PTS-STARTPTS[piece{n}];");
        names += &format!("[piece{n}]");
    }
    format!("{text}{names}concat=n={}:v=0:a=1[all]", pieces.len())
}

/// What is read out.
const TEXT: &str = "A scheduler decides who runs and for how long. A film needs a picture every thirty milliseconds \
                    and does not care how early it is ready. Speech comes in frames of twenty milliseconds. Most of \
                    them are alike, some are silent, and hardly any takes twice as long as another. Whoever plans for the \
                    longest wastes what the others leave.";

/// The text by several voices, one after the other.
fn speech(rate: u32, channels: &str) -> String {
    format!("{}[all]", speech_in(rate, channels, "voice"))
}

fn speech_in(rate: u32, channels: &str, label: &str) -> String {
    let mut text = String::new();
    let mut names = String::new();
    let voices = ["slt", "kal16", "awb", "rms"];
    for voice in voices {
        let name = format!("[{label}-{voice}]");
        text += &format!(
            "flite=voice={voice}:text='{TEXT}',\
             aformat=sample_fmts=s16:sample_rates={rate}:channel_layouts={channels}{name};"
        );
        names += &name;
    }
    format!("{text}{names}concat=n={}:v=0:a=1", voices.len())
}
