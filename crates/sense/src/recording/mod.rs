//! Recordings: read from files, replayed as if they happened now, and written.
//!
//! What a file is is told by what is in it and never by its name: text of ftrace, perf or
//! babeltrace2, that text in a page or in JSON, a trace of Perfetto, comma-separated times, or
//! onbeat's own recording ([`Writer`]); each plain or compressed with gzip. `docs/recording.md`
//! describes them.
//!
//! A file is untrusted: whatever it holds, the answer is a [`Recording`] or a [`ReadError`] that
//! says where the trouble is and what to do, within memory in proportion to the file's events.

mod bursts;
mod collected;
mod csv;
mod detect;
mod error;
mod facts;
mod lines;
mod own;
mod perf_data;
mod perfetto;
mod replay;
pub(crate) mod text;
mod writer;

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use onbeat_model::{Event, Instant, Task};

use lines::Lines;

pub use error::ReadError;
pub use facts::{FORMAT, Facts, VERSION};
pub use replay::Replay;
pub use writer::{WriteError, Writer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Ftrace,
    /// The same in a page of Android's systrace.
    Systrace,
    /// perf's data, or the text of `perf script`.
    PerfScript,
    /// The text of babeltrace2 for LTTng's kernel traces.
    Lttng,
    Perfetto,
    /// Times in nanoseconds in the first column.
    Csv,
    Onbeat,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    pub format: Format,
    /// The kernel and machine it was made on; only onbeat's own recordings tell.
    pub facts: Option<Facts>,
    /// Its tasks in the order of their first mention, each with the last name it had. Where the
    /// recording does not tell the process, a thread counts as its own.
    pub tasks: Vec<Task>,
    /// The events, in the order of [`Event::at`]: for each task first [`Event::Tracked`], then its
    /// bursts.
    pub events: Vec<Event>,
    /// The time of the first event in the file, of whatever kind.
    pub began: Instant,
    pub ended: Instant,
    pub lost: u64,
    /// The warnings for the reader: what was lost, cut off or left out.
    pub warnings: Vec<String>,
    parents: HashMap<u32, u32>,
}

/// Reads the recording in the file at `path`.
pub fn read(path: impl AsRef<Path>) -> Result<Recording, ReadError> {
    recording(Lines::open(path.as_ref())?)
}

/// Reads a recording from `source`; `name` is what errors call it.
pub fn read_from(source: impl Read, name: impl AsRef<Path>) -> Result<Recording, ReadError> {
    recording(Lines::new(source, name.as_ref())?)
}

fn recording(mut lines: Lines<'_>) -> Result<Recording, ReadError> {
    let mut recording = detect::reader(&lines)?(&mut lines)?;
    if lines.is_cut() {
        recording.warnings.push(
            "the compressed data is cut off: what follows the last whole line is missing".into(),
        );
    }
    recording.events.sort_by_key(Event::at);
    Ok(recording)
}
