//! The errors in a configuration, with their lines.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error in a configuration: where, what, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}; name another file with --config")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in it is not right.
    #[error("{path}:{line}: {problem}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line in it, from 1.
        line: usize,
        /// The error, and what to write instead.
        problem: String,
    },
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) path: PathBuf,
    pub(super) line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

impl Place {
    /// The line in which the byte at `offset` of `text`, the text of `path`, is.
    #[must_use]
    pub fn new(path: &Path, text: &str, offset: usize) -> Self {
        Self {
            path: path.to_owned(),
            line: line_of(text, offset),
        }
    }

    /// The error that this line has the `problem`, which says what to write instead.
    #[must_use]
    pub fn wrong(&self, problem: String) -> ConfigError {
        ConfigError::Wrong {
            path: self.path.clone(),
            line: self.line,
            problem,
        }
    }
}

pub(super) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> ConfigError {
    let path = path.to_owned();
    move |source| ConfigError::Unreadable { path, source }
}

/// The parser's message, with the line, and with advice if it has none.
pub(super) fn wrong(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start);
    let unquoted = "string values must be quoted, expected literal string";
    let message = error.message().trim().replace('\n', ", ");
    let message = message
        .replace(unquoted, "expected a number, a truth or a text in quotes")
        .replace("expected f64", "expected a number, as in 0.1")
        .replace("expected a string", "expected a text in quotes");
    let says_what_to_do = message.contains("expected") || message.contains(": write");
    let problem = if says_what_to_do {
        message
    } else {
        format!(
            "{message}: mend this line, or see the example in /usr/share/doc/onbeat/onbeat.toml"
        )
    };
    ConfigError::Wrong {
        path: path.to_owned(),
        line: line_of(text, start),
        problem,
    }
}

/// The number of the line in which the byte at `offset` is, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|&&byte| byte == b'\n').count() + 1
}
