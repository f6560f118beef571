//! The trains of instants in which the other steps look for a beat.
//!
//! A job may be several bursts: a player's frame wakes for its clock, then for the display, then
//! for the display again, all within a fraction of its period. The releases are the first of each
//! such group. A thread may also poll: wake at short intervals, see that there is nothing to do,
//! and sleep on; its releases are then the few groups that carry the work, or the bursts that are
//! longer than the time between polls.

use super::compact::Compact;

/// Two kinds of gaps, or of work, have a valley between them as wide as this ratio. Raised: the
/// bursts of a job are not one group. Lowered: polls are taken for jobs.
const WIDE: f64 = 2.0;
/// One value in this many may lie in the valley.
const STRAYS: usize = 25;

/// Points in time, ascending, in nanoseconds after an origin, and what the search needs of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Train {
    pub(super) at: Vec<f64>,
    pub(super) executed: Vec<f64>,
    /// The gaps between the points, ascending, and the sums of the first of these.
    gaps: Vec<f64>,
    sums: Vec<f64>,
}

impl Train {
    pub(super) fn wakeups(&mut self, bursts: &[Compact], origin: u64) {
        self.points(bursts, origin);
        self.measure();
    }

    /// The same, with nothing known of the gaps.
    pub(super) fn points(&mut self, bursts: &[Compact], origin: u64) {
        self.at.clear();
        self.executed.clear();
        for burst in bursts {
            self.at
                .push(burst.woke().as_ns().saturating_sub(origin) as f64);
            self.executed.push(burst.executed().as_ns() as f64);
        }
    }

    pub(super) fn timers(&mut self, bursts: &[Compact], origin: u64) {
        let expiries = bursts.iter().filter_map(Compact::expiry);
        self.at.clear();
        self.executed.clear();
        self.at
            .extend(expiries.map(|at| at.as_ns().saturating_sub(origin) as f64));
        self.at.sort_unstable_by(f64::total_cmp);
        self.measure();
    }

    /// The gap between groups of points, if there are groups.
    pub(super) fn groups_part_at(&self) -> Option<f64> {
        valley(&self.gaps, WIDE)
    }

    /// Merges points that follow the one before after no more than `limit`.
    pub(super) fn merge(&mut self, limit: f64) {
        let mut kept = 0;
        let mut last = f64::NEG_INFINITY;
        for i in 0..self.at.len() {
            let (at, executed) = (self.at[i], self.executed[i]);
            if at - last > limit {
                self.at[kept] = at;
                self.executed[kept] = executed;
                kept += 1;
            } else {
                self.executed[kept - 1] += executed;
            }
            last = at;
        }
        self.at.truncate(kept);
        self.executed.truncate(kept);
        self.measure();
    }

    /// Becomes the points of `train` that carry the work, if the others are negligible: two kinds
    /// of points, and the light ones together take less than half of the time. Says whether it did.
    pub(super) fn workers_of(&mut self, train: &Self) -> bool {
        let sorted = &mut self.gaps;
        sorted.clear();
        sorted.extend_from_slice(&train.executed);
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(limit) = valley(sorted, WIDE) else {
            return false;
        };
        let light: f64 = sorted.iter().take_while(|&&e| e <= limit).sum();
        if light * 2.0 > sorted.iter().sum() {
            return false;
        }
        self.longer_of(train, limit);
        true
    }

    /// Becomes the points of `train` at which more than `limit` was executed.
    pub(super) fn longer_of(&mut self, train: &Self, limit: f64) {
        self.at.clear();
        let points = train.at.iter().zip(&train.executed);
        self.at
            .extend(points.filter(|p| *p.1 > limit).map(|p| *p.0));
        self.measure();
    }

    pub(super) fn last_of(&mut self, train: &Self, count: usize) {
        self.at.clear();
        let first = train.at.len().saturating_sub(count);
        self.at.extend_from_slice(&train.at[first..]);
        self.measure();
    }

    fn measure(&mut self) {
        self.gaps.clear();
        self.gaps.extend(self.at.windows(2).map(|w| w[1] - w[0]));
        self.gaps.sort_unstable_by(f64::total_cmp);
        self.sums.clear();
        let mut sum = 0.0;
        self.sums.extend(self.gaps.iter().map(|g| {
            sum += g;
            sum
        }));
    }

    /// The gap that half of the gaps do not exceed; at least a nanosecond.
    pub(super) fn median_gap(&self) -> f64 {
        self.gaps
            .get(self.gaps.len() / 2)
            .copied()
            .unwrap_or(0.0)
            .max(1.0)
    }

    pub(super) fn length(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0)
    }

    /// The chance that a window of `width`, placed at random, holds a point: what a beat that has
    /// nothing to do with the train would meet by accident. Points that come in groups count once.
    pub(super) fn coverage(&self, width: f64) -> f64 {
        let shorter = self.gaps.partition_point(|&g| g < width);
        let below = if shorter == 0 {
            0.0
        } else {
            self.sums[shorter - 1]
        };
        let covered = below + (self.gaps.len() - shorter) as f64 * width;
        (covered / self.length().max(1.0)).clamp(0.0, 1.0)
    }
}

/// Where positive values part into two kinds: in the middle of the valley of the largest ones that
/// is wide, by ratio, and has enough values on each side, two at least. A few may lie in it.
fn valley(ascending: &[f64], wide: f64) -> Option<f64> {
    let n = ascending.len();
    let strays = n / STRAYS;
    let side = (n / super::side()).max(2);
    let mut best = (wide, None);
    for low in (side - 1..n.saturating_sub(side + strays)).rev() {
        let (below, above) = (ascending[low].max(1.0), ascending[low + 1 + strays]);
        if above > below * best.0 {
            best = (above / below, Some((below * above).sqrt()));
        } else if above < below * wide && best.1.is_some() {
            break;
        }
    }
    best.1
}
