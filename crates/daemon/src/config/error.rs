//! The errors in a configuration, with their lines.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {source}; name another file with --config")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path}:{line}: {problem}")]
    Wrong {
        path: PathBuf,
        line: usize,
        problem: String,
    },
}

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
    pub fn new(path: &Path, text: &str, offset: usize) -> Self {
        Self {
            path: path.to_owned(),
            line: line_of(text, offset),
        }
    }

    /// The error that this line has the `problem`, which says what to write instead.
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

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|&&byte| byte == b'\n').count() + 1
}
