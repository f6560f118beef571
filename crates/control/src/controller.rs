//! The controller: what it keeps, what it hears, and what it looks at again when the time has come.

use std::collections::VecDeque;

use onbeat_decide::supervisor::Limits;
use onbeat_decide::supervisor::packing::Packing;
use onbeat_model::{
    Actuator, Bandwidth, Burst, Capacity, Event, Instant, Name, Reservation, Span, Task, TaskId,
};

use crate::backlog::Backlog;
use crate::boosts::{BoostWhy, Boosts};
use crate::claims::Claims;
use crate::ended::Ended;
use crate::pace::Pace;
use crate::pipelines::Pipelines;
use crate::power::Power;
use crate::protection::Applications;
use crate::report::{Report, ThreadReport};
use crate::roster::{Roster, Slot};
use crate::rounds::Rounds;
use crate::squeeze::Squeeze;
use crate::starving::Starving;
use crate::task::state::Enforcement;
use crate::task::{Heard, Thread};
use crate::timers::Timers;
use crate::trials::Trials;
use crate::{Entry, Method, Settings, Why, asked};

/// Keeps every thread it hears of on its beat, through `A`. See the crate's head.
pub struct Controller<A: Actuator> {
    pub(crate) settings: Settings,
    pub(crate) actuator: A,
    pub(crate) capacity: Capacity,
    pub(crate) limits: Limits,
    pub(crate) threads: Vec<Option<Box<Thread>>>,
    pub(crate) claims: Claims,
    pub(crate) timers: Timers<Due>,
    pub(crate) changed: Vec<Slot>,
    pub(crate) crowded: bool,
    pub(crate) rounds: Rounds,
    pub(crate) arbitrate_all: bool,
    pub(crate) in_force: Bandwidth,
    pub(crate) squeeze: Squeeze,
    pub(crate) packing: Packing,
    pub(crate) power: Option<Power>,
    pub(crate) journal: Vec<Entry>,
    pub(crate) boosts: Boosts,
    pub(crate) roster: Roster,
    pub(crate) pipelines: Option<Pipelines>,
    pub(crate) pace: Pace,
    pub(crate) backlog: Backlog,
    free: Vec<Slot>,
    analyses: VecDeque<TaskId>,
    verifications: VecDeque<TaskId>,
    pub(crate) trials: Trials,
    pub(crate) applications: Applications,
    pub(crate) ended: Ended,
    left_alone: u64,
    pub(crate) lost: u64,
    started: Option<Instant>,
}

/// What is to be looked at when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Does the thread rest, and is it still ours?
    Look(TaskId),
    /// It can be asked for again.
    Retry(TaskId),
    /// It has yet to be given back what it had.
    GiveBack(TaskId),
    /// Its CPU time is to be sampled.
    Sample(TaskId),
    /// Does it starve?
    Starves(TaskId),
    /// A thread without a rhythm has had its chance.
    TrialOver(TaskId),
    /// It said that it missed a deadline, and may have a boost.
    Boost(TaskId),
    /// Which threads are protected?
    Protection,
    /// There may be room again.
    Widen,
}

impl<A: Actuator> Controller<A> {
    /// One that has heard of no thread yet.
    #[must_use]
    pub fn new(settings: Settings, actuator: A) -> Self {
        let capacity = actuator.capacity();
        let power = settings.power.zip(actuator.speeds());
        let limits = asked::limits(&settings, &capacity);
        let cap_of_one = Bandwidth::from_cpus(settings.total);
        let pipelines = settings.pipelines.clone().map(Pipelines::new);
        let partitions = actuator.partitions().into_iter();
        let rooms: Vec<Bandwidth> = partitions.map(|room| room.min(cap_of_one)).collect();
        Self {
            settings: match rooms.iter().copied().max() {
                Some(widest) => settings.capped(widest),
                None => settings,
            },
            actuator,
            capacity,
            limits,
            threads: Vec::new(),
            claims: Claims::default(),
            timers: Timers::new(),
            changed: Vec::new(),
            crowded: false,
            rounds: Rounds::default(),
            arbitrate_all: false,
            in_force: Bandwidth::ZERO,
            squeeze: Squeeze::default(),
            packing: Packing::new(rooms),
            power: power.map(|(settings, speeds)| Power::new(settings, speeds, capacity.cpus)),
            journal: Vec::new(),
            boosts: Boosts::default(),
            roster: Roster::default(),
            pipelines,
            pace: Pace::default(),
            backlog: Backlog::default(),
            free: Vec::new(),
            analyses: VecDeque::new(),
            verifications: VecDeque::new(),
            trials: Trials::default(),
            applications: Applications::default(),
            ended: Ended::default(),
            left_alone: 0,
            lost: 0,
            started: None,
        }
    }

    /// The entries written since this was last called.
    pub fn journal(&mut self) -> std::vec::Drain<'_, Entry> {
        self.journal.drain(..)
    }

    /// The actuator.
    pub const fn actuator(&mut self) -> &mut A {
        &mut self.actuator
    }

    /// The actuator, when the loop is over.
    #[must_use]
    pub fn into_actuator(self) -> A {
        self.actuator
    }

    /// Takes in `events`, which are all up to `now`, and does what follows from them. `executed`
    /// tells the CPU time that a task has used up to now.
    pub fn turn(
        &mut self,
        events: &[Event],
        now: Instant,
        executed: &mut dyn FnMut(TaskId) -> Option<Span>,
    ) {
        self.started.get_or_insert(now);
        self.pace.turn(now);
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
        match *event {
            Event::Tracked { at, task } | Event::Renamed { at, task } => {
                let slot = self.slot_of(task.id, at);
                if let Some(thread) = self.thread(slot) {
                    thread.task = task;
                    thread.unheard = false;
                }
                self.changed_party(task.id);
                self.announced(slot, at);
                if matches!(event, Event::Tracked { .. }) {
                    self.protect_new(slot, at);
                    self.join_trial(slot, at);
                }
            }
            Event::Burst(burst) => self.burst(&burst, now),
            Event::Exhausted { at, task } => self.exhausted(task, at, now),
            Event::Wakeup { .. } => {}
            Event::Woke {
                task, wakee, count, ..
            } => self.woke(task, &wakee, count),
            Event::Marked(mark) => {
                if let Some(slot) = self.roster.find(mark.task) {
                    self.hear_of(slot, now);
                    self.backlog.hurry(slot);
                }
                self.marked(&mark);
            }
            Event::Suppressed { task, count, .. } => self.suppressed(task, count),
            Event::Exited { task, .. } => {
                if let Some(slot) = self.roster.find(task) {
                    self.end(slot, now);
                }
            }
            Event::Lost { count, .. } => self.lost = self.lost.saturating_add(count),
        }
    }

    pub(crate) fn hear_burst(&mut self, slot: Slot, burst: &Burst) {
        self.begin_of_job(slot, burst);
        self.hear_waker(slot, burst);
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let heard = thread.burst(burst, &self.settings);
        if thread.analysis_due() {
            let queue = if thread.is_to_be_verified() {
                &mut self.verifications
            } else {
                &mut self.analyses
            };
            queue.push_back(burst.task);
        }
        match heard {
            Heard::Nothing => self.try_too(slot, burst.blocked),
            Heard::Job => self.consider(slot, None),
            Heard::Lost(why) => self.withdraw(slot, why, burst.blocked),
            Heard::Starves(why) => {
                self.begin_trial(slot, burst.task, why, burst.blocked);
            }
        }
    }

    /// Its budget ran out.
    pub(crate) fn hear_run_out(&mut self, slot: Slot, at: Instant) {
        let stretch = self.power.as_ref().map_or(1.0, Power::stretch);
        if let Some(thread) = self.thread(slot)
            && thread.exhausted(at, stretch)
        {
            self.consider(slot, Some(Why::Exhausted));
        }
    }

    /// Those first that wait for a rhythm.
    fn analyse_some(&mut self, now: Instant) {
        let mut verifications = self.verifications();
        for _ in 0..self.settings.analyses_per_turn {
            let next = self.analyses.pop_front().or_else(|| {
                verifications = verifications.checked_sub(1)?;
                self.verifications.pop_front()
            });
            let Some(task) = next else {
                break;
            };
            self.analyse(task, now);
        }
    }

    fn analyse(&mut self, task: TaskId, now: Instant) {
        let Some(slot) = self.roster.find(task) else {
            return;
        };
        self.hear_of(slot, now);
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let Some(mut found) = thread.analyse(now, &self.settings) else {
            return;
        };
        // One that is locked may be late at each of its timer's expiries, and is not doubted for that.
        if !thread.is_kept() && self.settings.method == Method::Default {
            found = found.filter(|rhythm| self.has_clock(slot, rhythm.period, now));
        }
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let outcome = thread.conclude(found, now, &self.settings);
        self.follow(slot, task, outcome, now);
    }

    pub(crate) fn thread(&mut self, slot: Slot) -> Option<&mut Thread> {
        self.threads.get_mut(slot)?.as_deref_mut()
    }

    pub(crate) fn slot_of(&mut self, task: TaskId, at: Instant) -> Slot {
        if let Some(slot) = self.roster.find(task) {
            return slot;
        }
        let unnamed = Task {
            id: task,
            pid: task.tid,
            comm: Name::default(),
        };
        let thread = Some(Box::new(Thread::new(unnamed, at, &self.settings)));
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(empty) = self.threads.get_mut(slot) {
                    *empty = thread;
                }
                slot
            }
            None => {
                self.threads.push(thread);
                self.threads.len() - 1
            }
        };
        self.roster.enter(task, slot);
        self.pace.hurry(at);
        if self.settings.trials {
            self.timers
                .set(Starving::first_look(at), Due::Starves(task));
        }
        slot
    }

    /// The thread is gone: only its figures stay.
    pub(crate) fn end(&mut self, slot: Slot, now: Instant) {
        self.hear_of(slot, now);
        let Some(task) = self.thread(slot).map(|thread| thread.task.id) else {
            return;
        };
        self.drop_claim(slot);
        self.enforced(slot, now, Enforcement::released);
        self.stop_pleading(slot);
        self.actuator.ended(task);
        self.roster.leave(task);
        self.review_soon();
        self.changed.retain(|&other| other != slot);
        self.rounds.forget(slot);
        self.backlog.forget(slot);
        if let Some(mut thread) = self.threads.get_mut(slot).and_then(Option::take) {
            self.free.push(slot);
            thread.finish_job();
            match ThreadReport::of(&thread, !thread.unheard, now) {
                Some(report) => self.ended.add(report),
                None => self.left_alone += u64::from(!thread.path.is_partner()),
            }
        }
    }

    /// Gives every thread back what it had, and tells how it all went.
    pub fn finish(&mut self, now: Instant) -> Report {
        self.hear_all(now);
        let (mut reports, earlier) = self.ended.take();
        let mut left_alone = self.left_alone;
        for slot in 0..self.threads.len() {
            let Some(thread) = self.thread(slot) else {
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
            lost_events: self.lost,
            boosted: self.boosts.boosted,
            protected: self.applications.protected,
            speeds: self.finish_speed(now),
            elapsed: now.since(self.started.unwrap_or(now)),
        }
    }

    /// What every thread holds now.
    pub fn held(&self) -> impl Iterator<Item = (Task, Reservation)> {
        self.threads
            .iter()
            .flatten()
            .filter_map(|thread| Some((thread.task, thread.held()?)))
    }
}
