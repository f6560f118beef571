//! What the last jobs said about the beat.

/// How many hits are too few among the last jobs: a thread without rhythm hits less than a third of
/// the time, one that is late every third time still hits two thirds.
const LOST: [(u32, u32); 2] = [(16, 3), (31, 11)];
/// Jobs after the phase was set in which it is not set again.
const SETTLING: u32 = 16;

/// Hits and misses of the last jobs, newest in the lowest bit, and the last two misses' errors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    hits: u32,
    jobs: u32,
    jobs_since_realigned: u32,
    last_errors: [f64; 2],
    misses_in_a_row: u32,
    lost: bool,
}

impl History {
    /// A job on the beat.
    pub(super) fn hit(&mut self) {
        self.push(true);
        self.misses_in_a_row = 0;
    }

    /// A job that came `error` nanoseconds off the beat.
    pub(super) fn miss(&mut self, error: f64) {
        self.push(false);
        self.last_errors = [self.last_errors[1], error];
        self.misses_in_a_row += 1;
    }

    fn push(&mut self, hit: bool) {
        self.hits = self.hits << 1 | u32::from(hit);
        self.jobs = self.jobs.saturating_add(1);
        self.jobs_since_realigned = self.jobs_since_realigned.saturating_add(1);
        self.lost |= LOST.iter().any(|&(last, too_few)| {
            let hits = (self.hits & ((1 << last) - 1)).count_ones();
            self.jobs >= last && hits <= too_few
        });
    }

    /// Too few hits for too long.
    pub(super) const fn lost(&self) -> bool {
        self.lost
    }

    /// The shift that the last two jobs, both misses, have in common to within `tolerance`. A phase
    /// that was set a few jobs ago and does not fit again has no shift: its period is wrong.
    pub(super) fn common_shift(&self, tolerance: f64, period: f64) -> Option<f64> {
        if self.misses_in_a_row < 2 || self.jobs_since_realigned < SETTLING {
            return None;
        }
        let [first, second] = self.last_errors;
        let apart = second - first;
        let apart = apart - (apart / period).round() * period;
        (apart.abs() <= tolerance).then_some(first + apart / 2.0)
    }

    /// The phase was set: the misses before it are explained.
    pub(super) fn realigned(&mut self) {
        self.jobs_since_realigned = 0;
        self.misses_in_a_row = 0;
    }
}
