//! The trains of instants in which the other steps look for a beat.
//!
//! A job may be several bursts: a player's frame wakes for its clock, then for the display, then for
//! the display again, all within a fraction of its period. The releases are the first of each such
//! group. A thread may also poll: wake at short intervals, see that there is nothing to do, and
//! sleep on; its releases are then the few bursts that carry the work.

use onbeat_model::Burst;

/// Points in time, ascending, in nanoseconds after an origin, and what the search needs of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Train {
    /// The points.
    pub(super) at: Vec<f64>,
    /// The gaps between them, ascending, and the sums of the first of these.
    gaps: Vec<f64>,
    sums: Vec<f64>,
}

impl Train {
    /// Becomes the train of `points`, which ascend.
    pub(super) fn fill(&mut self, points: impl Iterator<Item = f64>) {
        self.at.clear();
        self.at.extend(points);
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

    /// From the first point to the last.
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

/// The wakeups that follow an earlier one after more than the usual gap inside a group.
pub(super) fn releases(bursts: &[Burst], origin: u64, train: &mut Train) {
    train.fill(bursts.iter().map(|b| (b.woke.as_ns() - origin) as f64));
    let Some(limit) = split(&train.gaps) else {
        return;
    };
    let mut last = f64::NEG_INFINITY;
    let points: Vec<f64> = train
        .at
        .iter()
        .copied()
        .filter(|&at| {
            let first = at - last > limit;
            last = at;
            first
        })
        .collect();
    train.fill(points.into_iter());
}

/// The bursts that carry the work, if they are few and the others negligible: each other one takes
/// less than a fifth of the lightest of them, and all others together less than half their time.
pub(super) fn workers(bursts: &[Burst], origin: u64, train: &mut Train) -> bool {
    let mut executed: Vec<f64> = bursts.iter().map(|b| b.executed.as_ns() as f64).collect();
    executed.sort_unstable_by(f64::total_cmp);
    let Some(limit) = split(&executed) else {
        return false;
    };
    let light: f64 = executed.iter().filter(|&&e| e <= limit).sum();
    let total: f64 = executed.iter().sum();
    if light * 3.0 > total {
        return false;
    }
    train.fill(
        bursts
            .iter()
            .filter(|b| b.executed.as_ns() as f64 > limit)
            .map(|b| (b.woke.as_ns() - origin) as f64),
    );
    true
}

/// Where two well-separated groups of positive values part, by the largest variance of logarithms
/// between them (Otsu, 1979); none if the mean of the larger is not eight times that of the smaller.
fn split(ascending: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = ascending.iter().map(|v| v.max(1.0).ln()).collect();
    let n = logs.len() as f64;
    let total: f64 = logs.iter().sum();
    let mut below = 0.0;
    let mut best = (0.0, None);
    for (i, pair) in logs.windows(2).enumerate() {
        below += pair[0];
        let count = (i + 1) as f64;
        let apart = (total - below) / (n - count) - below / count;
        let between = count * (n - count) * apart * apart;
        if between > best.0 {
            let limit = ((pair[0] + pair[1]) / 2.0).exp();
            best = (between, (apart > 8.0_f64.ln()).then_some(limit));
        }
    }
    best.1
}
