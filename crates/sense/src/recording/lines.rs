//! The lines of an untrusted file, plain or gzip, with a bound on how long one may be.
//!
//! A recording is often cut off: the disk was full, the recorder was killed. So the end of the data
//! in the middle of a line or of the compressed stream is not an error here; it is told, and the
//! reader of the format decides.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use super::ReadError;

/// The longest line, in bytes. The first line of onbeat's own holds a command of `COMMAND_KEPT`
/// bytes, each written as up to six.
const LONGEST_LINE: usize = 1 << 20;
/// The beginning of a file that its format is told from, in bytes. A server's trace begins with a
/// line for each of hundreds of CPUs.
const HEAD: u64 = 64 << 10;

/// What editors write in front of text in UTF-8.
const UTF_8: &[u8] = b"\xef\xbb\xbf";

pub(super) struct Line<'a> {
    pub(super) number: u64,
    /// Its text without the newline; a byte that is no UTF-8 is U+FFFD.
    pub(super) text: Cow<'a, str>,
    /// It ended with a newline: surely not cut off.
    pub(super) ended: bool,
}

impl Line<'_> {
    pub(super) fn cut_off(&self) -> String {
        cut_off(&format!("line {}", self.number))
    }
}

/// The warning that the file ends within `piece`.
pub(super) fn cut_off(piece: &str) -> String {
    format!("{piece} is cut off: it is left out, and the recording ends before it")
}

pub(super) struct Lines<'r> {
    path: PathBuf,
    source: BufReader<Box<dyn Read + 'r>>,
    head: Vec<u8>,
    compressed: bool,
    cut: Rc<Cell<bool>>,
    buffer: Vec<u8>,
    number: u64,
    ended: bool,
}

impl Lines<'static> {
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|source| ReadError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::new(file, path)
    }
}

impl<'r> Lines<'r> {
    /// The lines of `source`; `path` is what errors call it.
    pub(super) fn new(mut source: impl Read + 'r, path: &Path) -> Result<Self, ReadError> {
        let unreadable = |source| ReadError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut magic = Vec::new();
        source
            .by_ref()
            .take(2)
            .read_to_end(&mut magic)
            .map_err(unreadable)?;
        let compressed = magic == [0x1f, 0x8b];
        let cut = Rc::new(Cell::new(false));
        let whole = Cursor::new(magic).chain(source);
        let mut source: Box<dyn Read + 'r> = if compressed {
            Box::new(Forgiving {
                source: MultiGzDecoder::new(BufReader::new(whole)),
                cut: Rc::clone(&cut),
            })
        } else {
            Box::new(whole)
        };
        let mut head = Vec::new();
        let first = source.by_ref().take(HEAD).read_to_end(&mut head);
        if head.starts_with(UTF_8) {
            head.drain(..UTF_8.len());
        }
        let rest = Cursor::new(head.clone()).chain(source);
        let lines = Self {
            path: path.to_owned(),
            source: BufReader::with_capacity(64 << 10, Box::new(rest)),
            head,
            compressed,
            cut,
            buffer: Vec::new(),
            number: 0,
            ended: true,
        };
        match first {
            Ok(_) => Ok(lines),
            Err(error) => Err(lines.failure(error)),
        }
    }

    pub(super) fn refused(&self, reason: impl Into<String>) -> ReadError {
        ReadError::NotARecording {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    pub(super) fn broken(&self, line: u64, problem: String) -> ReadError {
        let path = self.path.clone();
        ReadError::BrokenLine {
            path,
            line,
            problem,
        }
    }

    /// The first bytes, decompressed, to tell the format by.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The compressed stream ended too early (known once the last line was read).
    pub(super) fn is_cut(&self) -> bool {
        self.cut.get()
    }

    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        if !self.read_piece()? {
            return Ok(None);
        }
        if !self.ended && self.buffer.len() > LONGEST_LINE {
            let problem = format!(
                "the line is longer than {LONGEST_LINE} bytes, which no recording has: remove it, or record again"
            );
            return Err(self.broken(self.number, problem));
        }
        Ok(Some(self.piece()))
    }

    /// The same where lines may be longer, as in a page around a recording: these come in pieces.
    pub(super) fn next_piece(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        Ok(self.read_piece()?.then(|| self.piece()))
    }

    /// Whether there was more.
    fn read_piece(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        let limit = LONGEST_LINE as u64 + 1;
        let read = (&mut self.source)
            .take(limit)
            .read_until(b'\n', &mut self.buffer);
        match read {
            Err(error) => return Err(self.failure(error)),
            Ok(0) => return Ok(false),
            Ok(_) => {}
        }
        if self.ended {
            self.number += 1;
        }
        self.ended = self.buffer.last() == Some(&b'\n');
        if self.ended {
            self.buffer.pop();
            if self.buffer.last() == Some(&b'\r') {
                self.buffer.pop();
            }
        }
        Ok(true)
    }

    fn piece(&self) -> Line<'_> {
        Line {
            number: self.number,
            text: String::from_utf8_lossy(&self.buffer),
            ended: self.ended,
        }
    }

    pub(super) fn failure(&self, source: io::Error) -> ReadError {
        let path = self.path.clone();
        if self.compressed
            && matches!(
                source.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            )
        {
            ReadError::Damaged { path, source }
        } else {
            ReadError::Unreadable { path, source }
        }
    }
}

/// The bytes, for a format that has no lines.
impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read(buffer)
    }
}

/// Takes a stream that ends too early as ended, and remembers that it did.
struct Forgiving<R> {
    source: R,
    cut: Rc<Cell<bool>>,
}

impl<R: Read> Read for Forgiving<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cut.get() {
            return Ok(0);
        }
        match self.source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut.set(true);
                Ok(0)
            }
            other => other,
        }
    }
}
