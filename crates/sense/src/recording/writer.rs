//! Writes a recording, compressed if its name asks for it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use onbeat_model::Event;

use super::Facts;

#[derive(Debug, thiserror::Error)]
#[error("cannot write the recording {}: {source}", path.display())]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// Writes a recording.
///
/// Dropped, it writes what it still holds; [`finish`](Self::finish) does the same and tells if that
/// failed. A recording that was killed before lacks its end only, and can be read.
pub struct Writer {
    path: PathBuf,
    out: Out,
}

enum Out {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
}

impl Out {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(out) => out,
            Self::Gzip(out) => out,
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.try_finish().and_then(|()| out.get_mut().flush()),
        }
    }
}

impl Writer {
    /// Begins a recording in the file at `path`, replacing what was there; it is compressed with
    /// gzip if the name ends in `.gz`.
    pub fn create(path: impl AsRef<Path>, facts: &Facts) -> Result<Self, WriteError> {
        let path = path.as_ref().to_owned();
        let out = match File::create(&path) {
            Ok(file) => BufWriter::with_capacity(64 << 10, file),
            Err(source) => return Err(WriteError { path, source }),
        };
        let out = if path.extension().is_some_and(|extension| extension == "gz") {
            Out::Gzip(GzEncoder::new(out, Compression::fast()))
        } else {
            Out::Plain(out)
        };
        let mut writer = Self { path, out };
        writer.line(facts)?;
        Ok(writer)
    }

    pub fn write(&mut self, event: &Event) -> Result<(), WriteError> {
        self.line(event)
    }

    /// Hands everything written so far to the kernel, so that it survives this process.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        let result = self.out.writer().flush();
        self.told(result)
    }

    pub fn finish(mut self) -> Result<(), WriteError> {
        let result = self.out.finish();
        self.told(result)
    }

    fn line(&mut self, value: &impl serde::Serialize) -> Result<(), WriteError> {
        let writer = self.out.writer();
        let result = serde_json::to_writer(&mut *writer, value)
            .map_err(io::Error::from)
            .and_then(|()| writer.write_all(b"\n"));
        self.told(result)
    }

    fn told(&self, result: io::Result<()>) -> Result<(), WriteError> {
        result.map_err(|source| WriteError {
            path: self.path.clone(),
            source,
        })
    }
}
