//! The processes of the machine, listed a part at a time: how many there are, users decide, and the
//! loop is to turn again after 10 ms.

use std::collections::HashMap;

use onbeat_model::Instant;

/// For how long a process is looked at, because it may execute a program only later.
const YOUNG: onbeat_model::Span = onbeat_model::Span::from_secs(30);
/// The entries of /proc that are read in one turn of the loop. Some 1 us each, 2 ms of the 10.
const ENTRIES: usize = 2048;

/// See the file's head.
#[derive(Default)]
pub(super) struct Processes {
    /// The processes that the last listing found, but for those that the present one has found.
    known: HashMap<u32, KnownProcess>,
    /// Those that the present listing has found.
    found: HashMap<u32, KnownProcess>,
    /// The rest of the present listing.
    rest: Option<Box<dyn Iterator<Item = u32>>>,
}

#[derive(Clone, Copy, Debug)]
struct KnownProcess {
    since: Instant,
    /// It was said that it cannot be tracked.
    is_refused: bool,
}

impl Processes {
    /// Begins a listing.
    pub(super) fn begin(&mut self, all: Box<dyn Iterator<Item = u32>>) {
        self.rest = Some(all);
    }

    pub(super) const fn is_listing(&self) -> bool {
        self.rest.is_some()
    }

    /// Goes on with the listing. Returns the young ones among those that it has come to.
    pub(super) fn list_some(&mut self, now: Instant) -> Vec<u32> {
        let Some(rest) = &mut self.rest else {
            return Vec::new();
        };
        let mut young = Vec::new();
        let mut read = 0;
        for pid in rest.take(ENTRIES) {
            read += 1;
            let known = self.known.remove(&pid).unwrap_or(KnownProcess {
                since: now,
                is_refused: false,
            });
            self.found.insert(pid, known);
            if now.since(known.since) < YOUNG {
                young.push(pid);
            }
        }
        if read < ENTRIES {
            self.rest = None;
            // The others have ended.
            self.known = std::mem::take(&mut self.found);
        }
        young
    }

    /// Whether the process was there at the last listing.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.known.contains_key(&pid) || self.found.contains_key(&pid)
    }

    /// It is said that the process cannot be tracked. Whether it was not before.
    pub(super) fn refuse(&mut self, pid: u32) -> bool {
        let known = self.found.get_mut(&pid).or(self.known.get_mut(&pid));
        known.is_some_and(|known| !std::mem::replace(&mut known.is_refused, true))
    }
}
