//! How much is written to the journal about one user's tasks: a user with ever new changes would
//! have as many lines written, and journald drops others' lines of a service that writes too many.
//! The first lines about each user in a minute are written, and the others counted.

use std::collections::BTreeMap;

use onbeat_model::Instant;

/// The time of each count.
const EACH: onbeat_model::Span = onbeat_model::Span::from_secs(60);

#[derive(Debug)]
pub(super) struct LineLimit {
    most: u32,
    by_user: BTreeMap<u32, Written>,
}

#[derive(Clone, Copy, Debug)]
struct Written {
    since: Instant,
    lines: u32,
    left_out: u64,
}

impl LineLimit {
    pub(super) const fn new(most: u32) -> Self {
        Self {
            most,
            by_user: BTreeMap::new(),
        }
    }

    /// Whether one more may be written about what is charged to the user `uid`; if not, it is
    /// counted.
    pub(super) fn admits(&mut self, uid: u32, now: Instant) -> bool {
        let written = self.by_user.entry(uid).or_insert(Written {
            since: now,
            lines: 0,
            left_out: 0,
        });
        let admitted = written.lines < self.most;
        if admitted {
            written.lines += 1;
        } else {
            written.left_out += 1;
        }
        admitted
    }

    /// The users with lines left out in the time that is over now, and how many.
    pub(super) fn left_out(&mut self, now: Instant) -> Vec<(u32, u64)> {
        let is_over = |written: &Written| now.since(written.since) >= EACH;
        let over = self.by_user.iter().filter(|(_, written)| is_over(written));
        let left_out = over.map(|(uid, written)| (*uid, written.left_out));
        let left_out: Vec<_> = left_out.filter(|(_, count)| *count > 0).collect();
        self.by_user.retain(|_, written| !is_over(written));
        left_out
    }
}
