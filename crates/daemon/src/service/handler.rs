//! Carries out requests, and ends what is over.

use onbeat_act::Priorities;
use onbeat_model::TaskId;

use super::partners;
use super::priorities::RealTimePriorities;
use super::reservations::{self, Reservations};
use super::rule_scan::RuleScan;
use super::shares;
use super::tracking::{self, MissedStarts};
use super::turn::Turn;
use crate::config::Config;
use crate::monitor;
use crate::registry::Holder;
use crate::request::{About, Reply, ServiceRequest, answer};

pub(super) struct Handler {
    missed_starts: MissedStarts,
    pub(super) reservations: Reservations,
    pub(super) priorities: RealTimePriorities,
    pub(super) rule_scan: RuleScan,
    pub(super) reloads: Vec<Reply<Vec<&'static str>>>,
    pub(super) is_cut_off: bool,
}

impl Handler {
    pub(super) fn new(priorities: Priorities, config: &Config) -> Self {
        Self {
            missed_starts: MissedStarts::default(),
            reservations: Reservations::default(),
            priorities: RealTimePriorities::new(priorities),
            rule_scan: RuleScan::new(config),
            reloads: Vec::new(),
            is_cut_off: false,
        }
    }

    /// The work of every turn, after the requests.
    pub(super) fn update(&mut self, turn: &mut Turn<'_>) {
        partners::settle(turn);
        self.rule_scan.scan(turn);
        self.missed_starts.track_some(turn);
        self.priorities.raise_after_reservation(turn);
    }

    pub(super) fn carry_out(&mut self, request: ServiceRequest, turn: &mut Turn<'_>) {
        match request {
            ServiceRequest::Track(About { caller, target }, children, reply) => {
                answer(&reply, tracking::track(&caller, &target, children, turn));
            }
            ServiceRequest::Untrack(About { caller, target }, reply) => {
                answer(&reply, tracking::untrack(&caller, &target, turn));
            }
            ServiceRequest::Reserve(about, reservation, reply) => {
                self.reservations.reserve(about, reservation, reply, turn);
            }
            ServiceRequest::Release(About { caller, target }, reply) => {
                answer(&reply, self.reservations.release(&caller, &target, turn));
            }
            ServiceRequest::Share(caller, number, wanted, reply) => {
                answer(&reply, shares::share(&caller, number, wanted, turn));
            }
            ServiceRequest::Join(About { caller, target }, number, whole, reply) => {
                answer(&reply, shares::join(&caller, &target, number, whole, turn));
            }
            ServiceRequest::Balance(caller, number, reply) => {
                answer(&reply, shares::balance(&caller, number, turn));
            }
            ServiceRequest::Prioritise(About { caller, target }, priority, reply) => {
                let prioritised = self.priorities.prioritise(&caller, &target, priority, turn);
                answer(&reply, prioritised);
            }
            ServiceRequest::Reset(reply) => {
                forget_holder(&Holder::RealtimeKit, turn);
                self.priorities.lower_all(turn.registry);
                answer(&reply, Ok(()));
            }
            ServiceRequest::List(caller, reply) => {
                answer(&reply, Ok(monitor::threads(&caller.account, None, turn)));
            }
            ServiceRequest::ListApplications(caller, reply) => {
                answer(&reply, Ok(monitor::applications(&caller.account, turn)));
            }
            ServiceRequest::Progress(caller, (process, since), reply) => {
                turn.publish();
                let mut progress = monitor::progress(&caller.account, (process, since), turn);
                progress.decisions = turn.publisher.decisions_on(&progress.threads, since);
                answer(&reply, Ok(progress));
            }
            ServiceRequest::Count(caller, reply) => {
                turn.publish();
                let (registry, controller) = (turn.registry, &*turn.controller);
                let figures = turn
                    .publisher
                    .count(&caller.account, registry, controller, turn.now);
                answer(&reply, Ok(figures));
            }
            ServiceRequest::Reload(reply) => self.reloads.push(reply),
            ServiceRequest::Left(name) => forget_holder(&Holder::Client(name), turn),
            ServiceRequest::BusGone => self.is_cut_off = true,
        }
    }

    /// Where another user's program runs now, earlier requests have no effect.
    pub(super) fn release_changed_owners(&mut self, turn: &mut Turn<'_>) {
        for pid in turn.sensor.take_changed_owners() {
            let registry = turn.registry.borrow();
            let processes = registry.processes.iter();
            let processes = processes.filter(|(_, process)| process.pid == pid);
            let processes: Vec<TaskId> = processes.map(|(id, _)| *id).collect();
            let explicit = registry.explicit.iter();
            let explicit = explicit.filter(|(_, explicit)| explicit.task.pid == pid);
            let explicit: Vec<TaskId> = explicit.map(|(id, _)| *id).collect();
            let partners = registry.partners.all.iter();
            let partners = partners.filter(|(_, partner)| partner.pid == pid);
            let partners: Vec<TaskId> = partners.map(|(task, _)| *task).collect();
            drop(registry);
            for partner in partners {
                partners::untrack(partner, turn);
            }
            for task in explicit {
                reservations::take_back(task, turn);
            }
            tracking::untrack_processes(&processes, turn);
            self.priorities.lower_all_of(pid, turn.registry);
        }
    }

    /// Forgets what has ended without an event of the sensor's, and what has changed its owner.
    pub(super) fn keep_house(&mut self, turn: &mut Turn<'_>) {
        turn.controller.measure();
        let gone = |task: &TaskId| !onbeat_act::task::is_alive(*task);
        let registry = turn.registry.borrow();
        let explicit: Vec<_> = registry.explicit.keys().copied().filter(gone).collect();
        let processes: Vec<_> = registry
            .processes
            .iter()
            .filter(|(id, process)| process.threads.is_empty() && gone(id))
            .map(|(id, _)| *id)
            .collect();
        let partners = registry.partners.all.keys().copied();
        let partners: Vec<_> = partners.filter(gone).collect();
        let unsettled: Vec<_> = registry.ledger.unsettled().filter(gone).collect();
        drop(registry);
        for task in unsettled {
            turn.registry.borrow_mut().ledger.remove(task);
        }
        for task in explicit {
            reservations::take_back(task, turn);
        }
        tracking::untrack_processes(&processes, turn);
        for partner in partners {
            partners::untrack(partner, turn);
        }
        self.reservations.forget_old_calls(turn.now);
        turn.publisher.log_left_out(turn.now);
        turn.publisher.log_leaks(turn.registry, turn.now);
        self.priorities.forget(gone, turn.registry);
        self.priorities.retry_lowering(turn.registry);
        reservations::take_back_from_other_owners(turn);
        self.priorities.lower_other_owners(turn.registry);
    }
}

fn forget_holder(holder: &Holder, turn: &mut Turn<'_>) {
    let dropped = turn.registry.borrow_mut().drop_holder(holder);
    for task in dropped.explicit {
        reservations::take_back(task, turn);
    }
    tracking::untrack_processes(&dropped.processes, turn);
    shares::end_all_of(holder, turn);
    tracking::settle_payers(turn);
}
