//! The service between two turns of the loop: it receives requests, and says what has changed.
//!
//! `handler` carries the requests out. Each part of it owns one kind of thing that a client can
//! hold, with what is still to be done about it: `tracking`, `reservations`, `shares` and
//! `priorities`. `partners` has the threads without a request, `rule_scan` those tracked by the
//! rules, and `call_order` the calls that may take effect yet. All of them work on a `turn`.

mod call_order;
mod handler;
mod partners;
mod priorities;
mod reservations;
mod rule_scan;
mod shares;
mod tracking;
pub(crate) mod turn;

use async_channel::Receiver;
use onbeat_act::Priorities;
use onbeat_act::watcher::{Loses, lower};
use onbeat_control::{Controller, Next, Why};
use onbeat_model::{Actuator, Instant, Sensor};

use crate::config::Config;
use crate::filtered_sensor::FilteredSensor;
use crate::publisher::Publisher;
use crate::quota_actuator::{BARRED, QuotaActuator};
use crate::registry::SharedRegistry;
use crate::request::{Reply, ServiceRequest};
use handler::Handler;
use turn::Turn;

/// The number of requests that are carried out between two turns. A pass of the tracer takes up to
/// 0.3 ms where there are 2,000 tasks, so 64 calls that need one take less than 20 ms.
const IN_A_TURN: usize = 64;
/// The time between two looks whether what is held is still there. A user starts a program again
/// within seconds.
const HOUSEKEEPING: onbeat_model::Span = onbeat_model::Span::from_secs(1);

pub struct Service {
    registry: SharedRegistry,
    publisher: Publisher,
    requests: Receiver<ServiceRequest>,
    handler: Handler,
    housekept: Instant,
}

impl Service {
    pub fn new(
        registry: SharedRegistry,
        priorities: Priorities,
        requests: Receiver<ServiceRequest>,
        publisher: Publisher,
        config: &Config,
    ) -> Self {
        Self {
            registry,
            publisher,
            requests,
            handler: Handler::new(priorities, config),
            housekept: Instant::ZERO,
        }
    }

    /// Does what is due between two turns. Stops when the bus is gone.
    pub fn attend(
        &mut self,
        sensor: &mut FilteredSensor,
        controller: &mut Controller<QuotaActuator>,
    ) -> Next {
        let now = sensor.now();
        let requests = self.requests.clone();
        let is_time = now.since(self.housekept) >= HOUSEKEEPING;
        let (handler, mut turn) = self.turn(sensor, controller);
        handler.reservations.retry(&mut turn);
        for _ in 0..IN_A_TURN {
            let Ok(request) = requests.try_recv() else {
                break;
            };
            handler.carry_out(request, &mut turn);
        }
        handler.release_changed_owners(&mut turn);
        if is_time {
            handler.keep_house(&mut turn);
        }
        handler.update(&mut turn);
        bar(&mut turn);
        turn.controller.actuator().settle_ended(now);
        keep_to_quotas(&mut turn);
        turn.publish();
        if is_time {
            self.housekept = now;
        }
        self.publisher
            .log_reniced(controller.actuator(), &self.registry, now);
        self.publisher.measure(controller, now);
        if self.is_cut_off() {
            Next::Stop
        } else {
            Next::Continue
        }
    }

    fn turn<'a>(
        &'a mut self,
        sensor: &'a mut FilteredSensor,
        controller: &'a mut Controller<QuotaActuator>,
    ) -> (&'a mut Handler, Turn<'a>) {
        let turn = Turn {
            now: sensor.now(),
            sensor,
            controller,
            registry: &self.registry,
            publisher: &mut self.publisher,
        };
        (&mut self.handler, turn)
    }

    pub const fn is_cut_off(&self) -> bool {
        self.handler.is_cut_off
    }

    /// The clients that have asked, since this was last called, for the configuration to be read
    /// anew, and wait for it.
    pub fn take_reloads(&mut self) -> Vec<Reply<Vec<&'static str>>> {
        std::mem::take(&mut self.handler.reloads)
    }

    /// Puts `config` in force. Holdings stay, except those that only a removed rule wanted.
    pub fn configure(
        &mut self,
        config: &Config,
        sensor: &mut FilteredSensor,
        controller: &mut Controller<QuotaActuator>,
    ) {
        let (handler, mut turn) = self.turn(sensor, controller);
        handler.rule_scan.configure(config, &mut turn);
    }

    /// The tasks that an earlier service gave a priority are tracked as if they had just asked.
    pub fn adopt(
        &mut self,
        sensor: &mut FilteredSensor,
        controller: &mut Controller<QuotaActuator>,
    ) {
        let (handler, mut turn) = self.turn(sensor, controller);
        handler.priorities.adopt(&mut turn);
        handler.rule_scan.have_programs_told(&mut turn);
    }

    /// Publishes the last changes, when everything has been given back.
    pub fn finish(&mut self, controller: &mut Controller<QuotaActuator>, now: Instant) {
        self.publisher.publish(controller, &self.registry);
        self.publisher
            .log_reniced(controller.actuator(), &self.registry, now);
    }

    /// Ends: a task whose reservation is over by now loses its priority, too, if it was to. Others
    /// keep theirs, or get back what they had, as [`Priorities`] was told.
    pub fn end(mut self) {
        self.handler.priorities.retry_lowering(&self.registry);
    }
}

/// Who lent more than he may has lost it. Who inherited it from another user may have to pay for
/// that, and then has no reservation from here until he has.
fn bar(turn: &mut Turn<'_>) {
    let barred = turn.registry.borrow_mut().bar();
    for (task, heir) in barred {
        if let Some(heir) = heir {
            // If the watcher has not come to it yet: until then the heir could go on paying.
            let _ = lower(task.tid, Loses::Lendable);
            turn.controller.check(heir, turn.now);
        }
        let registry = turn.registry.borrow();
        let payer = registry
            .ledger
            .account(task)
            .map_or(0, |account| account.uid);
        if turn.publisher.may_write(payer, turn.now) {
            tracing::warn!(
                tid = task.tid,
                "thread {task} is no longer served: {BARRED}"
            );
        }
    }
}

/// A task that uses more than it holds goes without while its owner has used more than a quota
/// gives: a reservation that is less than what it needs would hold it up. One that was asked for is
/// a ceiling meanwhile.
fn keep_to_quotas(turn: &mut Turn<'_>) {
    let tasks = turn.registry.borrow_mut().ledger.take_to_reconsider();
    for task in tasks {
        turn.registry.borrow_mut().settle_lending(task);
        let registry = turn.registry.borrow();
        let Some(reservation) = registry.ledger.held(task) else {
            let until = registry.ledger.unboosted_until(task);
            drop(registry);
            if until.is_some() {
                turn.controller.end_boosts(task, until, turn.now);
            }
            continue;
        };
        let (goes_without, is_hard) = (
            registry.goes_without_until(task).is_some(),
            registry.is_ceiling(task, reservation),
        );
        drop(registry);
        if goes_without {
            turn.controller.go_without(task, Why::OverQuota, turn.now);
        } else {
            // A task that is gone, or another's now, is noticed when it is next looked at.
            let _ = turn.controller.actuator().set_hard(task, is_hard);
        }
    }
}
