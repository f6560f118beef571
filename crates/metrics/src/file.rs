//! A file for the textfile collector: replaced as a whole, so that no reader has half of it, and
//! gone when onbeat is, so that none reads old values.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use onbeat_model::{Instant, Span};

use crate::MetricsError;

/// The collector reads it every 15 s or so.
const EVERY: Span = Span::from_secs(5);

#[derive(Debug)]
pub(crate) struct MetricsFile {
    path: PathBuf,
    due: Instant,
    failing: bool,
}

impl MetricsFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            due: Instant::ZERO,
            failing: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An attempt that fails is made again when the next is due; the error is of the first in a
    /// row.
    pub(crate) fn write_if_due(
        &mut self,
        now: Instant,
        page: impl FnOnce() -> String,
    ) -> Result<(), MetricsError> {
        if now < self.due {
            return Ok(());
        }
        self.due = now + EVERY;
        let outcome = self.write(&page());
        let told = std::mem::replace(&mut self.failing, outcome.is_err());
        match outcome {
            Err(source) if !told => Err(MetricsError::File {
                path: self.path.clone(),
                source,
            }),
            _ => Ok(()),
        }
    }

    fn write(&self, page: &str) -> io::Result<()> {
        // The collector reads names that end in .prom.
        let new = self.path.with_extension("prom.new");
        // A file that was left, or a link that another user of the folder has put there.
        if let Err(error) = fs::remove_file(&new)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
        file.write_all(page.as_bytes())?;
        // The collector is another user, and a service's files are its own.
        file.set_permissions(Permissions::from_mode(0o644))?;
        fs::rename(&new, &self.path)
    }
}

impl Drop for MetricsFile {
    fn drop(&mut self) {
        // Nothing can be done if it is not ours to remove.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_when_it_is_due_readable_by_all_and_gone_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("onbeat.prom");
        let mut file = MetricsFile::new(&path);
        let at = |seconds| Instant::ZERO + Span::from_secs(seconds);
        for (seconds, written) in [(10, "10"), (14, "10"), (15, "15")] {
            file.write_if_due(at(seconds), || seconds.to_string())
                .unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), written);
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o644
        );
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_that_somebody_laid_beside_the_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, others) = (folder.path().join("a.prom"), folder.path().join("others"));
        fs::write(&others, "kept").unwrap();
        std::os::unix::fs::symlink(&others, folder.path().join("a.prom.new")).unwrap();
        let mut file = MetricsFile::new(&path);
        let page = || "page".to_owned();
        file.write_if_due(Instant::from_ns(1), page).unwrap();
        assert_eq!(fs::read_to_string(&others).unwrap(), "kept");
        assert_eq!(fs::read_to_string(&path).unwrap(), "page");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_once_and_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("later/onbeat.prom");
        let mut file = MetricsFile::new(&path);
        let mut now = Instant::ZERO;
        let mut attempt = || {
            now = now + EVERY;
            file.write_if_due(now, || "page".to_owned())
        };
        for _ in 0..2 {
            let error = attempt().unwrap_err().to_string();
            assert!(error.contains("later/onbeat.prom"), "{error}");
            attempt().unwrap();
            assert!(!path.exists());

            fs::create_dir(folder.path().join("later")).unwrap();
            attempt().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "page");
            fs::remove_dir_all(folder.path().join("later")).unwrap();
        }
    }
}
