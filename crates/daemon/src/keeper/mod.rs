//! Between two turns of the loop: requests are carried out, and what is over is let go.
//!
//! Beside this file: `tracking`, `granting` and `raising`, one for each kind of thing that can be
//! held; `order`, which calls may take effect yet; `working`, threads that nobody asked for;
//! `lines`, how much is written of one user's; `scanning`, what is tracked by the rules; `others`,
//! who else manages; `telling`, what is answered and told to those who look on.

mod granting;
mod lines;
mod order;
mod others;
mod raising;
mod scanning;
mod telling;
mod tracking;
mod working;

use std::collections::{BTreeMap, BTreeSet};

use async_channel::Receiver;
use onbeat_act::{Given, Priorities};
use onbeat_control::{Controller, Next};
use onbeat_model::{Actuator, Instant, Sensor, Span, TaskId};

use crate::book::{Holder, Shared};
use crate::config::Config;
use crate::fault::Fault;
use crate::gate::Gate;
use crate::looking::Seen;
use crate::request::{Reply, Request};
use granting::Waiting;
use lines::Lines;
use order::Order;
use others::Others;
pub use others::{Manager, managers};
use raising::RaisedFor;
use scanning::Scan;
pub(crate) use telling::list;
pub use telling::{Change, Teller};

/// How often it is looked whether what is held is still there.
const HOUSEKEEPING: Span = Span::from_secs(1);
/// How many requests are carried out between two turns: the rest waits, and the loop goes on.
const REQUESTS_PER_TURN: usize = 64;

/// The loop with its two ends, as requests change it.
pub(crate) struct Loop<'a, S: Sensor, A: Actuator> {
    pub(crate) sensor: &'a mut Gate<S>,
    pub(crate) controller: &'a mut Controller<A>,
    pub(crate) now: Instant,
}

/// See the file's head.
pub struct Keeper {
    book: Shared,
    priorities: Priorities,
    /// What threads are to have as soon as their reservation is over.
    rising: BTreeMap<TaskId, Given>,
    /// Whose the tasks were that got a priority.
    raised_for: BTreeMap<TaskId, RaisedFor>,
    /// Threads that are to lose their priority as soon as they have lost their reservation.
    lowering: BTreeSet<TaskId>,
    lines: Lines,
    requests: Receiver<Request>,
    waiting: Vec<Waiting>,
    order: Order,
    teller: Teller,
    trial: Trial,
    scan: Scan,
    others: Others,
    housekeeping: Instant,
    /// What is to be looked through for threads whose start was lost.
    looked_through: Vec<TaskId>,
    reloads: Vec<Reply<Vec<&'static str>>>,
    is_cut_off: bool,
}

/// What a thread that asked for real-time priority gets at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The share of a CPU.
    pub share: onbeat_model::Bandwidth,
    /// In which period.
    pub period: Span,
}

impl Keeper {
    /// One to whom nothing was asked yet.
    #[must_use]
    pub fn new(
        book: Shared,
        priorities: Priorities,
        requests: Receiver<Request>,
        teller: Teller,
        config: &Config,
    ) -> Self {
        Self {
            book,
            priorities,
            rising: BTreeMap::new(),
            raised_for: BTreeMap::new(),
            lowering: BTreeSet::new(),
            lines: Lines::new(working::LINES),
            requests,
            waiting: Vec::new(),
            order: Order::default(),
            teller,
            trial: config.trial,
            scan: Scan::new(config),
            others: Others::default(),
            housekeeping: Instant::ZERO,
            looked_through: Vec::new(),
            reloads: Vec::new(),
            is_cut_off: false,
        }
    }

    /// Does what is to be done between two turns. Stops when the bus is gone.
    pub fn attend<S: Sensor, A: Actuator>(
        &mut self,
        sensor: &mut Gate<S>,
        controller: &mut Controller<A>,
    ) -> Next {
        let now = sensor.now();
        let mut the = Loop {
            sensor,
            controller,
            now,
        };
        self.ask_again(&mut the);
        for _ in 0..REQUESTS_PER_TURN {
            let Ok(request) = self.requests.try_recv() else {
                break;
            };
            self.carry_out(request, &mut the);
        }
        self.let_go_of_strangers(&mut the);
        if now.since(self.housekeeping) >= HOUSEKEEPING {
            self.housekeeping = now;
            self.keep_house(&mut the);
        }
        self.settle_partners(&mut the);
        self.look_around(&mut the);
        self.raise_again(the.now);
        self.keep_ceilings(&mut the);
        self.teller.tell(the.controller, &self.book);
        self.teller.tell_reniced(&self.book, the.now);
        self.teller.attend(the.controller, the.now);
        if self.is_cut_off {
            Next::Stop
        } else {
            Next::Continue
        }
    }

    /// A user who has used more than a quota gives has ceilings, until that is made up for.
    fn keep_ceilings<S: Sensor, A: Actuator>(&self, the: &mut Loop<'_, S, A>) {
        let reservations = self.book.borrow_mut().ledger.take_to_reconsider();
        for (task, reservation) in reservations {
            let is_hard = self.book.borrow().is_ceiling(task, reservation);
            // A task that is gone, or another's now, is noticed when it is next looked at.
            let _ = the.controller.actuator().set_hard(task, is_hard);
        }
    }

    /// Whether the bus is gone.
    #[must_use]
    pub const fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Whether somebody wants the configuration to be read anew.
    #[must_use]
    pub fn wants_reload(&self) -> bool {
        !self.reloads.is_empty()
    }

    /// The configuration was read anew, but for these keys, or was not: those who asked are
    /// answered.
    pub fn reloaded(&mut self, how: &Result<Vec<&'static str>, String>) {
        for reply in self.reloads.drain(..) {
            answer(&reply, how.clone().map_err(Fault::Invalid));
        }
    }

    /// From now on, `config` is in force. What is held stays, but for what only a rule wanted that
    /// is no more.
    pub fn configure<S: Sensor, A: Actuator>(
        &mut self,
        config: &Config,
        sensor: &mut Gate<S>,
        controller: &mut Controller<A>,
    ) {
        let now = sensor.now();
        self.trial = config.trial;
        self.scan = Scan::new(config);
        self.apply_rules_again(&mut Loop {
            sensor,
            controller,
            now,
        });
    }

    /// What is told at the end, when everything has been given back.
    pub fn finish<A: Actuator>(&mut self, controller: &mut Controller<A>, now: Instant) {
        self.teller.tell(controller, &self.book);
        self.teller.tell_reniced(&self.book, now);
    }

    /// The end: what has no reservation any more loses its priority, too, if it was to. Others keep
    /// theirs, or get back what they had, as the priorities were told.
    pub fn end(mut self) {
        self.lower_again();
    }

    fn carry_out<S: Sensor, A: Actuator>(&mut self, request: Request, the: &mut Loop<'_, S, A>) {
        match request {
            Request::Track {
                caller,
                target,
                children,
                reply,
            } => answer(&reply, self.track(&caller, &target, children, the)),
            Request::Untrack {
                caller,
                target,
                reply,
            } => answer(&reply, self.untrack(&caller, &target, the)),
            Request::Reserve {
                caller,
                target,
                reservation,
                reply,
            } => self.reserve(caller, target, reservation, reply, the),
            Request::Release {
                caller,
                target,
                reply,
            } => answer(&reply, self.release(&caller, &target, the)),
            Request::Prioritise {
                caller,
                target,
                priority,
                reply,
            } => answer(&reply, self.prioritise(&caller, &target, priority, the)),
            Request::Reset { reply } => {
                self.reset(the);
                answer(&reply, Ok(()));
            }
            Request::List { caller, reply } => {
                the.controller.hear_all(the.now);
                answer(&reply, Ok(list(&caller, &self.book, the.controller)));
            }
            Request::Look {
                caller,
                glance,
                reply,
            } => {
                the.controller.hear_all(the.now);
                let seen = Seen::of(&caller, &glance, &self.book, the.controller, the.now);
                answer(&reply, Ok(seen));
            }
            Request::Count { caller, reply } => {
                self.teller.tell(the.controller, &self.book);
                let figures = self
                    .teller
                    .count(&caller, &self.book, the.controller, the.now);
                answer(&reply, Ok(figures));
            }
            Request::Reload { reply } => {
                self.reloads.push(reply);
            }
            Request::Left(name) => self.forget_holder(&Holder::Client(name), the),
            Request::BusGone => self.is_cut_off = true,
        }
    }

    /// Nobody of that name wants anything any more.
    fn forget_holder<S: Sensor, A: Actuator>(&mut self, holder: &Holder, the: &mut Loop<'_, S, A>) {
        let dropped = self.book.borrow_mut().drop_holder(holder);
        for task in dropped.grants {
            self.take_back(task, the);
        }
        for root in dropped.roots {
            self.let_go(root, the);
        }
        self.settle_payers(the);
    }

    /// What has ended without the sensor's telling is forgotten.
    fn keep_house<S: Sensor, A: Actuator>(&mut self, the: &mut Loop<'_, S, A>) {
        the.controller.measure();
        self.book.borrow_mut().ledger.refill(the.now);
        let gone = |task: &TaskId| !onbeat_act::task::is_alive(*task);
        let book = self.book.borrow();
        let grants: Vec<_> = book.grants.keys().copied().filter(gone).collect();
        let roots: Vec<_> = book
            .roots
            .iter()
            .filter(|(id, root)| root.threads.is_empty() && gone(id))
            .map(|(id, _)| *id)
            .collect();
        let partners = book.partners.all.keys().copied();
        let partners: Vec<_> = partners.filter(gone).collect();
        let unsettled: Vec<_> = book.ledger.unsettled().filter(gone).collect();
        drop(book);
        for task in unsettled {
            self.book.borrow_mut().ledger.remove(task);
        }
        for task in grants {
            self.take_back(task, the);
        }
        for root in roots {
            self.let_go(root, the);
        }
        for partner in partners {
            self.let_partner_go(partner, the);
        }
        self.order.forget_old(the.now);
        self.tell_untold_lines(the.now);
        self.teller.tell_unwritten(the.now);
        self.tell_unwritten_of_rules(the.now);
        self.forget_raised(gone);
        self.lower_again();
        self.take_in_what_was_missed(the);
        self.take_back_from_strangers(the);
        self.lower_strangers();
    }
}

/// Nobody may be waiting for the answer any more.
fn answer<T>(reply: &Reply<T>, what: Result<T, Fault>) {
    let _ = reply.try_send(what);
}
