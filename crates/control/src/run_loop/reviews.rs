//! Looked at by timers and by each turn: silent threads and their reservations, pipelines, and the
//! speed of the CPUs.

use onbeat_decide::supervisor::Request;
use onbeat_model::{Actuator, Instant, Reservation, Sensor, Span, TaskId};

use super::Controller;
use crate::Why;
use crate::estimation::Part;
use crate::pipeline::Review;
use crate::speed::{Governed, Renewal, SpeedGovernor};
use crate::task::Slot;
use crate::timer::TimerEvent;

/// The least time between two checks whether a thread still has its reservation, each a system
/// call; and that between two of a requested one, which no event of its task needs.
pub(super) const CHECKED_EVERY: Span = Span::from_ms(1000);
/// How long one's turn counts for those to come: most have many in a second.
const REAL_TIME_LASTS: Span = Span::from_secs(1);

impl<A: Actuator> Controller<A> {
    pub(super) fn look(&mut self, event: TimerEvent, now: Instant, sensor: &mut impl Sensor) {
        match event {
            TimerEvent::Check(task) => self.look_at(task, now),
            TimerEvent::Retry(task) => {
                if let Some(slot) = self.tasks.find(task) {
                    self.retry(slot, now);
                }
            }
            TimerEvent::Protection => self.protecting(now).review(sensor),
            TimerEvent::RetryAdmission => {
                self.enforcer.forget_admitted();
                self.arbiter.look_at_all();
            }
        }
    }

    /// Looks whether the thread is silent, and still has its reservation.
    pub(super) fn look_at(&mut self, task: TaskId, now: Instant) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        let server = self.enforcer.server(slot);
        let (is_gone, is_fixed) = (server.state.is_gone(), server.fixed.is_some());
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        thread.looked_after = false;
        if is_gone {
            self.end(slot, now);
            return;
        }
        if let Some(why) = thread.estimator.rest(now) {
            let computes = matches!(why, Why::NoLongerBlocks { .. });
            self.withdraw(slot, why, now);
            if computes {
                self.protector.computes(slot, now);
                self.no_stage_for_now(slot, now);
            }
            return;
        }
        let fixed = is_fixed.then(|| now + CHECKED_EVERY);
        let Some(at) = fixed.or_else(|| thread.estimator.rests_at(now)) else {
            return;
        };
        thread.looked_after = true;
        let runs = thread.estimator.ran_lately(now);
        self.timers.set(at, TimerEvent::Check(task));
        if self.enforcer.take_check_due(slot, CHECKED_EVERY, now) {
            self.enforce(slot, now, |it| it.reconcile(slot, (task, runs)));
        }
    }

    fn retry(&mut self, slot: Slot, now: Instant) {
        if self.enforcer.lift_ceiling(slot) {
            self.consider(slot, None);
            return;
        }
        let Some(why) = self.enforcer.retry(slot, now) else {
            return;
        };
        if self.arbiter.has_request(slot) {
            self.arbiter.ask(slot, why.unwrap_or(Why::RoomAgain));
        } else if self.enforcer.held(slot).is_some() {
            let why = why.unwrap_or(Why::RhythmLost);
            self.enforce(slot, now, |it| it.release(slot, why));
        } else {
            self.consider(slot, why);
        }
    }

    pub(super) fn review_pipelines(&mut self, now: Instant) {
        let Some(all) = self.pipelines.review_due(now) else {
            return;
        };
        if all {
            for slot in self.tasks.slots() {
                self.review_role(slot, now);
            }
        }
        self.pipelines.search(&self.tasks, now);
        if all {
            self.pipelines.end_review();
        }
    }

    fn review_role(&mut self, slot: Slot, now: Instant) {
        match self.pipelines.review(&self.tasks, slot, now) {
            Review::Unknown => return,
            Review::Same => {}
            Review::Serve {
                stage,
                rhythm,
                seen,
            } => {
                let Some(thread) = self.tasks.get_mut(slot) else {
                    return;
                };
                let settings = &self.settings.estimation;
                let is_new = thread.estimator.derive(rhythm, now, settings);
                if let Some(at) = thread.look_due(now) {
                    let look = TimerEvent::Check(thread.task.id);
                    self.timers.set(at, look);
                }
                self.consider(slot, is_new.then_some(Why::OnPath { stage, seen }));
            }
            Review::Leave => {
                self.leave_pipeline(slot);
                self.withdraw(slot, Why::OffPath, now);
            }
        }
        match self.pipelines.look_at_partner(&self.tasks, slot, now) {
            Some(false) => self.let_partner_go(slot, now),
            Some(true) => {
                let weight = self.weight(slot);
                if self.enforcer.server(slot).fixed.is_none() {
                    self.arbiter.weigh(slot, weight);
                }
            }
            None => {}
        }
    }

    fn leave_pipeline(&mut self, slot: Slot) -> bool {
        let left = self.pipelines.leave(slot);
        if let Some(thread) = self.tasks.get_mut(slot).filter(|_| left) {
            thread.estimator.leave_pipeline();
        }
        left
    }

    /// The thread computes all the time: it is no stage for a while.
    fn no_stage_for_now(&mut self, slot: Slot, now: Instant) {
        if self.pipelines.role(slot).is_partner() {
            self.let_partner_go(slot, now);
        } else if self.leave_pipeline(slot) {
            self.pipelines.stay_off(slot, now);
        }
    }

    /// The thread is watched no more, and gets back what it had.
    pub(super) fn let_partner_go(&mut self, slot: Slot, now: Instant) {
        self.leave_pipeline(slot);
        if let Some(thread) = self.tasks.get(slot) {
            let task = thread.task.id;
            self.pipelines.let_go(thread.party.payer, task, now);
            self.forget(task, now);
        }
    }

    #[must_use]
    pub fn wants_idle(&self, now: Instant) -> bool {
        let governor = self.governor.as_ref();
        governor.is_some_and(|governor| governor.wants_idle(now))
            || self.protector.wants_idle(self.settings.means.always, now)
    }

    /// Takes in when a thread last ran to which somebody else has given a real-time priority.
    pub fn others_real_time(&mut self, at: Instant, now: Instant) {
        self.others_real_time = at + REAL_TIME_LASTS;
        let requests: Vec<(Slot, Reservation)> = self
            .arbiter
            .requests()
            .map(|(slot, it)| (slot, it.wanted))
            .collect();
        for (slot, wanted) in requests {
            if !self.leaves_a_cpu(slot, wanted) {
                self.withdraw(slot, Why::RealTime, now);
            }
        }
    }

    /// Takes in how long each CPU has been idle up to `now`, and decides about the speed. The next
    /// [`turn`](Self::turn) puts the change of budgets in force.
    pub fn idle(&mut self, idle: Vec<Span>, now: Instant) {
        self.protector.idle(&idle);
        let governor = self.governor.as_ref();
        if governor.is_some_and(|governor| governor.wants_idle(now)) {
            self.govern(now, |governor, on| governor.idle(on, idle));
        }
    }

    /// Has the governor of the speed do something, by the present requests.
    fn govern(
        &mut self,
        now: Instant,
        then: impl FnOnce(&mut SpeedGovernor, &mut Governed<'_, A>) -> Option<Renewal>,
    ) {
        let requests = self.promised();
        if let Some(governor) = &mut self.governor {
            let mut on = Governed {
                enforcer: &mut self.enforcer,
                requests,
                limits: *self.arbiter.limits(),
                now,
            };
            let renewal = then(governor, &mut on);
            self.renew(renewal);
        }
    }

    /// The requests by which the speed is decided. If it follows from them, only their lasting
    /// parts count, in time at the speed at which budgets must suffice.
    fn promised(&self) -> Vec<Request> {
        let follows = self.governor.as_ref();
        let follows = follows.is_some_and(SpeedGovernor::follows_budgets);
        let of = |(slot, request): (Slot, &Request)| {
            if !follows {
                return Some(*request);
            }
            let (wanted, _) = self.wanted(slot, Part::Lasting)?;
            Some(Request { wanted, ..*request })
        };
        self.arbiter.requests().filter_map(of).collect()
    }

    /// Requests have changed: where the speed follows from them, it rises before they are settled.
    pub(super) fn press_speed(&mut self, now: Instant) {
        if self.governor.is_some() && !self.arbiter.changed().is_empty() {
            self.govern(now, SpeedGovernor::press);
        }
    }

    /// Goes on with a fall of the speed that is on its way, now that all requests are settled.
    pub(super) fn pace_speed(&mut self, now: Instant) {
        let awaits = SpeedGovernor::awaits_budgets;
        if self.governor.as_ref().is_some_and(awaits) {
            let longest = self.longest_period_in_force();
            if let Some(governor) = &mut self.governor {
                governor.arbitrated(longest, now);
            }
        }
        if self.governor.is_some() {
            self.govern(now, SpeedGovernor::pace);
        }
    }

    /// The longest period of all requests, if each of them is in force as it is.
    fn longest_period_in_force(&self) -> Option<Span> {
        let mut longest = Span::ZERO;
        for (slot, request) in self.arbiter.requests() {
            if self.enforcer.held(slot)? != request.wanted {
                return None;
            }
            longest = longest.max(request.wanted.period());
        }
        Some(longest)
    }
}
