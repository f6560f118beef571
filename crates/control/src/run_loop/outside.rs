//! Requests and questions from outside while the loop runs: a reservation of a given size and its
//! end, the end of interest in a thread, a look at the capacity, other settings; and
//! how things stand.
//!
//! A requested reservation is granted whole or not at all, and never compressed. Reservations that
//! follow a rhythm give way to it, down to their minima.

use onbeat_decide::supervisor::Limits;
use onbeat_model::{
    Actuator, Bandwidth, Capacity, Instant, Refusal, Reservation, Span, Task, TaskId,
};

use super::Controller;
use super::reviews::CHECKED_EVERY;
use crate::pipeline::Partner;
use crate::report::account::DoneJob;
use crate::report::application::{Application, Means, Member};
use crate::report::exited::Sums;
use crate::report::{Present, Progress, Report, ServedBy, ThreadReport};
use crate::speed::SpeedGovernor;
use crate::task::Slot;
use crate::timer::TimerEvent;
use crate::{Decision, Party, Settings, State, What, Why};

impl<A: Actuator> Controller<A> {
    /// The decisions since this was last called. Those that the caller does not take are dropped.
    pub fn journal(&mut self) -> impl Iterator<Item = Decision> + '_ {
        let speeds = self.governor.as_mut().map(SpeedGovernor::drain);
        let reservations = self.records.log.drain().map(Decision::Reservation);
        reservations
            .chain(self.protector.drain().map(Decision::Boost))
            .chain(speeds.into_iter().flatten().map(Decision::Speed))
    }

    pub const fn actuator(&mut self) -> &mut A {
        self.enforcer.actuator()
    }

    #[must_use]
    pub fn into_actuator(self) -> A {
        self.enforcer.into_actuator()
    }

    /// Applications begin on a machine that is busy for others.
    pub fn begins_in_need(&mut self, now: Instant) {
        self.protector.begins_in_need(now);
    }

    /// How long to wait for events at most.
    #[must_use]
    pub fn pace(&self) -> Span {
        /// Most of what a turn does is analysis, whose answers may be so late.
        const PAUSE: Span = Span::from_ms(20);
        let until = self.protector.pause(self.records.now);
        until.map_or(PAUSE, |until| PAUSE.min(until))
    }

    /// The threads that the sensor is to track alone since this was last asked; it may refuse.
    pub fn partners_to_track(&mut self) -> Vec<Partner> {
        self.pipelines.take_to_track()
    }

    /// The sensor did not track this one: another may be watched in its place.
    pub fn partner_refused(&mut self, partner: Partner, now: Instant) {
        let user = self.tasks.with_id(partner.of);
        let payer = || {
            let party = user.map_or_else(|| (self.settings.parties)(partner.of), |t| t.party);
            party.payer
        };
        self.pipelines.refused(partner, payer, now);
    }

    /// The threads that the sensor is to track no longer since this was last asked.
    pub fn partners_to_untrack(&mut self) -> Vec<TaskId> {
        self.pipelines.take_to_untrack()
    }

    /// The tracked threads for whose sake the partner `task` is tracked; none of a thread that is
    /// no partner.
    pub fn works_for(&self, task: TaskId) -> &[TaskId] {
        let slot = self.tasks.find(task);
        slot.map_or(&[], |slot| self.pipelines.works_for(slot))
    }

    /// Another user, payer or application is behind the thread from now on.
    pub fn changed_party(&mut self, task: TaskId, now: Instant) {
        let party = (self.settings.parties)(task);
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        if let Some(thread) = self.tasks.get_mut(slot) {
            let application = party.application.or(thread.party.application);
            thread.party = Party {
                application,
                ..party
            };
        }
        self.protecting(now).moved(slot);
    }

    /// The application has this runtime in each period for all of its members together, by
    /// priority alone; or what others have. False if there is no room.
    pub fn fix(&mut self, application: u32, times: Option<(Span, Span)>, now: Instant) -> bool {
        self.protecting(now).fix(application, times)
    }

    /// What the members of an application have used above ordinary priority, and how much of its
    /// account is left.
    pub fn balance(&mut self, application: u32, now: Instant) -> Option<(Span, Span)> {
        self.protector.balance(application, now)
    }

    /// Gives `task` this reservation, until it is [taken back](Self::take_back). Its rhythm does
    /// not count meanwhile.
    pub fn grant(&mut self, task: Task, wanted: Reservation, now: Instant) -> Result<(), Refusal> {
        let known = self.tasks.find(task.id).is_some();
        let slot = self.slot_of(task.id, now);
        if let Some(thread) = self.tasks.get_mut(slot).filter(|_| !known) {
            thread.task = task;
            thread.unheard = true;
        }
        let answer = self.admit(slot, task.id, wanted, now);
        if answer.is_err() {
            self.dismiss(slot, now);
        }
        answer
    }

    fn admit(
        &mut self,
        slot: Slot,
        task: TaskId,
        wanted: Reservation,
        now: Instant,
    ) -> Result<(), Refusal> {
        self.arbiter.admits(slot, wanted)?;
        if self.enforcer.server(slot).state.is_yielded() {
            return Err(Refusal::TakenOver {
                now: "noticed before".to_owned(),
            });
        }
        // The others make room first, so this one is left out of the turn.
        let fixed_before = self.enforcer.fix(slot, Some(wanted));
        self.arbiter.put_fixed(slot, task, wanted);
        self.arbiter.look_at_all();
        self.arbitrate(now, Some(slot));
        if let Err(refusal) = self.enforcing(now).put_in_force(slot, wanted) {
            self.enforcer.fix(slot, fixed_before);
            match (fixed_before, &refusal) {
                (_, Refusal::TakenOver { .. }) => {
                    let refusal = Some(refusal.clone());
                    self.enforce(slot, now, |it| it.yield_to_other(slot, refusal));
                }
                (_, Refusal::Gone) => self.enforce(slot, now, |it| it.let_go(slot)),
                (Some(before), _) => self.arbiter.put_fixed(slot, task, before),
                (None, _) => self.back_to_rhythm(slot),
            }
            return Err(refusal);
        }
        self.enforcing(now).reserved(slot, wanted, Why::AskedFor);
        if let Some(thread) = self.tasks.get_mut(slot)
            && !std::mem::replace(&mut thread.looked_after, true)
        {
            self.timers
                .set(now + CHECKED_EVERY, TimerEvent::Check(task));
        }
        self.protecting(now).replaced(slot);
        Ok(())
    }

    /// Has the task's rhythm decide again.
    fn back_to_rhythm(&mut self, slot: Slot) {
        self.arbiter.withdraw(slot);
        self.arbiter.forget_changes(slot);
        self.consider(slot, Some(Why::TakenBack));
    }

    /// Takes back the reservation that `task` was [granted](Self::grant). If the task is tracked,
    /// it gets the reservation for its rhythm instead.
    pub fn take_back(&mut self, task: TaskId, now: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        if self.enforcer.fix(slot, None).is_none() {
            return;
        }
        self.back_to_rhythm(slot);
        if !self.arbiter.has_request(slot) {
            self.withdraw(slot, Why::TakenBack, now);
        }
        self.dismiss(slot, now);
    }

    /// Ends the tracking of `task`, which keeps a reservation that it was [granted](Self::grant).
    /// The sensor must not tell of it any more.
    pub fn forget(&mut self, task: TaskId, now: Instant) {
        // The sensor may tell of it later.
        self.pipelines.forget_number(task.tid);
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.estimator.finish_job(&mut thread.account);
            thread.stop_listening();
        }
        self.withdraw(slot, Why::Untracked, now);
        self.protecting(now).unprotect(slot, Why::Untracked);
        self.dismiss(slot, now);
        // It may settle and be tracked again, and then is no partner.
        if let Some(slot) = self.tasks.find(task) {
            self.pipelines.forget_role(slot);
        }
    }

    /// Releases the reservation that `task` has for its rhythm. It gets one again when the actuator
    /// gives it one.
    pub fn go_without(&mut self, task: TaskId, why: Why, now: Instant) {
        let slot = self.tasks.find(task);
        if let Some(slot) = slot.filter(|&slot| self.enforcer.held(slot).is_some()) {
            self.withdraw(slot, why, now);
        }
    }

    /// Looks now whether `task` still has its reservation: the kernel may not serve it.
    pub fn check(&mut self, task: TaskId, now: Instant) {
        let slot = self.tasks.find(task);
        if let Some(slot) = slot.filter(|&slot| self.enforcer.held(slot).is_some()) {
            self.enforce(slot, now, |it| it.reconcile(slot, (task, false)));
        }
    }

    /// Ends the boosts of `task`: until then if its user has used more than a quota gives,
    /// otherwise for good, because it gets a priority that it asked for.
    pub fn end_boosts(&mut self, task: TaskId, until: Option<Instant>, now: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        let why = match until {
            Some(_) => Why::UserOverQuota,
            None => Why::AsksForPriority,
        };
        self.protecting(now).give_up(slot, (why, until));
    }

    pub fn measure(&mut self) {
        if self.enforcer.measure() {
            let limits = limits(&self.settings, self.enforcer.capacity());
            self.arbiter.set_limits(limits);
        }
    }

    /// Takes over other settings. Reservations stay as they are until there is a reason to change
    /// them.
    pub fn set_settings(&mut self, settings: Settings) {
        let limits = limits(&settings, self.enforcer.capacity());
        self.arbiter.set_limits(limits);
        self.settings = settings;
        for (_, thread) in self.tasks.iter_mut() {
            thread.forget_treatment();
        }
    }

    /// Gives every thread its former scheduling, and returns the report.
    pub fn finish(&mut self, now: Instant) -> Report {
        let (mut threads, earlier) = self.records.ended.take();
        let mut left_alone = self.records.left_alone;
        for (_, thread) in self.tasks.iter_mut() {
            thread.estimator.finish_job(&mut thread.account);
        }
        let applications = self.applications(now);
        let slots: Vec<Slot> = self.tasks.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            let report = self.report_of(slot, false, now);
            let is_partner = self.pipelines.role(slot).is_partner();
            self.withdraw(slot, Why::Finished, now);
            self.protecting(now).unprotect(slot, Why::Finished);
            match report {
                Some(report) => threads.push(report),
                None => left_alone += u64::from(!is_partner),
            }
        }
        threads.sort_by_key(|r| (std::cmp::Reverse(r.executed), r.task.id));
        let began = self.records.started.unwrap_or(now);
        let governor = self.governor.as_mut();
        Report {
            applications,
            threads,
            earlier,
            left_alone,
            lost_events: self.records.lost,
            protected: self.protector.protected(),
            speeds: governor.map_or_else(Vec::new, |governor| {
                governor.finish(&mut self.enforcer, now)
            }),
            began,
            elapsed: now.since(began),
        }
    }

    pub fn held(&self) -> impl Iterator<Item = (Task, Reservation)> {
        self.tasks
            .iter()
            .filter_map(|(slot, thread)| Some((thread.task, self.enforcer.held(slot)?)))
    }

    /// Each thread that has not ended, with the application that it works for.
    pub fn tasks(&self) -> impl Iterator<Item = (Task, u32)> {
        let threads = self.tasks.iter();
        threads.map(|(_, thread)| (thread.task, thread.application()))
    }

    pub fn threads(&self, now: Instant) -> impl Iterator<Item = ThreadReport> {
        let slots = self.tasks.slots();
        slots.filter_map(move |slot| self.thread_in(slot, now))
    }

    #[must_use]
    pub fn thread(&self, task: TaskId, now: Instant) -> Option<ThreadReport> {
        self.thread_in(self.tasks.find(task)?, now)
    }

    fn thread_in(&self, slot: Slot, now: Instant) -> Option<ThreadReport> {
        let thread = self.tasks.get(slot)?;
        let last = thread.account.last_decision.as_ref();
        let state = self.state_of(slot);
        let refusal = match last {
            Some((What::TakenOver, why)) if state == State::TakenOver => Some(why),
            _ => self.refusal(slot),
        };
        let present = Present {
            user: None,
            reservation: self.enforcer.held(slot),
            is_locked: thread.estimator.is_locked(),
            bursts: thread.account.bursts,
            last: last.map(|(what, _)| *what),
            why: last.map_or_else(String::new, |(_, why)| why.to_string()),
            refusal_kind: refusal.map(|why| why.kind().to_owned()),
        };
        Some(ThreadReport {
            stage: self.pipelines.role(slot).stage(),
            present,
            ..self.figures_of(slot, state, now)?
        })
    }

    /// How these threads and applications go on, with the jobs that ended after `since`.
    pub fn progress<D>(
        &self,
        threads: Vec<ThreadReport>,
        applications: Vec<Application>,
        (since, now): (Instant, Instant),
    ) -> Progress<D> {
        let ids = threads.iter().map(|thread| thread.task.id);
        let jobs = ids.map(|id| (id, self.recent_jobs(id, since).collect()));
        Progress {
            now,
            reserved: self.held().map(|(_, held)| held.bandwidth()).sum(),
            total: self.total(),
            jobs: jobs.collect(),
            decisions: Vec::new(),
            applications,
            threads,
        }
    }

    /// The figures of a thread that ever had a rhythm.
    pub(super) fn report_of(&self, slot: Slot, ended: bool, now: Instant) -> Option<ThreadReport> {
        let state = if ended {
            State::Ended
        } else {
            self.state_of(slot)
        };
        self.figures_of(slot, state, now)
            .filter(|report| report.period.is_some())
    }

    fn figures_of(&self, slot: Slot, state: State, now: Instant) -> Option<ThreadReport> {
        let thread = self.tasks.get(slot)?;
        let stage = self.pipelines.role(slot).last_stage();
        Some(ThreadReport::of(
            thread.task,
            (thread.estimator.rhythm(), state, stage),
            self.served(slot)?,
            thread.estimator.first_heard(),
            &thread.account,
            now,
        ))
    }

    fn refusal(&self, slot: Slot) -> Option<&Why> {
        let account = &self.tasks.get(slot)?.account;
        if self.enforcer.server(slot).ceiling.is_some() {
            return account.last_refusal.as_ref();
        }
        match account.last_decision.as_ref() {
            Some((What::Refused, why) | (_, why @ Why::Yields))
                if self.state_of(slot) == State::Refused =>
            {
                Some(why)
            }
            _ if self.enforcer.held(slot).is_some() || self.state_of(slot) == State::NoNeed => None,
            _ => self.protector.of(slot).refusal(),
        }
    }

    fn served(&self, slot: Slot) -> Option<ServedBy> {
        let thread = self.tasks.get(slot)?;
        let means = if thread.account.holding.first.is_some() {
            Means::Reservation
        } else if self.protector.of(slot).was_in_force() {
            Means::Nice
        } else {
            Means::Nothing
        };
        Some(ServedBy {
            application: thread.application(),
            means,
            refusal: self.refusal(slot).map(Why::to_string),
        })
    }

    /// The part of the thread in `slot` in its application's sums. A thread of another program that
    /// never had a rhythm was only looked at, and has none.
    pub(super) fn member(&self, slot: Slot, now: Instant) -> Option<Member> {
        let thread = self.tasks.get(slot)?;
        if self.pipelines.role(slot).is_partner() {
            thread.estimator.rhythm()?;
        }
        let served = self.served(slot)?;
        let account = &thread.account;
        let holding = &account.holding;
        Some(Member {
            application: served.application,
            comm: thread.task.comm,
            is_first: thread.task.id.tid == served.application,
            means: served.means,
            is_refused: served.refusal.is_some() && self.enforcer.held(slot).is_none(),
            since: thread.estimator.first_heard(),
            jobs: account.counted.jobs,
            missed: account.counted.missed,
            executed: account.executed,
            promised: holding.reserved(now).runtime_in(holding.held(now)),
        })
    }

    /// The sums over each application's members up to `now`, those that have ended among them.
    #[must_use]
    pub fn applications(&self, now: Instant) -> Vec<Application> {
        let mut applications = self.records.applications.clone();
        let members = self.tasks.slots();
        let members = members.filter_map(|slot| self.member(slot, now));
        members.for_each(|member| applications.add(&member));
        applications.sums(now)
    }

    fn state_of(&self, slot: Slot) -> State {
        let server = self.enforcer.server(slot);
        let Some(thread) = self.tasks.get(slot) else {
            return State::Ended;
        };
        let estimator = &thread.estimator;
        if server.state.is_yielded() {
            State::TakenOver
        } else if server.fixed.is_some() {
            State::AskedFor
        } else if server.held().is_none() && self.protector.of(slot).is_in_force() {
            State::Raised
        } else if !estimator.is_locked() {
            match estimator.rhythm() {
                Some(_) => State::Released,
                None => State::Watched,
            }
        } else if server.held().is_some() {
            State::Kept
        } else {
            match self.allows(slot) {
                Err(Why::NoNeed) => State::NoNeed,
                Err(Why::AskedFor) => State::AskedFor,
                Err(_) => State::NoBetter,
                Ok(()) => State::Refused,
            }
        }
    }

    /// The sums over all threads that ever had a rhythm, up to `now`.
    #[must_use]
    pub fn sums(&self, now: Instant) -> Sums {
        let mut sums = self.records.ended.sums();
        let slots = self.tasks.slots();
        let reports = slots.filter_map(|slot| self.report_of(slot, false, now));
        reports.for_each(|report| sums.add(&report));
        sums
    }

    #[must_use]
    pub const fn lost_events(&self) -> u64 {
        self.records.lost
    }

    #[must_use]
    pub const fn total(&self) -> Bandwidth {
        self.arbiter.limits().total
    }

    /// The last jobs of `task` that ended after `since`, in the order in which they were told.
    pub fn recent_jobs(&self, task: TaskId, since: Instant) -> impl Iterator<Item = DoneJob> {
        let thread = self.tasks.with_id(task).into_iter();
        thread.flat_map(move |thread| thread.account.recent.since(since))
    }
}

pub(super) fn limits(settings: &Settings, capacity: &Capacity) -> Limits {
    let cap = Bandwidth::from_cpus(f64::from(capacity.cpus) * settings.allocation.total);
    Limits {
        total: cap.min(capacity.admissible),
        per_task: settings.allocation.per_task,
        shortest_runtime: capacity.shortest_runtime,
    }
}
