//! The place of a thread on the path of another one.

use std::fmt;

use onbeat_model::{Name, Span};
use serde::{Deserialize, Serialize};

/// One thread's place on the path of another one's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The thread with whose rhythm the path works: the first stage.
    pub head_tid: u32,
    pub head: Name,
    /// Its period, which is that of the whole path; of several paths, the shortest.
    #[serde(rename = "path_period_ns")]
    pub period: Span,
    /// It works in every so many-th job of the path: 1 for each. The ratio of its own period to the
    /// path's.
    #[serde(default)]
    pub every: u32,
    /// Which stage this is, from 2 in the order in which they were found.
    pub number: u32,
    pub paths: usize,
    pub confidence: f64,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hz = (1e10 / self.period.as_ns().max(1) as f64).round() / 10.0;
        let Self { number, head, .. } = self;
        write!(f, "stage {number} of {head}'s {hz} Hz pipeline")?;
        match self.every {
            0 | 1 => {}
            2 => f.write_str(" in every second job")?,
            3 => f.write_str(" in every third job")?,
            more => write!(f, " in every {more}th job")?,
        }
        match self.paths.saturating_sub(1) {
            0 => Ok(()),
            1 => f.write_str(" and of one more"),
            more => write!(f, " and of {more} more"),
        }
    }
}
