//! One CPU: what it runs, how fast, and what it has done.

use onbeat_model::{Instant, Ladder, Span, Speed};

use crate::{TaskIndex, Work};

#[derive(Clone, Debug, PartialEq)]
pub struct Cpus {
    pub count: usize,
    pub speeds: Ladder,
    /// Any speed between the lowest and the highest can be had, too.
    pub continuous: bool,
    /// No higher speed is set, as by a limit of cpufreq; what a task computes still counts in time
    /// at the highest.
    pub limit: Option<Speed>,
    pub costs: Costs,
}

impl Cpus {
    /// CPUs of one speed. Only the tasks cost time.
    pub fn of_one_speed(count: usize) -> Self {
        Self {
            count,
            speeds: Ladder::new(Speed::from_khz(1_000_000))
                .unwrap_or_else(|| unreachable!("it is above zero")),
            continuous: false,
            limit: None,
            costs: Costs::default(),
        }
    }

    /// The highest speed that is set: one that there is, at most the limit. If no speed is as low
    /// as the limit, the lowest.
    pub fn highest(&self) -> Speed {
        let highest = self.speeds.highest();
        let limit = self.limit.unwrap_or(highest);
        if self.continuous {
            return limit.clamp(self.speeds.lowest(), highest);
        }
        let within = self.speeds.speeds().filter(|&speed| speed <= limit);
        within.max().unwrap_or(self.speeds.lowest())
    }
}

/// Time in which a CPU is busy and computes nothing for its task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    pub switch: Span,
    /// The same as work, which takes longer at a lower speed.
    pub switch_work: Work,
    pub speed_change: Span,
    /// The same as work at the new speed.
    pub speed_change_work: Work,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuAccount {
    pub busy: Vec<(Speed, Span)>,
    pub idle: Vec<(Speed, Span)>,
    pub speed_changes: u64,
}

impl CpuAccount {
    pub fn busy_time(&self) -> Span {
        self.busy.iter().map(|&(_, span)| span).sum()
    }

    pub fn idle_time(&self) -> Span {
        self.idle.iter().map(|&(_, span)| span).sum()
    }
}

#[derive(Debug)]
struct SpeedState {
    now: Speed,
    full: Speed,
    limit: Speed,
    speeds: Ladder,
    continuous: bool,
}

impl SpeedState {
    fn computed_in(&self, span: Span) -> Work {
        if self.now == self.full {
            return Work::at_full_speed(span);
        }
        let (speed, full) = (self.now.as_khz(), self.full.as_khz());
        let ns = u128::from(span.as_ns()) * u128::from(speed) / u128::from(full);
        Work::at_full_speed(Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX)))
    }

    fn time_for(&self, work: Work) -> Span {
        if self.now == self.full {
            return work.as_span();
        }
        let (speed, full) = (self.now.as_khz(), self.full.as_khz());
        let product = u128::from(work.as_span().as_ns()) * u128::from(full);
        let ns = product.div_ceil(u128::from(speed));
        Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

#[derive(Debug)]
pub(super) struct Cpu {
    pub(super) task: Option<TaskIndex>,
    pub(super) charged_to: Instant,
    pub(super) stretch_from: Instant,
    /// Until when switching keeps it from computing.
    held_up_until: Instant,
    /// It stops because the slice of its task is over.
    pub(super) stops_at_slice_end: bool,
    /// It stops for no other reason than that its task notifies.
    pub(super) stops_to_notify: bool,
    clock: SpeedState,
    costs: Costs,
    pub(super) account: CpuAccount,
    /// The place of the present speed in the account.
    at_speed: usize,
}

impl Cpu {
    pub(super) fn new(cpus: &Cpus) -> Self {
        let speed = cpus.highest();
        Self {
            task: None,
            charged_to: Instant::ZERO,
            stretch_from: Instant::ZERO,
            held_up_until: Instant::ZERO,
            stops_at_slice_end: false,
            stops_to_notify: false,
            clock: SpeedState {
                now: speed,
                full: cpus.speeds.highest(),
                limit: speed,
                speeds: cpus.speeds.clone(),
                continuous: cpus.continuous,
            },
            costs: cpus.costs,
            account: CpuAccount {
                busy: vec![(speed, Span::ZERO)],
                idle: vec![(speed, Span::ZERO)],
                speed_changes: 0,
            },
            at_speed: 0,
        }
    }

    pub(super) const fn speed(&self) -> Speed {
        self.clock.now
    }

    pub(super) fn at_least(&self, speed: Speed) -> Speed {
        let clock = &self.clock;
        if clock.continuous {
            speed.clamp(clock.speeds.lowest(), clock.limit)
        } else {
            clock.speeds.at_least(speed).min(clock.limit)
        }
    }

    /// Accounts for the time up to now: what was run and computed since the last time, if anything.
    pub(super) fn charge(&mut self, now: Instant) -> Option<(TaskIndex, Span, Work)> {
        let ran = now.since(self.charged_to);
        if ran.is_zero() {
            return None;
        }
        let from = self.charged_to.max(self.held_up_until);
        self.charged_to = now;
        let Some(task) = self.task else {
            self.account.idle[self.at_speed].1 += ran;
            return None;
        };
        self.account.busy[self.at_speed].1 += ran;
        Some((task, ran, self.clock.computed_in(now.since(from))))
    }

    pub(super) fn when_computed(&self, now: Instant, work: Work) -> Instant {
        if work == Work::ENDLESS {
            return Instant::from_ns(u64::MAX);
        }
        now.max(self.held_up_until) + self.clock.time_for(work)
    }

    pub(super) fn put_on(&mut self, task: Option<TaskIndex>, now: Instant) {
        self.task = task;
        self.stretch_from = now;
        if task.is_some() {
            self.hold_up(now, self.costs.switch, self.costs.switch_work);
        }
    }

    /// The execution so far must have been charged.
    pub(super) fn change_speed(&mut self, speed: Speed, now: Instant) {
        self.clock.now = speed;
        self.account.speed_changes += 1;
        let known = self.account.busy.iter().position(|&(at, _)| at == speed);
        self.at_speed = known.unwrap_or_else(|| {
            self.account.busy.push((speed, Span::ZERO));
            self.account.idle.push((speed, Span::ZERO));
            self.account.busy.len() - 1
        });
        self.hold_up(now, self.costs.speed_change, self.costs.speed_change_work);
    }

    fn hold_up(&mut self, now: Instant, time: Span, work: Work) {
        self.held_up_until = self.when_computed(now, work) + time;
    }
}
