//! After the lock: follows a known rhythm burst by burst, at tens of nanoseconds each.
//!
//! Time is cut into one *cell* around each expected release, half a period to either side. A cell's
//! *error* is that of its wakeup nearest to the expected release: spurious wakeups elsewhere in a
//! job do not count. An error within the *gate* is a hit, and a hit corrects phase and period;
//! cells without any wakeup are jobs left out and say nothing.
//!
//! * The correction is the growing-memory alpha-beta filter (Brookner, "Tracking and Kalman
//!   Filtering Made Easy", 1998, section 1.2.10), which is the running least-squares line through
//!   the releases, with its memory held at `memory` beats so that drift is followed.
//! * Errors are clipped before that (Huber 1964), and sooner when late than when early: under load
//!   a release may come late, but never too early, and must not drag the phase.
//! * The gate is three times a running 75th percentile of the errors (a stochastic approximation:
//!   up three steps on a larger error, down one on a smaller), so it fits the thread's own jitter.
//!
//! A pattern tells misses apart:
//!
//! * A thread that was still busy at the last expected release is behind: where it wakes then is no
//!   evidence.
//! * Two misses in a row that are a period apart are a new phase, and the phase is set there: a
//!   player was paused, or the program sets its timer anew after each delay.
//! * Surprisingly many other misses are a change of rate; so are surprisingly many new phases, jobs
//!   left out (half the rate) or wakeups half-way between the beats (twice the rate), and a period
//!   that has drifted by 1% from the lock. The thread's habit decides what is surprising: see
//!   `Surprise`.
//! * With four hits or fewer in sixteen jobs, or eleven in thirty-one, the rhythm is lost.

use onbeat_model::{Burst, Instant, Rhythm, Span};

use crate::period::{COARSEST, FALSE_ALARM_RATE, FAR, FEWEST, NEARLY_ALL, SAME};

/// The jobs that the tracker remembers. Raised: drift and changes of rate are followed later.
pub(crate) const MEMORY: u32 = 32;

/// The least gate of the tracker, as a share of the period: a release after a beat left out is met
/// also by a period that is just the same.
pub(crate) fn narrowest_gate() -> f64 {
    2.0 * SAME
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// It goes on, as far as one can tell.
    Kept,
    /// It seems to have another rate: time to analyse the last few bursts anew. Said again while
    /// this tracker keeps being contradicted; if the analysis finds the same rhythm, keep the
    /// tracker.
    RateChanged,
    /// It is gone. Said for every further burst: start over from an analysis.
    Lost,
}

#[derive(Clone, Debug)]
pub struct Tracker {
    period: f64,
    locked_period: f64,
    /// The release that the current cell is around: `beat` plus a `fraction` of a nanosecond.
    beat: Instant,
    fraction: f64,
    beats_seen: u32,
    cell: Option<Cell>,
    /// Until when the thread was last seen busy.
    busy_until: Instant,
    errors: Errors,
    history: History,
    /// The error of the last job, if it was off the beat.
    last_miss: Option<f64>,
    signs: Signs,
    confidence: f64,
}

/// How surprising it is, for each sign of another rhythm, that it came as often as it did.
#[derive(Clone, Debug, Default)]
struct Signs {
    missing: Surprise,
    slipping: Surprise,
    leaving_out: Surprise,
    half_way: Surprise,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The error nearest to zero so far, in nanoseconds; positive is late.
    error: f64,
    /// Until when the thread was last seen busy when this cell began.
    busy_before: Instant,
    /// Beats between the last cell with a wakeup and this one had none.
    left_out: bool,
    /// The thread was busy with something older at the last release before this cell's first
    /// wakeup.
    behind: bool,
    /// A wakeup came half-way from the beat before; it may fall to either side of the cells'
    /// border.
    half_way_before: bool,
    /// A wakeup came half-way to the next beat.
    half_way_after: bool,
    missed: bool,
}

impl Tracker {
    /// Follows `rhythm` from here on. A period of zero is lost at once.
    #[must_use]
    pub fn new(rhythm: Rhythm) -> Self {
        let period = rhythm.period.as_ns() as f64;
        Self {
            period,
            locked_period: period,
            beat: rhythm.phase,
            fraction: 0.0,
            beats_seen: FEWEST as u32,
            cell: None,
            busy_until: Instant::ZERO,
            errors: Errors::new(period, rhythm.jitter.as_ns() as f64),
            history: History::default(),
            last_miss: None,
            signs: Signs::default(),
            confidence: rhythm.confidence,
        }
    }

    pub fn hear(&mut self, burst: &Burst) -> Beat {
        if self.history.lost() || self.period < 1.0 {
            return Beat::Lost;
        }
        let since = burst.woke.offset_from(self.beat) as f64 - self.fraction;
        let beats = (since / self.period).round();
        let beat = if self.cell.is_some() && beats < 1.0 {
            self.update_cell(since)
        } else {
            self.begin_cell(burst.woke, beats)
        };
        self.busy_until = self.busy_until.max(burst.blocked);
        beat
    }

    /// The rhythm as it is now: its phase is the expected release nearest to the last wakeup.
    #[must_use]
    pub fn rhythm(&self) -> Rhythm {
        Rhythm {
            period: Span::from_ns(self.period.round() as u64),
            phase: shifted(self.beat, self.fraction),
            jitter: Span::from_ns(self.errors.deviation().round() as u64),
            confidence: self.confidence,
        }
    }

    fn update_cell(&mut self, error: f64) -> Beat {
        let gate = self.errors.gate();
        let half_way = (error.abs() - self.period / 2.0).abs() <= gate;
        let Some(cell) = &mut self.cell else {
            return Beat::Kept;
        };
        cell.half_way_before |= half_way && error < 0.0;
        cell.half_way_after |= half_way && error > 0.0;
        if error.abs() < cell.error.abs() {
            cell.error = error;
        }
        // No later wakeup of this cell can hit any more: say so now, not a job later.
        if error > gate && cell.error.abs() > gate && !cell.missed {
            cell.missed = true;
            let cell = *cell;
            return self.miss(cell);
        }
        Beat::Kept
    }

    fn begin_cell(&mut self, woke: Instant, beats: f64) -> Beat {
        let last = self.cell.take();
        let verdict = last.map_or(Beat::Kept, |cell| self.close(cell));
        // Closing corrected phase and period: the distance has to be taken anew.
        let since = woke.offset_from(self.beat) as f64 - self.fraction;
        let beats_now = (since / self.period).round();
        self.advance(beats_now);
        self.beats_seen = self.beats_seen.saturating_add(1);
        let error = since - beats_now * self.period;
        let behind = self.was_behind(woke, error, last.filter(|_| beats_now <= 1.0));
        self.cell = Some(Cell {
            error,
            busy_before: self.busy_until,
            left_out: beats >= 2.0 && !behind,
            behind,
            half_way_before: beats < 2.0 && last.is_some_and(|cell| cell.half_way_after),
            half_way_after: false,
            missed: false,
        });
        let heard = self.update_cell(error);
        if verdict == Beat::Kept {
            heard
        } else {
            verdict
        }
    }

    /// Whether the thread was still busy at the last release before it `woke`, the first time in a
    /// cell, with something older than that release. `last` is the cell before, if it is the one
    /// next to this.
    ///
    /// A burst that wakes early in a cell and is busy at its release is that release's own job;
    /// except while the thread catches up, from one overdue job to the next without a sleep worth
    /// the name.
    fn was_behind(&self, woke: Instant, error: f64, last: Option<Cell>) -> bool {
        let gate = self.errors.gate();
        let slept = woke.since(self.busy_until).as_ns() as f64 > gate;
        let busy_until = match last {
            Some(last) if error < 0.0 && (slept || !last.behind) => last.busy_before,
            _ => self.busy_until,
        };
        let back = if error < 0.0 { -self.period } else { 0.0 };
        busy_until > shifted(self.beat, self.fraction + back - gate)
    }

    fn close(&mut self, cell: Cell) -> Beat {
        if cell.missed {
            return Beat::Kept;
        }
        if cell.error.abs() > self.errors.gate() {
            return self.miss(cell);
        }
        self.errors.record(cell.error);
        self.correct(cell.error);
        self.history.push(true);
        self.last_miss = None;
        self.signs.missing.hear(false);
        self.signs.slipping.hear(false);
        let mut changed = self.signs.leaving_out.hear(cell.left_out);
        changed |= self.signs.half_way.hear(cell.half_way_before);
        if (self.period / self.locked_period - 1.0).abs() > SAME {
            // Delays in one direction can feign a drift: only an analysis can tell.
            self.period = self.locked_period;
            changed = true;
        }
        if changed {
            Beat::RateChanged
        } else {
            Beat::Kept
        }
    }

    /// A job off the beat. If it came a period after the last one, which was off as well, the
    /// thread has set its phase anew.
    fn miss(&mut self, cell: Cell) -> Beat {
        if cell.behind {
            return Beat::Kept;
        }
        self.errors.record(cell.error);
        let last = self.last_miss.replace(cell.error);
        let steps = last.map(|last| {
            let apart = cell.error - last;
            apart - (apart / self.period).round() * self.period
        });
        let tolerance = self.errors.gate().min(self.period * narrowest_gate());
        let same_step = steps.is_some_and(|apart| apart.abs() <= tolerance);
        self.history.push(same_step);
        let mut changed = !same_step && self.signs.missing.hear(true);
        if self.history.lost() {
            return Beat::Lost;
        }
        if same_step {
            self.last_miss = None;
            self.fraction += cell.error;
            if let Some(current) = &mut self.cell {
                current.error -= cell.error;
            }
            changed |= self.signs.slipping.hear(true);
        }
        if changed {
            Beat::RateChanged
        } else {
            Beat::Kept
        }
    }

    /// One step of the filter: alpha and beta of the least-squares line through `n` beats.
    fn correct(&mut self, error: f64) {
        let n = f64::from(self.beats_seen.min(MEMORY));
        let alpha = 2.0 * (2.0 * n + 1.0) / ((n + 1.0) * (n + 2.0));
        let beta = 6.0 / ((n + 1.0) * (n + 2.0));
        self.fraction += alpha * self.errors.clip(error);
        self.period = (self.period + beta * self.errors.clip_tight(error)).max(1.0);
    }

    fn advance(&mut self, beats: f64) {
        let whole = self.fraction + beats * self.period;
        self.beat = shifted(self.beat, whole.floor());
        self.fraction = whole - whole.floor();
    }
}

fn shifted(at: Instant, ns: f64) -> Instant {
    if ns >= 0.0 {
        at + Span::from_ns(ns as u64)
    } else {
        at - Span::from_ns(-ns as u64)
    }
}

/// How many hits are too few among the last jobs: a third, or a quarter if it is to be soon. A
/// thread without rhythm hits less than a third of the time, one that is late every third time
/// still hits two thirds.
fn lost() -> [(u32, u32); 2] {
    [(MEMORY / 2, MEMORY / 8), (MEMORY - 1, (MEMORY + 1) / 3)]
}

/// Hits and misses of the last jobs, newest in the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    hits: u64,
    jobs: u32,
    lost: bool,
}

impl History {
    fn push(&mut self, hit: bool) {
        self.hits = self.hits << 1 | u64::from(hit);
        self.jobs = self.jobs.saturating_add(1);
        self.lost |= lost().iter().any(|&(last, too_few)| {
            let hits = (self.hits & ((1 << last) - 1)).count_ones();
            self.jobs >= last && hits <= too_few
        });
    }

    const fn lost(&self) -> bool {
        self.lost
    }
}

const GROWTH: f64 = 0.15;

/// The widest gate, to either side: one bin of the coarsest in all. A thread without a period hits
/// it less often than the third of the time with which a period is lost.
fn widest_gate() -> f64 {
    0.5 / COARSEST as f64
}

/// The 75th percentile of the absolute value of normal errors, in standard deviations.
const PERCENTILE_PER_DEVIATION: f64 = 1.150_35;

fn gate() -> f64 {
    FAR / PERCENTILE_PER_DEVIATION
}

/// A running 75th percentile of the absolute errors, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Errors {
    percentile: f64,
    least: f64,
    most: f64,
}

impl Errors {
    fn new(period: f64, deviation: f64) -> Self {
        let most = period * widest_gate() / gate();
        Self {
            percentile: (deviation * PERCENTILE_PER_DEVIATION).min(most),
            least: period * narrowest_gate() / gate(),
            most,
        }
    }

    fn record(&mut self, error: f64) {
        let factor = if error.abs() > self.percentile {
            1.0 + GROWTH
        } else {
            1.0 - GROWTH / 3.0
        };
        // From zero nothing could grow.
        self.percentile = (self.percentile * factor).max(1.0).min(self.most);
    }

    /// How far a wakeup may be from the beat to count as a hit.
    fn gate(&self) -> f64 {
        self.scale() * gate()
    }

    fn clip(&self, error: f64) -> f64 {
        let scale = self.scale();
        error.clamp(-2.0 * scale, scale)
    }

    fn scale(&self) -> f64 {
        self.percentile.max(self.least)
    }

    /// An error as the period may see it: less than the phase, because what is late once and stays
    /// late (a timer set anew) moves the phase but not the period.
    fn clip_tight(&self, error: f64) -> f64 {
        let scale = self.scale() / 2.0;
        error.clamp(-scale, scale)
    }

    fn deviation(&self) -> f64 {
        self.percentile / PERCENTILE_PER_DEVIATION
    }
}

// Page's cumulative sum test (Biometrika 41, 1954) notices that something rare has become frequent.
// Each job either shows the thing or does not. The score multiplies the likelihood ratios between
// "now every second job shows it" and "as often as ever", and never falls below one. By Lorden's
// bound (Annals of Mathematical Statistics 42, 1971), jobs that go on as ever alarm less than once
// in [`alarm`]; and two in a row alarm if it was unheard of.

fn alarm() -> f64 {
    1.0 / FALSE_ALARM_RATE
}

/// Jobs over which the habit is learned. Nothing is rarer than one of them.
fn memory() -> f64 {
    2.0 * f64::from(MEMORY)
}

/// One thing that a job may show, how often it usually does, and the score.
#[derive(Clone, Copy, Debug)]
struct Surprise {
    habit: f64,
    jobs: f64,
    score: f64,
}

impl Default for Surprise {
    fn default() -> Self {
        Self {
            habit: 1.0 - NEARLY_ALL,
            jobs: FEWEST as f64,
            score: 1.0,
        }
    }
}

impl Surprise {
    fn hear(&mut self, shown: bool) -> bool {
        let usual = self.habit.clamp(1.0 / memory(), 0.5);
        let ratio = if shown {
            0.5 / usual
        } else {
            (1.0 - 0.5) / (1.0 - usual)
        };
        self.score = (self.score * ratio).max(1.0);
        self.jobs = (self.jobs + 1.0).min(memory());
        self.habit += (f64::from(u8::from(shown)) - self.habit) / self.jobs;
        let alarm = self.score >= alarm();
        if alarm {
            self.score = 1.0;
        }
        alarm
    }
}

#[cfg(test)]
mod tests;
