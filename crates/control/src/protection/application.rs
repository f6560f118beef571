//! An application: its need, its beat and its account.

use std::collections::HashMap;

use onbeat_decide::account::{Account, Grant, share};
use onbeat_decide::guard::Guard;
use onbeat_decide::ladder::{ApplicationFacts, Rung, RungWhy};
use onbeat_model::{Burst, Instant, Sensor, Span};

use crate::need::{Need, SHARE};
use crate::timer::QUARTER;

/// A process has a clock if it had this many clock wakeups in each of the last two quarters of a
/// second: a transcoder beside hogs has one in half a second, a starved player ten.
const IN_EACH_QUARTER: u32 = 2;
/// An application keeps a beat for this long after its last period or clock.
const KEEPS: Span = Span::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct ProtectedApplications {
    pub(super) all: HashMap<u32, ProtectedApplication>,
    /// That of an application that begins, at least.
    pub(super) at_start: Need,
}

impl ProtectedApplications {
    /// The application has one more thread, and one more process if it is that one's first.
    pub(super) fn enter(&mut self, application: u32, is_process: bool, now: Instant) {
        // A machine that is busy for others is busy for it.
        let mut busiest = self.at_start;
        self.all
            .values()
            .for_each(|other| busiest.join(&other.need));
        let entry = self.all.entry(application);
        let application = entry.or_insert_with(|| ProtectedApplication::new(now, busiest));
        application.size.threads += 1;
        application.size.processes += u32::from(is_process);
        // A script that runs one batch program after the other has no more than with one of them.
        if application.size.processes > application.size.most_processes {
            application.size.most_processes += 1;
            if application.fixed.is_none() {
                application.account.add_process();
            }
        }
    }

    /// From now on the application has this runtime in each period, and its members have no
    /// reservations; with none, an account like others'. False if all together would have more than
    /// `total` CPUs.
    pub(super) fn fix(
        &mut self,
        application: u32,
        times: Option<(Span, Span)>,
        total: f64,
        now: Instant,
    ) -> bool {
        let wanted = times.map_or(0.0, |(runtime, period)| runtime.ratio(period));
        let others = self
            .all
            .iter()
            .filter(|(number, _)| **number != application);
        let others: f64 = others.filter_map(|(_, other)| other.fixed).sum();
        if others + wanted > total {
            return false;
        }
        let new = || ProtectedApplication::new(now, Need::default());
        let application = self.all.entry(application).or_insert_with(new);
        application.fixed = times.map(|_| wanted);
        if let Some((runtime, period)) = times {
            application.account.fix(runtime, period, now);
        }
        true
    }

    /// The time until the first of those with a fixed account that is used up may go on.
    pub(super) fn opens_in(&self) -> Option<Span> {
        let fixed = self.all.values().filter(|it| it.fixed.is_some());
        fixed.filter_map(|it| it.account.opens_in()).min()
    }

    /// The application has one thread less, and one process less if it was that one's first.
    pub(super) fn leave(&mut self, application: u32, is_process: bool) {
        if let Some(left) = self.all.get_mut(&application) {
            left.size.processes -= u32::from(is_process);
            left.size.threads -= 1;
        }
    }

    /// Those whose need began or ended since this was last called.
    pub(super) fn take_changed(&mut self, now: Instant) -> Vec<u32> {
        let changed = self.all.iter_mut().filter_map(|(&number, application)| {
            let needs = application.needs(now);
            (std::mem::replace(&mut application.needed, needs) != needs).then_some(number)
        });
        changed.collect()
    }

    pub(super) fn guard(&mut self, now: Instant) -> Vec<u32> {
        let reviewed = self.all.iter_mut().filter_map(|(&number, application)| {
            let rung = std::mem::replace(&mut application.rung, Rung::Ordinary);
            application.guard.review(rung, now).then_some(number)
        });
        reviewed.collect()
    }

    /// Some are without their means for a moment, to compare.
    pub(super) fn any_compares(&self) -> bool {
        let mut all = self.all.values();
        all.any(|application| application.guarded() == Some(RungWhy::Compares))
    }

    pub(super) fn charge_metered(&mut self, now: Instant, sensor: &mut impl Sensor) {
        for (&number, application) in &mut self.all {
            let new = application.meter(sensor.spent(number));
            application.recent.above += new;
            application.account.spend(new, now);
        }
    }

    /// The CPU time until the first of those that need something has used up its account.
    pub(super) fn least_left(&self, now: Instant) -> Option<Span> {
        let needing = self
            .all
            .values()
            .filter(|application| application.needs(now));
        needing.map(|application| application.account.left()).min()
    }

    /// Reviews each, by what it did in the last `over` on `cpus` CPUs, of which this `idle` share
    /// was idle. Grants are at most this `total` of CPUs.
    pub(super) fn review(
        &mut self,
        now: Instant,
        over: Span,
        (cpus, idle, total): (f64, Option<f64>, f64),
    ) {
        // Whoever uses up its account and executes anew has the same one.
        self.all
            .retain(|_, it| it.size.threads > 0 || it.fixed.is_some() || !it.account.is_full(now));
        for application in self.all.values_mut() {
            application.review(now, over, cpus, idle);
        }
        let fixed: f64 = self.all.values().filter_map(|it| it.fixed).sum();
        let mut with_beat: Vec<&mut ProtectedApplication> = Vec::new();
        for application in self.all.values_mut().filter(|it| it.fixed.is_none()) {
            if application.has_beat(now) {
                with_beat.push(application);
            } else {
                application
                    .account
                    .set_grant(None, application.size.most_processes, now);
            }
        }
        let wishes: Vec<f64> = with_beat.iter().map(|it| it.grant.cpus()).collect();
        for (application, cpus) in with_beat.into_iter().zip(share(&wishes, total - fixed)) {
            application
                .account
                .set_grant(Some(cpus), application.size.most_processes, now);
        }
    }
}

#[derive(Debug)]
pub(super) struct ProtectedApplication {
    size: Size,
    need: Need,
    /// It did at the last review.
    needed: bool,
    account: Account,
    /// The CPUs that a program asked for, in place of what a beat is granted.
    fixed: Option<f64>,
    grant: Grant,
    beat: Beat,
    recent: RecentUse,
    metered: Option<Span>,
    guard: Guard,
    /// That of its highest member at the last review.
    rung: Rung,
}

#[derive(Debug)]
struct Size {
    threads: usize,
    /// Processes whose first thread has not ended, ...
    processes: u32,
    /// ... and the most at a time, 1 at least.
    most_processes: u32,
}

#[derive(Debug)]
struct Beat {
    clock: Clock,
    /// The shortest period that one of its threads keeps, and until when it counts: priorities are
    /// not to change with each thread that loses its period for a moment.
    period: Option<(Span, Instant)>,
    /// Time of the last period of one of its threads, or of its beginning.
    proved: Instant,
    keeps_until: Instant,
}

/// How often interrupts woke its threads in the quarter of a second of the last such wakeup, and in
/// the two before.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    quarter: u64,
    counts: [u32; 3],
}

impl Clock {
    fn heard(&mut self, at: Instant) {
        self.counts = self.at(at);
        self.quarter = self.quarter.max(at.as_ns() / QUARTER.as_ns());
        self.counts[0] = self.counts[0].saturating_add(1);
    }

    /// The counts of the quarter of `now`, and of the two before it.
    fn at(&self, now: Instant) -> [u32; 3] {
        let [last, before, _] = self.counts;
        match (now.as_ns() / QUARTER.as_ns()).saturating_sub(self.quarter) {
            0 => self.counts,
            1 => [0, last, before],
            2 => [0, 0, last],
            _ => [0; 3],
        }
    }

    /// True if they came all through the last two whole quarters.
    fn is_steady(&self, now: Instant) -> bool {
        self.at(now)[1..]
            .iter()
            .all(|&count| count >= IN_EACH_QUARTER)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct RecentUse {
    used: Span,
    /// The same above ordinary priority, inherited by others, too.
    above: Span,
}

impl ProtectedApplication {
    fn new(began: Instant, need: Need) -> Self {
        Self {
            size: Size {
                threads: 0,
                processes: 0,
                most_processes: 1,
            },
            need,
            needed: false,
            account: Account::new(began),
            fixed: None,
            grant: Grant::default(),
            beat: Beat {
                clock: Clock::default(),
                period: None,
                proved: began,
                keeps_until: Instant::ZERO,
            },
            recent: RecentUse::default(),
            metered: None,
            guard: Guard::new(began),
            rung: Rung::Ordinary,
        }
    }

    pub(super) const fn need(&mut self) -> &mut Need {
        &mut self.need
    }

    pub(super) fn needs(&self, now: Instant) -> bool {
        self.fixed.is_some() || self.need.is_there(now)
    }

    /// What it has spent, as far as a meter tells, and what is left of its account.
    pub(super) fn balance(&mut self, now: Instant) -> (Span, Span) {
        self.account.is_open(now);
        (self.metered.unwrap_or_default(), self.account.left())
    }

    pub(super) fn facts(&mut self, always: bool, now: Instant) -> ApplicationFacts {
        ApplicationFacts {
            needs: always || self.needs(now),
            may_spend: self.account.is_open(now),
            guard: self.most(),
        }
    }

    /// The meter says that it has spent so much, ever. Returns what is new.
    pub(super) fn meter(&mut self, spent: Option<Span>) -> Span {
        let before = self.metered;
        self.metered = spent.or(before);
        spent.unwrap_or_default() - before.or(spent).unwrap_or_default()
    }

    /// The highest rung, if that is not any: a fixed account bounds all that its members have.
    fn most(&self) -> Option<(Rung, RungWhy)> {
        let shares = self.fixed.map(|_| (Rung::Raised, RungWhy::Granted));
        shares.or_else(|| self.guard.most())
    }

    /// Why it may have no reservations, if it may not.
    pub(super) fn guarded(&self) -> Option<RungWhy> {
        self.most().map(|(_, why)| why)
    }

    pub(super) fn is_on(&mut self, rung: Rung) {
        self.rung = self.rung.max(rung);
    }

    pub(super) fn period(&self) -> Option<Span> {
        self.beat.period.map(|(period, _)| period)
    }

    pub(super) fn prove(&mut self, period: Span, now: Instant) {
        let until = now + KEEPS;
        let counts = |&(shortest, until): &(Span, Instant)| shortest < period && now < until;
        if !self.beat.period.as_ref().is_some_and(counts) {
            self.beat.period = Some((period, until));
        }
        self.beat.proved = now;
        self.beat.keeps_until = until;
    }

    pub(super) fn lose_beat(&mut self, now: Instant) {
        self.beat.keeps_until = now;
    }

    /// Finds out whether the application has a clock, and whether others want its CPUs.
    fn review(&mut self, now: Instant, over: Span, cpus: f64, idle: Option<f64>) {
        let RecentUse { used, above } = std::mem::take(&mut self.recent);
        let used = used.max(above).ratio(over);
        self.beat.period = self.beat.period.filter(|(_, until)| now < *until);
        // A periodic program shows its period in less. Build tools and copiers have a clock, too.
        let is_batch = now.since(self.beat.proved) >= KEEPS * 10 && used >= 1.0 - SHARE;
        if self.beat.clock.is_steady(now) && !is_batch {
            self.beat.keeps_until = now + KEEPS;
        }
        self.grant.add(used);
        if let Some(idle) = idle {
            let others = 1.0 - idle - used / cpus;
            self.need.contended(idle, others, now);
        }
    }

    /// A job of a thread with a period ended, late after it had waited so long, or in time.
    pub(super) fn job(&mut self, late: Span) {
        self.guard.woke(late);
    }

    /// Takes in a burst of a thread: its CPU time, its wait, and its wakeup if that is by an
    /// interrupt. Where jobs tell whether the application is in time, other threads' waits do not
    /// count.
    pub(super) fn burst(&mut self, burst: &Burst, is_raised: bool) {
        self.recent.used += burst.executed;
        // A recording has no meter.
        if is_raised && self.metered.is_none() {
            self.account.spend(burst.executed, burst.blocked);
        }
        if burst.woke >= self.beat.proved + KEEPS {
            self.guard.woke(burst.waited());
        }
        if burst.waker == 0 {
            self.beat.clock.heard(burst.woke);
        }
    }

    /// True if one of its threads has a period, or a clock wakes it steadily.
    fn has_beat(&self, now: Instant) -> bool {
        now < self.beat.keeps_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_loses_the_shortest_period_for_a_moment_changes_no_priority() {
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        let (short, long) = (Span::from_ms(5), Span::from_ms(40));
        let mut application = ProtectedApplication::new(at(0), Need::default());
        application.prove(long, at(0));
        application.prove(short, at(250));
        for ms in (500..2250).step_by(250) {
            application.prove(long, at(ms));
            assert_eq!(application.period(), Some(short), "{ms}");
        }
        application.prove(long, at(2250));
        assert_eq!(application.period(), Some(long));
        application.review(at(4250), QUARTER, 2.0, None);
        assert_eq!(application.period(), None);
    }
}
