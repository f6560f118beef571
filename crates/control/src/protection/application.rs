//! Applications: the threads of one, which are protected together.

use std::collections::HashMap;

use onbeat_model::{Boost, Burst, Instant, Span};

use super::boost::BoostWhy;
use crate::estimation::clock::Outside;
use crate::tuning::clock::QUARTER;
use crate::tuning::protection::{
    BUSY, CAPACITY, CATCHES_UP, FIRST, IN_VAIN, KEEPS, PROTECTED, STARTS, STARTS_WITH, UNPROVED,
    WAITS,
};

/// All applications, by their first process.
#[derive(Debug, Default)]
pub(super) struct ProtectedApplications {
    all: HashMap<u32, ProtectedApplication>,
}

impl ProtectedApplications {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The application has one more thread, and one more process if it is that one's first. It
    /// begins at `now` if it is new.
    pub(super) fn enter(
        &mut self,
        application: u32,
        is_process: bool,
        now: Instant,
    ) -> &ProtectedApplication {
        let entry = self.all.entry(application);
        let application = entry.or_insert_with(|| ProtectedApplication::new(now));
        application.threads += 1;
        application.processes += u32::from(is_process);
        application
    }

    /// The application has one thread less, and one process less if it was that one's first. It is
    /// forgotten with the last thread.
    pub(super) fn leave(&mut self, application: u32, is_process: bool) {
        if let Some(left) = self.all.get_mut(&application) {
            left.processes -= u32::from(is_process);
            left.threads -= 1;
            if left.threads == 0 {
                self.all.remove(&application);
            }
        }
    }

    pub(super) fn get(&self, application: u32) -> Option<&ProtectedApplication> {
        self.all.get(&application)
    }

    pub(super) fn get_mut(&mut self, application: u32) -> Option<&mut ProtectedApplication> {
        self.all.get_mut(&application)
    }

    pub(super) fn any_begins(&self, now: Instant) -> bool {
        self.all.values().any(|application| application.begins(now))
    }

    pub(super) fn any_goes_first(&self, now: Instant) -> bool {
        self.all
            .values()
            .any(|application| application.goes_first(now))
    }

    /// Reviews each, by what it did in the last `over` on `cpus` CPUs.
    pub(super) fn review(&mut self, now: Instant, over: Span, cpus: u32) {
        for application in self.all.values_mut() {
            application.review(now, over, cpus);
        }
    }
}

/// One application.
#[derive(Debug, Default)]
pub(super) struct ProtectedApplication {
    /// The number of its threads.
    threads: usize,
    /// The number of its processes whose first thread has not ended.
    processes: u32,
    began: Instant,
    /// CPU time of its threads.
    used: Span,
    /// Wakeups of its threads by interrupts.
    clock: Outside,
    /// The same by interrupts and other applications.
    outside: Outside,
    /// Time of the last rhythm of one of its threads, or of its beginning.
    proved: Instant,
    keeps_until: Instant,
    recent: RecentUse,
    /// It waited for others at the last review.
    waited: bool,
    /// Until then, its protection counts as being in vain.
    in_vain_until: Instant,
}

/// An application's CPU time and waiting since the last review.
#[derive(Clone, Copy, Debug, Default)]
struct RecentUse {
    used: Span,
    /// Time in which protected threads were ready and did not run.
    waited: Span,
}

impl ProtectedApplication {
    fn new(began: Instant) -> Self {
        Self {
            began,
            proved: began,
            ..Self::default()
        }
    }

    pub(super) fn charge(&mut self, used: Span) {
        self.used += used;
        self.recent.used += used;
    }

    pub(super) fn wait(&mut self, waited: Span) {
        self.recent.waited += waited.min(QUARTER);
    }

    /// One of its threads has a rhythm.
    pub(super) fn prove(&mut self, now: Instant) {
        self.proved = now;
        self.keeps_until = now + KEEPS;
    }

    /// Finds out whether the application has a clock, and whether its protection is in vain, from
    /// what it did in the last `over` on `cpus` CPUs. A program that begins is never in vain,
    /// because its threads wait for each other. Probations of a dozen of them at once delayed
    /// Chromium's first frame by 0.15 s.
    fn review(&mut self, now: Instant, over: Span, cpus: u32) {
        let RecentUse { used, waited } = std::mem::take(&mut self.recent);
        let is_batch = now.since(self.proved) >= UNPROVED && used.ratio(over) >= CAPACITY;
        if self.clock.is_steady(now) && !is_batch {
            self.keeps_until = now + KEEPS;
        }
        let waits = waited.ratio(over) >= WAITS && used.ratio(over) < f64::from(cpus) * BUSY;
        if waits && self.waited && now.since(self.began) >= STARTS {
            self.in_vain_until = now + IN_VAIN;
        }
        self.waited = waits;
    }

    pub(super) fn is_in_vain(&self, now: Instant) -> bool {
        now < self.in_vain_until
    }

    /// Counts the wakeup of a burst, if it is by an interrupt or by other applications. True if it
    /// is one of these and the application may be late yet.
    pub(super) fn woken(&mut self, burst: &Burst, by_others: impl FnOnce() -> bool) -> bool {
        if burst.waker == 0 {
            self.clock.heard(burst.woke);
        }
        let is_counted = self.may_be_late(burst.woke) && by_others();
        if is_counted {
            self.outside.heard(burst.woke);
        }
        is_counted
    }

    /// True if it is too young for a probation of a thread that its protection helps.
    pub(super) fn is_young(&self, now: Instant) -> bool {
        now.since(self.began) < UNPROVED
    }

    /// True if it is protected because it has just begun, and has not used up what is for that, or
    /// because it may be late and others wake it.
    fn begins(&self, now: Instant) -> bool {
        self.goes_first(now) || self.may_be_late(now) && self.outside.may_become_steady(now)
    }

    /// True if it began a short time ago. A player that is late when it begins does not sleep until
    /// it has caught up, and hears no timer until then, but its display server.
    pub(super) fn may_be_late(&self, now: Instant) -> bool {
        now.since(self.began) < CATCHES_UP
    }

    /// True if its threads go before all others'. That is good for less CPU time than the rest.
    pub(super) fn goes_first(&self, now: Instant) -> bool {
        self.has_used_less(STARTS_WITH) && now.since(self.began) < STARTS
    }

    /// True if it has used less than `account` for each process that it has now. Each of three
    /// players that a script starts has to load and to decode its first frame; a script that runs
    /// one batch program after the other has no more than for itself and one of them.
    fn has_used_less(&self, account: Span) -> bool {
        self.used < account * u64::from(self.processes.max(1))
    }

    /// The boost of its protected threads.
    pub(super) fn boost(&self, now: Instant) -> Boost {
        if self.goes_first(now) {
            FIRST
        } else {
            PROTECTED
        }
    }

    /// The end of the time in which it begins.
    pub(super) fn has_begun_at(&self) -> Instant {
        self.began + STARTS
    }

    /// The reason why its threads are protected at `now`.
    pub(super) fn protects(&self, now: Instant) -> Option<BoostWhy> {
        if self.begins(now) {
            Some(BoostWhy::Starts)
        } else {
            (now < self.keeps_until).then_some(BoostWhy::KeepsBeat)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protection_is_in_vain_for_5_s_where_threads_wait_and_the_cpus_are_not_theirs() {
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        let in_vain_with = |used_ms| {
            let mut application = ProtectedApplication::new(at(0));
            for ms in [10_000, 10_250] {
                application.wait(Span::from_ms(200));
                application.charge(Span::from_ms(used_ms));
                application.review(at(ms), Span::from_ms(250), 1);
            }
            application
        };
        let application = in_vain_with(145);
        assert!(application.is_in_vain(at(15_249)));
        assert!(!application.is_in_vain(at(15_250)));
        assert!(!in_vain_with(155).is_in_vain(at(10_250)), "it has the CPU");
    }
}
