//! A thread's request: put in, changed and taken back.

use onbeat_decide::supervisor::Request;
use onbeat_model::{Bandwidth, Reservation};

use super::arbiter::Arbiter;
use super::requests::Place;
use super::{Conditions, server};
use crate::task::table::{Slot, TaskTable};
use crate::{Settings, Why};

/// The least difference, in CPUs, that is worth a system call while the job fits.
const TRIFLE_CPUS: f64 = 0.001;
/// The weight of a thread on probation, relative to others.
const WEIGHT_ON_PROBATION: f64 = 0.1;

impl Arbiter {
    /// Changes the thread's request if its demand differs enough.
    pub(crate) fn consider(
        &mut self,
        tasks: &mut TaskTable,
        slot: Slot,
        why: Option<Why>,
        conditions: &Conditions<'_>,
    ) {
        let Some(thread) = tasks.get_mut(slot) else {
            return;
        };
        if thread.enforcement.is_over()
            || (thread.enforcement.is_backed_off() && thread.place.is_none())
        {
            return;
        }
        thread.treatment(conditions.settings);
        let Some((wanted, job)) = thread.wanted(conditions) else {
            return;
        };
        let former = thread
            .place
            .and_then(|place| self.requests.request(place))
            .map(|request| request.wanted);
        if former.is_some_and(|former| is_trifle(former, wanted)) {
            return;
        }
        let Some(wanted) = thread.hysteresis.consider(former, wanted) else {
            return;
        };
        let why = why.unwrap_or(Why::Demand { job });
        self.put_in(tasks, slot, wanted, why, conditions.settings);
    }

    /// Requests `wanted` for the thread, in place of its former request.
    fn put_in(
        &mut self,
        tasks: &mut TaskTable,
        slot: Slot,
        wanted: Reservation,
        why: Why,
        settings: &Settings,
    ) {
        let weight = weight(tasks, slot, settings);
        let Some(thread) = tasks.get_mut(slot) else {
            return;
        };
        let least = if thread.is_on_probation() {
            Bandwidth::ZERO
        } else {
            settings.minimum.min(wanted.bandwidth())
        };
        let request = Request {
            task: thread.task.id,
            wanted,
            least,
            weight,
        };
        self.put(tasks, slot, request);
        self.ask(tasks, slot, why);
    }

    /// Requests `wanted` for a thread without a request, never to be compressed.
    pub(crate) fn put_fixed(&mut self, tasks: &mut TaskTable, slot: Slot, wanted: Reservation) {
        let Some(thread) = tasks.get(slot) else {
            return;
        };
        let request = Request {
            task: thread.task.id,
            wanted,
            least: wanted.bandwidth(),
            weight: 1.0,
        };
        self.put(tasks, slot, request);
    }

    fn put(&mut self, tasks: &mut TaskTable, slot: Slot, request: Request) {
        let Some(thread) = tasks.get_mut(slot) else {
            return;
        };
        match thread.place {
            Some(place) => self.requests.change(place, request),
            None => thread.place = Some(self.requests.put(request, slot)),
        }
    }

    /// Lowers the request at `place` to `wanted`. False if there is none.
    pub(crate) fn lower(&mut self, place: Place, wanted: Reservation) -> bool {
        let Some(request) = self.requests.request(place) else {
            return false;
        };
        let request = Request {
            wanted,
            least: request.least.min(wanted.bandwidth()),
            ..*request
        };
        self.requests.change(place, request);
        true
    }

    /// Updates the thread's weight: it works for other threads, or their weight has changed.
    pub(crate) fn weigh_anew(&mut self, tasks: &mut TaskTable, slot: Slot, settings: &Settings) {
        let weight = weight(tasks, slot, settings);
        let place = tasks.get(slot).and_then(|thread| {
            let follows_rhythm = thread.fixed.is_none();
            thread.place.filter(|_| follows_rhythm)
        });
        let request = place.and_then(|at| Some((at, *self.requests.request(at)?)));
        let Some((place, request)) = request else {
            return;
        };
        if request.weight != weight {
            self.requests.change(place, Request { weight, ..request });
            self.is_stale |= self.is_compressed;
        }
    }

    /// Renews all requests, for the speed at which budgets must suffice now, and settles them in
    /// this turn.
    pub(crate) fn put_all_in(
        &mut self,
        tasks: &mut TaskTable,
        why: &Why,
        conditions: &Conditions<'_>,
    ) {
        self.is_stale |= self.overload.level().is_some();
        for slot in tasks.slots() {
            let Some(thread) = tasks.get_mut(slot).filter(|thread| thread.place.is_some()) else {
                continue;
            };
            thread.hysteresis.forget();
            if let Some((wanted, _)) = thread.wanted(conditions) {
                self.put_in(tasks, slot, wanted, why.clone(), conditions.settings);
            }
        }
    }

    /// Withdraws the thread's request.
    pub(crate) fn withdraw(&mut self, tasks: &mut TaskTable, slot: Slot) {
        let place = tasks.get_mut(slot).and_then(|thread| thread.place.take());
        let Some(place) = place else {
            return;
        };
        if let Some(moved) = self.requests.take(place)
            && let Some(thread) = tasks.get_mut(moved)
        {
            thread.place = Some(place);
        }
        self.is_stale |= self.is_compressed && !self.overload.leave_room();
    }
}

/// The weight of the thread's request. A thread that works for others has their weight.
fn weight(tasks: &mut TaskTable, slot: Slot, settings: &Settings) -> f64 {
    let of_users = weight_of_partner(tasks, slot, settings);
    let Some(thread) = tasks.get_mut(slot) else {
        return 0.0;
    };
    let weight = of_users.unwrap_or_else(|| thread.treatment(settings).weight);
    if thread.is_on_probation() {
        weight * WEIGHT_ON_PROBATION
    } else {
        weight
    }
}

/// The weight of a thread that works for others: the greatest of theirs. None for other threads.
fn weight_of_partner(tasks: &mut TaskTable, slot: Slot, settings: &Settings) -> Option<f64> {
    let users = tasks.get(slot)?.path.partner()?.of.len();
    let mut most = None;
    for place in 0..users {
        let partner = tasks.get(slot)?.path.partner()?;
        let user = tasks.find(*partner.of.get(place)?);
        let user = user.and_then(|user| tasks.get_mut(user));
        let Some(user) = user.filter(|user| !user.path.is_partner()) else {
            continue;
        };
        let weight = user.treatment(settings).weight;
        most = Some(most.map_or(weight, |most: f64| most.max(weight)));
    }
    most
}

/// True if both serve a job equally well, and cost about the same.
fn is_trifle(former: Reservation, wanted: Reservation) -> bool {
    let (a, b) = (former.bandwidth(), wanted.bandwidth());
    same_server(former, wanted)
        && wanted.runtime() <= former.runtime() + server::MARGIN
        && (a - b).max(b - a).as_cpus() < TRIFLE_CPUS
}

pub(super) fn same_server(former: Reservation, wanted: Reservation) -> bool {
    former.period().abs_diff(wanted.period()) * 100 <= former.period()
}
