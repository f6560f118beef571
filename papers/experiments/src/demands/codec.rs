//! The five codecs of GRACE-OS's Table 2 as a distribution has them today, and how each is held to
//! its pace.

use std::path::Path;

use super::material::{HEIGHT, Material, WIDTH};

/// A program that does a job in each period.
pub(crate) struct Codec {
    /// The name of its demands: the file's name without `.csv`.
    pub(crate) name: &'static str,
    /// The program of the paper in whose place it stands.
    pub(crate) paper: &'static str,
    pub(crate) period_ms: u64,
    pub(crate) jobs: usize,
    pub(super) material: Material,
    pub(super) pace: Pace,
    /// The program and its arguments, without the file of a [`Pace::Output`].
    program: &'static [&'static str],
    behind: &'static [&'static str],
}

/// A pipe with room for less than two jobs holds a program to the pace at which its other end is
/// served.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// A job's input of this many bytes is written to it in each period.
    Input(usize),
    /// A job's output of this many bytes is read from it in each period.
    Output(usize),
}

/// A picture of the film, uncompressed, two colour samples for four pixels.
const PICTURE: usize = WIDTH * HEIGHT * 3 / 2;
/// 1152 samples of two channels, two bytes each: a frame of MP3.
const SOUND: usize = 1152 * 2 * 2;
/// 160 samples of two bytes: a frame of GSM.
const SPEECH: usize = 160 * 2;

const DECODE: &[&str] = &[
    "ffmpeg",
    "-loglevel",
    "error",
    "-nostdin",
    "-threads",
    "1",
    "-filter_threads",
    "1",
    "-i",
];
const TO_PICTURES: &[&str] = &["-threads", "1", "-f", "rawvideo", "-"];

/// All of them, in the order of the paper's Table 2.
pub(crate) static CODECS: [Codec; 5] = [
    Codec {
        name: "mpeg1-decode",
        paper: "mpgplay",
        period_ms: 30,
        jobs: 3000,
        material: Material::Mpeg1,
        pace: Pace::Output(PICTURE),
        program: DECODE,
        behind: TO_PICTURES,
    },
    Codec {
        name: "mp3-decode",
        paper: "madplay",
        period_ms: 30,
        jobs: 1000,
        material: Material::Mp3,
        pace: Pace::Output(SOUND),
        // Unbuffered, so that it writes one frame at a time.
        program: &["stdbuf", "-o0", "madplay", "-Q", "-o", "raw:-"],
        behind: &[],
    },
    Codec {
        name: "h263-encode",
        paper: "tmn",
        period_ms: 400,
        jobs: 300,
        material: Material::Pictures,
        pace: Pace::Input(PICTURE),
        program: &[
            "ffmpeg",
            "-loglevel",
            "error",
            "-nostdin",
            "-f",
            "rawvideo",
            "-pix_fmt",
            "yuv420p",
            "-video_size",
            "1408x1152",
            "-framerate",
            "30",
            "-i",
            "pipe:0",
            "-filter_threads",
            "1",
            "-threads",
            "1",
            "-c:v",
            "h263",
            "-q:v",
            "4",
            "-g",
            "60",
            // As thorough as it can be, like the encoder of the paper, which tries every motion.
            "-mbd",
            "rd",
            "-trellis",
            "2",
            "-cmp",
            "rd",
            "-subcmp",
            "rd",
            "-mbcmp",
            "rd",
            "-f",
            "null",
            "-",
        ],
        behind: &[],
    },
    Codec {
        name: "h263-decode",
        paper: "tmndec",
        period_ms: 30,
        jobs: 1000,
        material: Material::H263,
        pace: Pace::Output(PICTURE),
        program: DECODE,
        behind: TO_PICTURES,
    },
    Codec {
        name: "gsm-encode",
        paper: "toast",
        period_ms: 25,
        jobs: 2000,
        material: Material::Speech,
        pace: Pace::Input(SPEECH),
        program: &["toast", "-l", "-c"],
        behind: &[],
    },
];

impl Codec {
    pub(super) fn command<'a>(&self, material: &'a Path) -> Vec<&'a std::ffi::OsStr> {
        let file = match self.pace {
            Pace::Output(_) => Some(material.as_os_str()),
            Pace::Input(_) => None,
        };
        let before = self.program.iter().map(std::ffi::OsStr::new);
        let behind = self.behind.iter().map(std::ffi::OsStr::new);
        before.chain(file).chain(behind).collect()
    }
}
