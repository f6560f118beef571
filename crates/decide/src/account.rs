//! The account of an application: the CPU time above its fair share that it may use, by whatever
//! means (AQuoSA's server for a set of threads, LFS++'s one reservation for a player).
//!
//! An application without a beat has used at most D + r t after a time t, where D is
//! [`Account::START`] for each of the processes that it ever had at a time and r is
//! [`Account::WITHOUT_BEAT`]. One with a beat has what it was [granted](Grant), one that a program
//! asked for what it asked for. A debt stays.

use onbeat_model::{Instant, Span};

/// Time is in ns, because a debt is below zero.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    left: f64,
    /// CPUs, and the most that is saved up.
    refill: f64,
    depth: Span,
    filled: Instant,
    is_open: bool,
}

impl Account {
    /// D, for each process. Beside hogs, a player or a browser shows its first frame for less.
    pub const START: Span = Span::from_ms(800);
    /// r, in CPUs: what `sched_rt_runtime_us` and the fair server leave to the other side.
    pub const WITHOUT_BEAT: f64 = 0.05;
    /// What a beat saves up: longer than most periods, and as long as others can be made to wait.
    const WITH_BEAT: Span = Span::from_ms(100);
    /// Once used up, it opens again when this time's refill is there, so that it does not flap.
    const REOPENS: Span = Span::from_ms(10);

    /// A full one, of an application that begins.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            left: Self::START.as_ns() as f64,
            refill: Self::WITHOUT_BEAT,
            depth: Self::START,
            filled: now,
            is_open: true,
        }
    }

    pub fn add_process(&mut self) {
        self.left += Self::START.as_ns() as f64;
        self.depth += Self::START;
    }

    /// From now on the application is refilled by its grant, if it has a beat.
    pub fn set_grant(&mut self, grant: Option<f64>, processes: u32, now: Instant) {
        self.fill(now);
        (self.refill, self.depth) = match grant {
            Some(cpus) => (cpus, Self::WITH_BEAT.scale(cpus)),
            None => (Self::WITHOUT_BEAT, Self::START * u64::from(processes)),
        };
    }

    /// From now on the application has this runtime in each period, with or without a beat.
    pub fn fix(&mut self, runtime: Span, period: Span, now: Instant) {
        self.fill(now);
        (self.refill, self.depth) = (runtime.ratio(period), runtime);
        self.left = self.left.min(runtime.as_ns() as f64);
    }

    pub fn spend(&mut self, used: Span, now: Instant) {
        self.fill(now);
        self.left -= used.as_ns() as f64;
        self.is_open &= self.left > 0.0;
    }

    #[must_use]
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.left >= self.depth.as_ns() as f64
    }

    #[must_use]
    pub fn left(&self) -> Span {
        Span::from_ns(self.left.max(0.0) as u64)
    }

    fn fill(&mut self, now: Instant) {
        let full = self.left.max(self.depth.as_ns() as f64);
        let refilled = self.refill * now.since(self.filled).as_ns() as f64;
        self.left = (self.left + refilled).min(full);
        self.filled = self.filled.max(now);
    }

    /// Whether members may be above ordinary priority at `now`. Without a beat, only from a half
    /// full account on: a program that computes is not to change its priority all the time.
    pub fn is_open(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.is_open |= self.left >= self.enough();
        self.is_open
    }

    /// The time until it is open again, if it is used up.
    #[must_use]
    pub fn opens_in(&self) -> Option<Span> {
        let takes = (self.enough() - self.left).max(0.0) / self.refill;
        (!self.is_open).then_some(Span::from_ns(takes as u64))
    }

    fn enough(&self) -> f64 {
        let half = self.depth.as_ns() as f64 / 2.0;
        let enough = self.refill * Self::REOPENS.as_ns() as f64;
        if self.refill > Self::WITHOUT_BEAT {
            enough.min(half)
        } else {
            half
        }
    }
}

/// What an application with a beat is given: LFS++'s Q = (1 + x) P max(dW) / S over its last
/// periods of S (section 4.4), for all of its threads together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grant {
    used: [f64; Self::PERIODS],
    next: usize,
}

impl Grant {
    /// Two seconds, at four reviews a second.
    const PERIODS: usize = 8;
    /// x: what was short grows by a quarter at each review.
    const HEAD_ROOM: f64 = 0.25;
    /// CPUs: a beat that begins is not to wait until it has grown.
    const LEAST: f64 = 0.1;

    pub fn add(&mut self, cpus: f64) {
        self.used[self.next] = cpus;
        self.next = (self.next + 1) % Self::PERIODS;
    }

    #[must_use]
    pub fn cpus(&self) -> f64 {
        let most = self.used.iter().copied().fold(0.0, f64::max);
        most * (1.0 + Self::HEAD_ROOM) + Self::LEAST
    }
}

/// Shares `total` CPUs among the wishes of all applications with a beat: none gets more than it
/// wants, and none less than the others without need (max-min fairness).
#[must_use]
pub fn share(wishes: &[f64], total: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by(|&a, &b| wishes[a].total_cmp(&wishes[b]));
    let mut granted = vec![0.0; wishes.len()];
    let mut left = total;
    for (place, &wish) in order.iter().enumerate() {
        let fair = left / (order.len() - place) as f64;
        granted[wish] = wishes[wish].min(fair);
        left -= granted[wish];
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    /// Spends 1 ms in each ms on each of `cpus` while the account is open, up to `until`.
    fn greedy(account: &mut Account, cpus: u64, until: u64) -> Span {
        let mut used = Span::ZERO;
        for ms in 0..until {
            if account.is_open(at(ms)) {
                used += Span::from_ms(cpus);
                account.spend(Span::from_ms(cpus), at(ms + 1));
            }
        }
        used
    }

    #[test]
    fn a_fixed_one_gives_its_runtime_in_each_period_at_once_and_in_the_long_run() {
        let (runtime, period) = (Span::from_ms(30), Span::from_ms(100));
        for cpus in [1, 3] {
            let mut account = Account::new(at(0));
            account.fix(runtime, period, at(0));
            assert_eq!(account.left(), runtime);
            assert_eq!(account.opens_in(), None);
            let used = greedy(&mut account, cpus, 10_000);
            let bound = runtime * 101 + Span::from_ms(cpus);
            assert!(used <= bound && used + runtime >= bound, "{used}");
            account.spend(Span::from_ms(300), at(10_000));
            let opens = account.opens_in().unwrap();
            assert!(!account.is_open(at(10_000) + opens - Span::from_us(1)));
            assert!(account.is_open(at(10_000) + opens + Span::from_us(1)));
        }
    }

    #[test]
    fn shares_are_what_is_wanted_or_fair() {
        assert_eq!(share(&[0.4, 3.0, 0.2], 1.7), [0.4, 1.1, 0.2]);
        assert_eq!(share(&[1.0, 1.0], 1.0), [0.5, 0.5]);
        assert_eq!(share(&[], 1.0), [0.0; 0]);
    }
}
