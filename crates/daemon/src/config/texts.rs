//! The files of a folder of the configuration.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, unreadable};

/// The entries of a folder; nothing if it is not there.
pub(super) fn entries_in(folder: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    entries.map_err(unreadable(folder))
}

/// The files of a folder whose names end in `.extension`, in the order of their names. A folder
/// that is not there has none.
pub(super) fn texts_in(
    folder: &Path,
    extension: &str,
) -> Result<Vec<(PathBuf, String)>, ConfigError> {
    let mut parts = entries_in(folder)?;
    parts.retain(|path| path.extension().is_some_and(|own| own == extension));
    parts.sort_unstable();
    let read = |part: PathBuf| {
        let text = fs::read_to_string(&part).map_err(unreadable(&part))?;
        Ok((part, text))
    };
    parts.into_iter().map(read).collect()
}
