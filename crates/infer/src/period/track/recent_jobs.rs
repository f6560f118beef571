//! The last jobs' evidence about the beat.

use super::MEMORY;

/// How many hits are too few among the last jobs: a third, or a quarter if it is to be soon. A
/// thread without rhythm hits less than a third of the time, one that is late every third time
/// still hits two thirds.
fn lost() -> [(u32, u32); 2] {
    [(MEMORY / 2, MEMORY / 8), (MEMORY - 1, (MEMORY + 1) / 3)]
}

/// Hits and misses of the last jobs, newest in the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    hits: u64,
    jobs: u32,
    lost: bool,
}

impl History {
    pub(super) fn push(&mut self, hit: bool) {
        self.hits = self.hits << 1 | u64::from(hit);
        self.jobs = self.jobs.saturating_add(1);
        self.lost |= lost().iter().any(|&(last, too_few)| {
            let hits = (self.hits & ((1 << last) - 1)).count_ones();
            self.jobs >= last && hits <= too_few
        });
    }

    pub(super) const fn lost(&self) -> bool {
        self.lost
    }
}
