//! Files that commands write, and warnings about those that they read.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A file that is opened before all else, and written at the end.
pub struct Output {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let path = path.to_owned();
        let file = create(&path)?;
        Ok(Self { path, file })
    }

    pub fn of(path: Option<&Path>) -> anyhow::Result<Option<Self>> {
        path.map(Self::create).transpose()
    }

    pub fn write(
        self,
        write: impl FnOnce(BufWriter<File>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let Self { path, file } = self;
        write(file).with_context(|| {
            // Half of a file is none. A device stays.
            if path.is_file() {
                let _ = fs::remove_file(&path);
            }
            format!("cannot write {}", path.display())
        })
    }
}

pub fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::new(file))
}

pub fn warn(path: &Path, warnings: &[impl Display]) {
    for warning in warnings {
        eprintln!("onbeat: {}: {warning}", path.display());
    }
}
