//! The controller: has the parts of the loop, and passes values from one to the next.
//!
//! Beside this file: `explicit`, requests from outside; `outcomes`, what follows from an analysis
//! or a mark; and `probations`, which threads are served on probation.

mod explicit;
mod outcomes;
mod probations;

use onbeat_model::{
    Actuator, Bandwidth, Burst, Event, Instant, Name, Refusal, Reservation, Span, Task, TaskId,
};

use crate::allocation::Conditions;
use crate::allocation::arbiter::Arbiter;
use crate::batching::Batching;
use crate::enforcement::{Books, Effects, Enforcer};
use crate::estimation::starvation::Starving;
use crate::estimation::{Estimating, clock};
use crate::pipeline::Pipelines;
use crate::protection::Boosting;
use crate::protection::boost::BoostWhy;
use crate::report::decision::Log;
use crate::report::exited::Records;
use crate::report::{Report, ThreadReport};
use crate::speed::Power;
use crate::task::state::Enforcement;
use crate::task::table::{Slot, TaskTable};
use crate::task::{Heard, Thread};
use crate::timer::{TimerEvent, Timers};
use crate::{Entry, Method, Settings, Why};

/// Keeps every tracked thread on its beat, through the actuator `A`. See the crate's head.
pub struct Controller<A: Actuator> {
    pub(crate) settings: Settings,
    pub(crate) tasks: TaskTable,
    pub(crate) estimating: Estimating,
    pub(crate) arbiter: Arbiter,
    pub(crate) enforcer: Enforcer<A>,
    pub(crate) timers: Timers<TimerEvent>,
    pub(crate) power: Option<Power>,
    pub(crate) pipelines: Option<Pipelines>,
    pub(crate) boosting: Boosting,
    pub(crate) batching: Batching,
    pub(crate) log: Log,
    pub(crate) records: Records,
}

/// The time between two checks of a requested reservation.
pub(crate) const LOOK_AT_FIXED: Span = Span::from_ms(2000);

/// The shortest time between two checks whether a thread still has its reservation. Each check is a
/// system call, so a crowd is checked more rarely.
const CHECKED_EVERY: Span = Span::from_ms(1000);

impl<A: Actuator> Controller<A> {
    /// Makes one without threads.
    #[must_use]
    pub fn new(settings: Settings, actuator: A) -> Self {
        let power = settings.power.zip(actuator.speeds());
        let cap_of_one = Bandwidth::from_cpus(settings.total);
        let pipelines = settings.pipelines.clone().map(Pipelines::new);
        let partitions = actuator.partitions().into_iter();
        let rooms: Vec<Bandwidth> = partitions.map(|room| room.min(cap_of_one)).collect();
        let widest = rooms.iter().copied().max();
        let enforcer = Enforcer::new(actuator, rooms);
        let capacity = enforcer.capacity();
        Self {
            arbiter: Arbiter::new(explicit::limits(&settings, capacity)),
            power: power.map(|(settings, speeds)| Power::new(settings, speeds, capacity.cpus)),
            settings: match widest {
                Some(widest) => settings.capped(widest),
                None => settings,
            },
            enforcer,
            tasks: TaskTable::default(),
            estimating: Estimating::default(),
            timers: Timers::new(),
            pipelines,
            boosting: Boosting::default(),
            batching: Batching::default(),
            log: Log::default(),
            records: Records::default(),
        }
    }

    /// The entries written since this was last called.
    pub fn journal(&mut self) -> std::vec::Drain<'_, Entry> {
        self.log.drain()
    }

    /// The actuator.
    pub const fn actuator(&mut self) -> &mut A {
        self.enforcer.actuator()
    }

    /// The actuator, when the loop is over.
    #[must_use]
    pub fn into_actuator(self) -> A {
        self.enforcer.into_actuator()
    }

    /// Takes in `events`, which are all up to `now`, and does what follows from them. `executed`
    /// tells the CPU time that a task has used up to now.
    pub fn turn(
        &mut self,
        events: &[Event],
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        self.records.started.get_or_insert(now);
        self.batching.pace.turn(now);
        for event in events {
            self.hear(event, now);
        }
        self.hear_contacts();
        self.hear_in_turn(now);
        while let Some(due) = self.timers.due(now) {
            self.look(due, now, executed);
        }
        self.analyse_some(now);
        self.review_pipelines(now);
        self.press_speed(now);
        self.settle(now, None);
        self.pace_speed(now);
    }

    fn hear(&mut self, event: &Event, now: Instant) {
        let is_new = matches!(event, Event::Tracked { .. });
        if !is_new && event.task().is_some_and(|task| self.tasks.is_gone(task)) {
            return;
        }
        match *event {
            Event::Tracked { at, task } | Event::Renamed { at, task } => {
                let slot = self.slot_of(task.id, at);
                if let Some(thread) = self.tasks.get_mut(slot) {
                    thread.task = task;
                    thread.unheard = false;
                }
                self.changed_party(task.id);
                self.announced(slot, at);
                if matches!(event, Event::Tracked { .. }) {
                    self.protect_new(slot, at);
                    self.join_probation(slot, at);
                }
            }
            Event::Burst(burst) => self.burst(&burst, now),
            Event::Exhausted { at, task } => self.exhausted(task, at, now),
            Event::Wakeup { .. } => {}
            Event::Woke {
                task, wakee, count, ..
            } => self.woke(task, &wakee, count),
            Event::Marked(mark) => {
                if let Some(slot) = self.tasks.find(mark.task) {
                    self.hear_of(slot, now);
                    self.batching.backlog.hurry(slot);
                }
                self.marked(&mark);
            }
            Event::Suppressed { task, count, .. } => self.suppressed(task, count),
            Event::Exited { task, .. } => {
                if let Some(slot) = self.tasks.find(task) {
                    self.end(slot, now);
                }
            }
            Event::Lost { count, .. } => {
                self.records.lost = self.records.lost.saturating_add(count)
            }
        }
    }

    pub(crate) fn hear_burst(&mut self, slot: Slot, burst: &Burst) {
        self.begin_of_job(slot, burst);
        self.hear_application(slot, burst);
        clock::hear_waker(&mut self.tasks, slot, burst);
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let heard = thread.burst(burst, &self.settings);
        if thread.analysis_due() {
            let queue = if thread.is_to_be_verified() {
                &mut self.estimating.verifications
            } else {
                &mut self.estimating.analyses
            };
            queue.push_back(burst.task);
        }
        match heard {
            Heard::Nothing => self.try_too(slot, burst.blocked),
            Heard::Job if self.stand_down(slot, burst.blocked) => {}
            Heard::Job => self.consider(slot, None),
            Heard::Lost(why) => self.withdraw(slot, why, burst.blocked),
            Heard::Starves(why) => {
                self.begin_probation(slot, burst.task, why, burst.blocked);
            }
        }
    }

    /// Takes in an exhausted budget.
    pub(crate) fn hear_run_out(&mut self, slot: Slot, at: Instant) {
        let stretch = self.power.as_ref().map_or(1.0, Power::stretch);
        if let Some(thread) = self.tasks.get_mut(slot)
            && thread.exhausted(at, stretch)
        {
            self.consider(slot, Some(Why::Exhausted));
        }
    }

    /// The arbiter, the threads, and what requests depend on besides them.
    fn requesting(&mut self) -> (&mut Arbiter, &mut TaskTable, Conditions<'_>) {
        let conditions = Conditions {
            settings: &self.settings,
            capacity: self.enforcer.capacity(),
            stretch: self.power.as_ref().map_or(1.0, Power::stretch),
        };
        (&mut self.arbiter, &mut self.tasks, conditions)
    }

    /// Reconsiders the thread's request, because its demand may have changed.
    pub(crate) fn consider(&mut self, slot: Slot, why: Option<Why>) {
        let (arbiter, tasks, conditions) = self.requesting();
        arbiter.consider(tasks, slot, why, &conditions);
    }

    /// Settles all requests anew in this turn.
    pub(crate) fn put_all_in(&mut self, why: &Why) {
        let (arbiter, tasks, conditions) = self.requesting();
        arbiter.put_all_in(tasks, why, &conditions);
    }

    pub(crate) fn withdraw_request(&mut self, slot: Slot) {
        self.batching.backlog.hurry(slot);
        self.arbiter.withdraw(&mut self.tasks, slot);
    }

    pub(crate) fn enforcing(&mut self) -> (&mut Enforcer<A>, Books<'_>) {
        let books = Books {
            tasks: &mut self.tasks,
            arbiter: &mut self.arbiter,
            timers: &mut self.timers,
            log: &mut self.log,
            scale: self.power.as_ref().and_then(Power::scale),
        };
        (&mut self.enforcer, books)
    }

    /// Tells the other parts about an enforcement.
    fn follow_up(&mut self, slot: Slot, effects: Effects, now: Instant) {
        if effects.is_withdrawn {
            self.batching.backlog.hurry(slot);
        }
        if effects.may_end {
            self.dismiss(slot, now);
        }
        if effects.is_asked {
            self.protection_replaced(slot, now);
        }
    }

    /// Puts the changed requests in force, except that of the thread in `passed_over`.
    pub(crate) fn settle(&mut self, now: Instant, passed_over: Option<Slot>) {
        let (enforcer, mut books) = self.enforcing();
        for (slot, effects) in enforcer.keep_within_quotas(&mut books, now) {
            self.follow_up(slot, effects, now);
        }
        let admitted = self.enforcer.admitted();
        let Some(mut arbitration) = self.arbiter.begin(&self.tasks, admitted, now) else {
            return;
        };
        let tries = self.enforcer.tries();
        loop {
            let in_force = self.enforcer.in_force();
            let next = self
                .arbiter
                .next(&mut arbitration, &mut self.tasks, in_force, now);
            let Some(adjustment) = next else {
                break;
            };
            let slot = adjustment.slot;
            if Some(slot) != passed_over {
                let (enforcer, mut books) = self.enforcing();
                let effects = enforcer.apply(&mut books, adjustment, now);
                self.follow_up(slot, effects, now);
            }
        }
        self.arbiter.end(arbitration, &mut self.tasks);
        self.enforcer.settled(tries);
    }

    pub(crate) fn reserved(&mut self, slot: Slot, target: Reservation, why: Why, now: Instant) {
        let (enforcer, mut books) = self.enforcing();
        enforcer.reserved(&mut books, slot, target, why, now);
        self.protection_replaced(slot, now);
    }

    /// Withdraws the thread's request, and releases its reservation.
    pub(crate) fn withdraw(&mut self, slot: Slot, why: Why, now: Instant) {
        let (enforcer, mut books) = self.enforcing();
        let effects = enforcer.withdraw(&mut books, slot, why, now);
        self.follow_up(slot, effects, now);
    }

    /// Yields to another program that changed the thread.
    pub(crate) fn yield_to_other(&mut self, slot: Slot, refusal: Option<Refusal>, now: Instant) {
        let (enforcer, mut books) = self.enforcing();
        let effects = enforcer.yield_to_other(&mut books, slot, refusal, now);
        self.follow_up(slot, effects, now);
    }

    /// Notes that the thread is gone. The sensor tells of its end later.
    pub(crate) fn let_go(&mut self, slot: Slot, now: Instant) {
        let (enforcer, mut books) = self.enforcing();
        let effects = enforcer.let_go(&mut books, slot, now);
        self.follow_up(slot, effects, now);
    }

    /// Asks the actuator again after a back-off.
    fn retry(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        if thread.ceiling.take().is_some() && thread.enforcement.is_open() {
            self.consider(slot, None);
            return;
        }
        let Some(why) = thread.enforcement.retry(now) else {
            return;
        };
        if thread.place.is_some() {
            let why = why.unwrap_or(Why::RoomAgain);
            self.arbiter.ask(&mut self.tasks, slot, why);
        } else if thread.held().is_some() {
            let why = why.unwrap_or(Why::RhythmLost);
            let (enforcer, mut books) = self.enforcing();
            let effects = enforcer.release(&mut books, slot, why, now);
            self.follow_up(slot, effects, now);
        } else {
            self.consider(slot, why);
        }
    }

    fn give_back_again(&mut self, slot: Slot, now: Instant) {
        let (enforcer, mut books) = self.enforcing();
        let effects = enforcer.give_back_again(&mut books, slot, now);
        self.follow_up(slot, effects, now);
    }

    fn look(
        &mut self,
        event: TimerEvent,
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        match event {
            TimerEvent::Look(task) => self.look_at(task, now),
            TimerEvent::Retry(task) => {
                if let Some(slot) = self.tasks.find(task) {
                    self.retry(slot, now);
                }
            }
            TimerEvent::GiveBack(task) => {
                if let Some(slot) = self.tasks.find(task) {
                    self.give_back_again(slot, now);
                }
            }
            TimerEvent::Sample(task) => {
                if let Some(slot) = self.tasks.find(task) {
                    self.hear_of(slot, now);
                }
                self.sample(task, now, executed(task));
            }
            TimerEvent::Starves(task) => self.starves(task, now, executed),
            TimerEvent::ProbationOver(task) => self.end_probation(task, now),
            TimerEvent::Boost(task) => self.look_at_boost(task, now, executed(task)),
            TimerEvent::Protection => self.review_protection(now, executed),
            TimerEvent::Widen => {
                self.enforcer.widen();
                self.arbiter.look_at_all();
            }
        }
    }

    pub(crate) fn look_at(&mut self, task: TaskId, now: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        if self.batching.backlog.look_later(slot) {
            return;
        }
        let checked_every = CHECKED_EVERY * self.crowd();
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        thread.looked_after = false;
        if matches!(thread.enforcement, Enforcement::Gone) {
            self.end(slot, now);
            return;
        }
        if let Some(why) = thread.rest(now) {
            let computes = matches!(why, Why::NoLongerBlocks { .. });
            self.withdraw(slot, why, now);
            if computes {
                self.no_stage_for_now(slot, now);
            }
            return;
        }
        let fixed = thread.fixed.map(|_| now + LOOK_AT_FIXED);
        let Some(at) = fixed.or_else(|| thread.rests_at(now)) else {
            return;
        };
        thread.looked_after = true;
        let due = thread.held().is_some() && now.since(thread.checked) >= checked_every;
        if due {
            thread.checked = now;
        }
        let runs = thread.ran_lately(now);
        self.timers.set(at, TimerEvent::Look(task));
        if due {
            let (enforcer, mut books) = self.enforcing();
            let effects = enforcer.reconcile(&mut books, slot, (task, runs), now);
            self.follow_up(slot, effects, now);
        }
    }

    fn sample(&mut self, task: TaskId, now: Instant, executed: Option<Span>) {
        let every = self.settings.parameters.sampling;
        let slot = self.tasks.find(task);
        let Some(thread) = slot.and_then(|slot| self.tasks.get_mut(slot)) else {
            return;
        };
        thread.is_sampled = thread.sample(now, executed);
        if thread.is_sampled {
            self.timers.set(now + every, TimerEvent::Sample(task));
        }
        if let Some(slot) = slot {
            self.consider(slot, None);
        }
    }

    /// Threads without a rhythm come first.
    fn analyse_some(&mut self, now: Instant) {
        let mut verifications = self.verifications();
        for _ in 0..self.settings.analyses_per_turn {
            let next = self.estimating.analyses.pop_front().or_else(|| {
                verifications = verifications.checked_sub(1)?;
                self.estimating.verifications.pop_front()
            });
            let Some(task) = next else {
                break;
            };
            self.analyse(task, now);
        }
    }

    fn analyse(&mut self, task: TaskId, now: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        self.hear_of(slot, now);
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let Some(mut found) = thread.analyse(now, &self.settings) else {
            return;
        };
        // A thread whose timers tell its period needs no other clock.
        if !thread.is_locked()
            && self.settings.method == Method::Default
            && thread.armed(&self.settings).is_none()
        {
            found = found.filter(|rhythm| clock::has_clock(&self.tasks, slot, rhythm.period, now));
        }
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let outcome = thread.conclude(found, now, &self.settings);
        self.follow(slot, task, outcome, now);
    }

    pub(crate) fn slot_of(&mut self, task: TaskId, at: Instant) -> Slot {
        if let Some(slot) = self.tasks.find(task) {
            return slot;
        }
        let unnamed = Task {
            id: task,
            pid: task.tid,
            comm: Name::default(),
        };
        let slot = self.tasks.enter(Thread::new(unnamed, at, &self.settings));
        self.batching.pace.hurry(at);
        if self.settings.trials {
            self.timers
                .set(Starving::first_look(at), TimerEvent::Starves(task));
        }
        slot
    }

    /// Keeps only the figures of a thread that is gone.
    pub(crate) fn end(&mut self, slot: Slot, now: Instant) {
        self.hear_of(slot, now);
        let Some(task) = self.tasks.get_mut(slot).map(|thread| thread.task.id) else {
            return;
        };
        self.withdraw_request(slot);
        let (enforcer, mut books) = self.enforcing();
        enforcer.ended(&mut books, slot, now);
        self.stop_pleading(slot);
        self.tasks.leave(task);
        self.review_soon();
        self.arbiter.forget(slot);
        self.batching.backlog.forget(slot);
        if let Some(mut thread) = self.tasks.remove(slot) {
            thread.finish_job();
            match ThreadReport::of(&thread, !thread.unheard, now) {
                Some(report) => self.records.ended.add(report),
                None => self.records.left_alone += u64::from(!thread.path.is_partner()),
            }
        }
    }

    /// Gives every thread its former scheduling, and returns the report.
    pub fn finish(&mut self, now: Instant) -> Report {
        self.hear_all(now);
        let (mut reports, earlier) = self.records.ended.take();
        let mut left_alone = self.records.left_alone;
        for slot in self.tasks.slots() {
            let Some(thread) = self.tasks.get_mut(slot) else {
                continue;
            };
            thread.finish_job();
            let report = ThreadReport::of(thread, false, now);
            let is_partner = thread.path.is_partner();
            self.withdraw(slot, Why::Finished, now);
            self.unprotect(slot, BoostWhy::Finished, now);
            self.end_boost(slot, BoostWhy::Finished, now);
            match report {
                Some(report) => reports.push(report),
                None => left_alone += u64::from(!is_partner),
            }
        }
        reports.sort_by_key(|r| (std::cmp::Reverse(r.executed), r.task.id));
        Report {
            threads: reports,
            earlier,
            left_alone,
            lost_events: self.records.lost,
            boosted: self.boosting.boosts.boosted,
            protected: self.boosting.applications.protected,
            speeds: self.finish_speed(now),
            elapsed: now.since(self.records.started.unwrap_or(now)),
        }
    }

    /// The reservations in force.
    pub fn held(&self) -> impl Iterator<Item = (Task, Reservation)> {
        self.tasks
            .iter()
            .filter_map(|thread| Some((thread.task, thread.held()?)))
    }
}
