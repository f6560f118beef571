//! The controller: has the parts of the loop, and passes values from one to the next. No part calls
//! the run loop, and no policy is in it.
//!
//! Beside this file: `outside`, requests and questions from outside; and `reviews`, what timers and
//! each turn look at.

mod outside;
mod reviews;

use onbeat_decide::supervisor::Request;
use onbeat_model::{
    Actuator, Burst, Event, Instant, Mark, Name, Reservation, Said, Sensor, Span, Task, TaskId,
};

use crate::allocation;
use crate::allocation::Arbiter;
use crate::enforcement::{Enforcer, Enforcing};
use crate::estimation::{AnalysisQueue, News, Part};
use crate::need::Sign;
use crate::pipeline::PipelineFinder;
use crate::protection::{Protecting, Protector};
use crate::report::exited::RunRecords;
use crate::speed::{Renewal, SpeedGovernor};
use crate::task::Slot;
use crate::task::TaskTable;
use crate::task::TrackedThread;
use crate::task::clock::has_clock;
use crate::timer::{TimerEvent, TimerQueue};
use crate::{Settings, What, Why};

/// The most analyses of one turn: those of young threads take less than 2 ms together.
const ANALYSES_PER_TURN: usize = 16;

/// Keeps every tracked thread on its beat, through the actuator `A`. See the crate's head.
pub struct Controller<A: Actuator> {
    settings: Settings,
    tasks: TaskTable,
    analyses: AnalysisQueue,
    arbiter: Arbiter,
    enforcer: Enforcer<A>,
    timers: TimerQueue,
    governor: Option<SpeedGovernor>,
    pipelines: PipelineFinder,
    protector: Protector,
    /// Until then threads may run to which somebody else has given a real-time priority.
    others_real_time: Instant,
    records: RunRecords,
}

impl<A: Actuator> Controller<A> {
    #[must_use]
    pub fn new(settings: Settings, actuator: A) -> Self {
        let power = settings.power.zip(actuator.speeds());
        let pipelines = PipelineFinder::new(settings.pipelines.clone());
        let enforcer = Enforcer::new(actuator);
        let capacity = enforcer.capacity();
        let governor =
            power.map(|(settings, speeds)| SpeedGovernor::new(settings, speeds, capacity.cpus));
        Self {
            arbiter: Arbiter::new(outside::limits(&settings, capacity)),
            governor,
            settings,
            enforcer,
            tasks: TaskTable::default(),
            analyses: AnalysisQueue::default(),
            timers: TimerQueue::default(),
            pipelines,
            protector: Protector::default(),
            others_real_time: Instant::ZERO,
            records: RunRecords::default(),
        }
    }

    /// Takes in the sensor's `events`, which are all up to `now`, and does what follows from them.
    pub fn turn(&mut self, events: &[Event], now: Instant, sensor: &mut impl Sensor) {
        self.records.now = now;
        self.records.started.get_or_insert(now);
        for event in events {
            self.hear(event, now);
        }
        self.protector.assign(sensor);
        self.pipelines.hear_contacts(&self.tasks);
        while let Some(due) = self.timers.due(now) {
            self.look(due, now, sensor);
        }
        self.follow_applications(now);
        self.analyse_some(now);
        self.review_pipelines(now);
        self.press_speed(now);
        self.arbitrate(now, None);
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
                    if is_new {
                        thread.forget_treatment();
                    }
                }
                self.changed_party(task.id, at);
                if self.pipelines.announced(&self.tasks, slot, at) {
                    self.let_partner_go(slot, at);
                }
                self.join_application(slot);
                if is_new {
                    self.protecting(at).enter(slot);
                }
            }
            Event::Burst(burst) => {
                let slot = self.slot_of(burst.task, burst.woke);
                self.pipelines.woken(&burst);
                self.hear_burst(slot, &burst);
            }
            Event::Exhausted { at, task } => {
                if let Some(slot) = self.tasks.find(task) {
                    self.hear_run_out(slot, at);
                }
            }
            Event::Yielded { at, task } => self.yields(task, at),
            Event::Waited {
                at,
                task,
                waited,
                behind,
            } => self.waited(task, waited, behind, at),
            Event::Wakeup { .. } => {}
            Event::Woke {
                task, wakee, count, ..
            } => self.pipelines.woke(&self.tasks, task, &wakee, count),
            Event::Marked(mark) => self.marked(&mark),
            Event::Suppressed { task, count, .. } => {
                if let Some(thread) = self.tasks.with_id_mut(task) {
                    thread.account.marks.marks_suppressed += u64::from(count);
                }
            }
            Event::Exited { task, .. } => {
                if let Some(slot) = self.tasks.find(task) {
                    self.end(slot, now);
                }
            }
            Event::Lost { count, .. } => {
                self.records.lost = self.records.lost.saturating_add(count);
            }
        }
    }

    /// The thread calls `sched_yield()`: a reservation that follows its rhythm would stop it each
    /// time until its next period.
    fn yields(&mut self, task: TaskId, at: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.yields = true;
        }
        if self.enforcer.server(slot).fixed.is_none() {
            self.withdraw(slot, Why::Yields, at);
        }
    }

    fn hear_burst(&mut self, slot: Slot, burst: &Burst) {
        self.pipelines.begin_of_job(&self.tasks, slot, burst);
        self.protector.burst(slot, burst);
        let follows = self.pipelines.role(slot).follows_others();
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let (estimator, account) = (&mut thread.estimator, &mut thread.account);
        let heard = estimator.burst(burst, account, follows);
        if thread.estimator.take_analysis_due() {
            let bursts = thread.estimator.bursts().count();
            self.analyses.put(burst.task, bursts);
        }
        self.follow(slot, heard, burst.blocked);
    }

    fn hear_run_out(&mut self, slot: Slot, at: Instant) {
        let (held, stretch) = (self.enforcer.held(slot), self.stretch());
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.account.exhaustions += 1;
            if thread.estimator.exhausted(at, held, stretch) {
                self.consider(slot, Some(Why::Exhausted));
            }
        }
    }

    fn marked(&mut self, mark: &Mark) {
        let slot = self.slot_of(mark.task, mark.woke);
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let (estimator, account) = (&mut thread.estimator, &mut thread.account);
        let news = estimator.marked(mark, account, &self.settings.estimation);
        self.follow(slot, news, mark.at);
        if let Some(thread) = self.tasks.get_mut(slot)
            && let Some(why) = thread.estimator.take_contradiction()
        {
            let held = self.enforcer.held(slot);
            let decision = (What::Doubted, why);
            self.enforcing(mark.at).enter(slot, decision, (held, held));
        }
        if mark.said == Said::MissedDeadline {
            self.sign(slot, Sign::MissedDeadline, mark.at);
        }
    }

    fn follow(&mut self, slot: Slot, news: News, now: Instant) {
        match news {
            News::None => {}
            News::Job(late) => {
                self.protector.job(slot, late);
                self.consider(slot, None);
            }
            News::Demand(why) => self.consider(slot, why),
            News::Locked(why) => {
                let Some(thread) = self.tasks.get_mut(slot) else {
                    return;
                };
                let task = thread.task.id;
                if let Some(at) = thread.look_due(now) {
                    self.timers.set(at, TimerEvent::Check(task));
                }
                self.consider(slot, Some(why));
            }
            News::Lost(why) => self.withdraw(slot, why, now),
        }
    }

    fn analyse_some(&mut self, now: Instant) {
        for _ in 0..ANALYSES_PER_TURN {
            let is_there = |task| self.tasks.find(task).is_some();
            let Some(task) = self.analyses.next(now, is_there) else {
                break;
            };
            self.analyse(task, now);
        }
    }

    fn analyse(&mut self, task: TaskId, now: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        let follows = self.pipelines.role(slot).follows_others();
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let estimator = &mut thread.estimator;
        let Some(mut found) = estimator.analyse(now, follows) else {
            return;
        };
        // A thread whose timers tell its period needs no other clock.
        if !estimator.is_locked() && !estimator.is_armed() {
            found = found.filter(|rhythm| has_clock(&self.tasks, slot, rhythm.period, now));
        }
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let settings = &self.settings.estimation;
        let news = thread.estimator.conclude(found, now, settings);
        self.follow(slot, news, now);
    }

    /// How many times as long as now jobs will take, at the speed at which budgets must suffice.
    fn stretch(&self) -> f64 {
        self.governor.as_ref().map_or(1.0, SpeedGovernor::stretch)
    }

    /// The reservation that would serve the thread, and the execution time of a job that this
    /// provides for.
    fn wanted(&self, slot: Slot, part: Part) -> Option<(Reservation, Span)> {
        let server = self.enforcer.server(slot);
        if let Some(fixed) = server.fixed {
            return Some((fixed, fixed.runtime()));
        }
        let thread = self.tasks.get(slot).filter(|thread| !thread.yields)?;
        let demand = thread.estimator.demand(part, self.stretch())?;
        let ceiling = thread.ceiling(server.ceiling);
        let capacity = self.enforcer.capacity();
        let wanted = allocation::wanted(&demand, ceiling, capacity)?;
        Some((wanted, demand.job))
    }

    fn consider(&mut self, slot: Slot, why: Option<Why>) {
        let server = self.enforcer.server(slot);
        let waits = server.state.is_backed_off() && !self.arbiter.has_request(slot);
        if server.state.is_over() || waits || !self.may_reserve(slot) {
            return;
        }
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.treatment(&self.settings);
        }
        if let Some((wanted, job)) = self.wanted(slot, Part::Whole)
            && self.leaves_a_cpu(slot, wanted)
            && let Some(wanted) = self.arbiter.consider(slot, wanted)
        {
            self.request(slot, wanted, why.unwrap_or(Why::Demand { job }));
        }
    }

    /// A reserved thread goes before each with a real-time priority. While others have given one,
    /// fewer threads are reserved by need than there are CPUs: those that want most. A new one has
    /// to want half as much again, so that two of a kind do not take turns.
    fn leaves_a_cpu(&self, slot: Slot, wanted: Reservation) -> bool {
        let is_fixed = self.enforcer.server(slot).fixed.is_some();
        if is_fixed || self.settings.means.always || self.others_real_time <= self.records.now {
            return true;
        }
        let lead = if self.arbiter.has_request(slot) {
            1.0
        } else {
            1.5
        };
        let wants_more = |(other, request): &(Slot, &Request)| {
            *other != slot
                && request.wanted.bandwidth().as_cpus() * lead >= wanted.bandwidth().as_cpus()
        };
        let wanting_more = self.arbiter.requests().filter(wants_more).count();
        wanting_more + 1 < self.enforcer.capacity().cpus as usize
    }

    fn may_reserve(&self, slot: Slot) -> bool {
        let means = self.settings.means;
        let is_fixed = self.enforcer.server(slot).fixed.is_some();
        is_fixed || means.reserves && self.allows(slot).is_ok()
    }

    fn allows(&self, slot: Slot) -> Result<(), Why> {
        let always = self.settings.means.always;
        self.protector.allows(slot, always, self.records.now)
    }

    /// The thread was ready, and a thread of the process `behind` ran.
    fn waited(&mut self, task: TaskId, waited: Span, behind: u32, at: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        let application = self.tasks.get(slot).map(TrackedThread::application);
        let of_its_own = self.tasks.of_process(behind).next();
        if of_its_own.map(|(_, thread)| thread.application()) == application {
            return;
        }
        let sign = match behind {
            0 => Sign::Crowded(waited),
            _ => Sign::Waited(waited),
        };
        self.sign(slot, sign, at);
    }

    fn sign(&mut self, slot: Slot, sign: Sign, at: Instant) {
        let needing = self.protecting(at).sign(slot, sign);
        for slot in self.members(needing) {
            self.consider(slot, Some(Why::Waits));
        }
    }

    fn members(&self, application: Option<u32>) -> Vec<Slot> {
        let of_it =
            |(_, thread): &(Slot, &TrackedThread)| Some(thread.application()) == application;
        self.tasks
            .iter()
            .filter(of_it)
            .map(|(slot, _)| slot)
            .collect()
    }

    /// Releases the reservations of applications that may have none any more, or asks for them
    /// again.
    fn follow_applications(&mut self, now: Instant) {
        for application in self.protector.take_changed() {
            for slot in self.members(Some(application)) {
                match self.allows(slot) {
                    _ if self.enforcer.server(slot).fixed.is_some() => {}
                    Err(why) => self.withdraw(slot, why, now),
                    Ok(()) => self.consider(slot, None),
                }
            }
        }
    }

    fn request(&mut self, slot: Slot, wanted: Reservation, why: Why) {
        let weight = self.weight(slot);
        let Some(thread) = self.tasks.get(slot) else {
            return;
        };
        if self.enforcer.server(slot).fixed.is_some() {
            self.arbiter.put_fixed(slot, thread.task.id, wanted);
            self.arbiter.ask(slot, why);
            return;
        }
        let request = Request {
            task: thread.task.id,
            wanted,
            least: self.settings.allocation.minimum.min(wanted.bandwidth()),
            weight,
        };
        self.arbiter.put(slot, request);
        self.arbiter.ask(slot, why);
    }

    /// The weight of the thread's request. A thread that works for others has the greatest of
    /// theirs.
    fn weight(&mut self, slot: Slot) -> f64 {
        let users = self.pipelines.works_for(slot).iter();
        let users = users.filter_map(|user| self.tasks.find(*user));
        let users: Vec<Slot> = users
            .filter(|user| !self.pipelines.role(*user).is_partner())
            .collect();
        let mut weight_of = |slot| {
            let thread = self.tasks.get_mut(slot);
            thread.map(|thread| thread.treatment(&self.settings).weight)
        };
        let of_users = users.into_iter().filter_map(&mut weight_of);
        let weight = of_users.reduce(f64::max).or_else(|| weight_of(slot));
        weight.unwrap_or(0.0)
    }

    fn request_all(&mut self, why: &Why) {
        let slots: Vec<Slot> = self.arbiter.requests().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.arbiter.forget_changes(slot);
            if let Some((wanted, _)) = self.wanted(slot, Part::Whole) {
                self.request(slot, wanted, why.clone());
            }
        }
    }

    fn enforcing(&mut self, now: Instant) -> Enforcing<'_, A> {
        Enforcing {
            enforcer: &mut self.enforcer,
            tasks: &mut self.tasks,
            arbiter: &mut self.arbiter,
            timers: &mut self.timers,
            log: &mut self.records.log,
            scale: self.governor.as_ref().and_then(SpeedGovernor::scale),
            now,
            is_asked: false,
            may_end: false,
        }
    }

    fn protecting(&mut self, now: Instant) -> Protecting<'_, A> {
        Protecting {
            protector: &mut self.protector,
            tasks: &self.tasks,
            pipelines: &self.pipelines,
            timers: &mut self.timers,
            means: self.settings.means,
            total: f64::from(self.enforcer.capacity().cpus) * self.settings.allocation.total,
            enforcer: &mut self.enforcer,
            now,
        }
    }

    /// Has the enforcer do something, and tells the other parts.
    fn enforce(&mut self, slot: Slot, now: Instant, then: impl FnOnce(&mut Enforcing<'_, A>)) {
        let mut enforcing = self.enforcing(now);
        then(&mut enforcing);
        let (may_end, is_asked) = (enforcing.may_end, enforcing.is_asked);
        if may_end {
            self.dismiss(slot, now);
        }
        if is_asked {
            self.protecting(now).replaced(slot);
        }
    }

    /// Puts the changed requests in force, except that of the thread in `passed_over`.
    fn arbitrate(&mut self, now: Instant, passed_over: Option<Slot>) {
        self.enforcing(now).keep_within_quotas();
        let held = |slot| self.enforcer.held(slot);
        let adjustments = self.arbiter.arbitrate(&held, self.enforcer.admitted());
        let Some(adjustments) = adjustments else {
            return;
        };
        let tries = self.enforcer.tries();
        for adjustment in adjustments {
            let slot = adjustment.slot;
            if Some(slot) != passed_over {
                self.enforce(slot, now, |it| it.apply(adjustment));
            }
        }
        self.enforcer.arbitrated(tries);
    }

    fn withdraw(&mut self, slot: Slot, why: Why, now: Instant) {
        self.enforce(slot, now, |it| it.withdraw(slot, why));
    }

    fn slot_of(&mut self, task: TaskId, at: Instant) -> Slot {
        if let Some(slot) = self.tasks.find(task) {
            return slot;
        }
        let unnamed = Task {
            id: task,
            pid: task.tid,
            comm: Name::default(),
        };
        let slot = self
            .tasks
            .enter(TrackedThread::new(unnamed, at, &self.settings));
        self.enforcer.enter(slot, at);
        slot
    }

    /// A thread of another program works for the application of the thread that it was found with,
    /// also after that one's end.
    fn join_application(&mut self, slot: Slot) {
        let user = self.pipelines.works_for(slot).first();
        let user = user.and_then(|&user| self.tasks.with_id(user));
        let application = user.map(TrackedThread::application);
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.party.application = thread.party.application.or(application);
        }
    }

    fn end(&mut self, slot: Slot, now: Instant) {
        let Some(task) = self.tasks.get(slot).map(|thread| thread.task.id) else {
            return;
        };
        self.arbiter.withdraw(slot);
        self.enforcing(now).ended(slot);
        self.tasks.leave(task);
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.estimator.finish_job(&mut thread.account);
            let ended = !thread.unheard;
            if let Some(member) = self.member(slot, now) {
                self.records.applications.add_ended(&member);
            }
            match self.report_of(slot, ended, now) {
                Some(report) => self.records.ended.add(report),
                None => {
                    self.records.left_alone += u64::from(!self.pipelines.role(slot).is_partner())
                }
            }
        }
        self.tasks.remove(slot);
        self.pipelines.forget_role(slot);
        self.pipelines.review_soon();
        self.arbiter.forget(slot);
        self.enforcer.forget(slot);
        self.protector.forget(slot);
    }

    /// Forgets an untracked thread once it has its former scheduling back. The actuator must not be
    /// told of its end, because it would then give nothing back.
    fn dismiss(&mut self, slot: Slot, now: Instant) {
        let server = self.enforcer.server(slot);
        let is_free = server.fixed.is_none() && server.held().is_none();
        if is_free && self.tasks.get(slot).is_some_and(|thread| thread.unheard) {
            self.end(slot, now);
        }
    }

    fn renew(&mut self, renewal: Option<Renewal>) {
        let Some(Renewal { factor, requests }) = renewal else {
            return;
        };
        if let Some(factor) = factor {
            for (_, thread) in self.tasks.iter_mut() {
                thread.estimator.speed_changed(factor);
            }
        }
        if let Some(why) = requests {
            self.request_all(&why);
        }
    }
}
