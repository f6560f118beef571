//! The errors of a recording, each with advice.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The compressed data is broken (not merely cut off).
    #[error("the compressed data of {} is damaged ({source}): check it with 'gzip -t', and record or copy it again", path.display())]
    Damaged { path: PathBuf, source: io::Error },
    #[error("{} is no recording that onbeat reads: {reason}", path.display())]
    NotARecording {
        path: PathBuf,
        /// The kind that it has instead, or the one that was looked for; with what to do.
        reason: String,
    },
    #[error("{}:{line}: {problem}", path.display())]
    BrokenLine {
        path: PathBuf,
        line: u64,
        problem: String,
    },
    #[error("{}: at byte {offset}: {problem}", path.display())]
    BrokenBytes {
        path: PathBuf,
        /// Where the piece begins, after decompression.
        offset: u64,
        problem: String,
    },
    #[error("thread {tid} is not in the recording: it has {known}")]
    NoSuchThread { tid: u32, known: String },
}
