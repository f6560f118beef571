//! What the last jobs said about the beat.

/// How many hits are too few among the last jobs: a thread without rhythm hits less than a third of
/// the time, one that is late every third time still hits two thirds.
const LOST: [(u32, u32); 2] = [(16, 4), (31, 11)];

/// Hits and misses of the last jobs, newest in the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    hits: u32,
    jobs: u32,
    lost: bool,
}

impl History {
    /// Takes in whether a job came on the beat, or a period after the last.
    pub(super) fn push(&mut self, hit: bool) {
        self.hits = self.hits << 1 | u32::from(hit);
        self.jobs = self.jobs.saturating_add(1);
        self.lost |= LOST.iter().any(|&(last, too_few)| {
            let hits = (self.hits & ((1 << last) - 1)).count_ones();
            self.jobs >= last && hits <= too_few
        });
    }

    /// Too few hits for too long.
    pub(super) const fn lost(&self) -> bool {
        self.lost
    }
}
