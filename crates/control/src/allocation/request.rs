//! A thread's request: put in, changed and withdrawn.

use onbeat_decide::hysteresis::{Hysteresis, Thresholds};
use onbeat_decide::supervisor::Request;
use onbeat_model::{Reservation, TaskId};

use super::arbiter::Arbiter;
use super::filter;
use super::requests::RequestIndex;
use crate::Why;
use crate::slots::Slot;

#[derive(Debug, Default)]
pub(super) struct RequestRecord {
    place: Option<RequestIndex>,
    hysteresis: Hysteresis,
    /// Why it is to be settled in the next arbitration.
    pub(super) asked: Option<Why>,
}

impl Arbiter {
    /// A new thread is in `slot`, whose request changes at these `thresholds`.
    pub(crate) fn enter(&mut self, slot: Slot, thresholds: Thresholds) {
        *self.claims.get_mut(slot) = RequestRecord {
            hysteresis: Hysteresis::new(thresholds),
            ..RequestRecord::default()
        };
    }

    pub(super) fn request(&self, slot: Slot) -> Option<&Request> {
        self.requests.request(self.claims.get(slot).place?)
    }

    pub(crate) fn has_request(&self, slot: Slot) -> bool {
        self.claims.get(slot).place.is_some()
    }

    pub(crate) fn wanted(&self, slot: Slot) -> Option<Reservation> {
        self.request(slot).map(|request| request.wanted)
    }

    /// The thread's demand has changed, to what `wanted` would serve: what it is to request now, if
    /// the difference from its present request is worth it.
    pub(crate) fn consider(&mut self, slot: Slot, wanted: Reservation) -> Option<Reservation> {
        let former = self.wanted(slot);
        if former.is_some_and(|former| filter::is_trifle(former, wanted)) {
            return None;
        }
        let claim = self.claims.get_mut(slot);
        claim.hysteresis.consider(former, wanted)
    }

    /// Has the next change of the thread's demand count from the beginning.
    pub(crate) fn forget_changes(&mut self, slot: Slot) {
        self.claims.get_mut(slot).hysteresis.forget();
    }

    pub(crate) fn put(&mut self, slot: Slot, request: Request) {
        let claim = self.claims.get_mut(slot);
        match claim.place {
            Some(place) => self.requests.change(place, request),
            None => claim.place = Some(self.requests.put(request, slot)),
        }
    }

    /// Requests `wanted` for the thread, never to be compressed.
    pub(crate) fn put_fixed(&mut self, slot: Slot, task: TaskId, wanted: Reservation) {
        let request = Request {
            task,
            wanted,
            least: wanted.bandwidth(),
            weight: 1.0,
        };
        self.put(slot, request);
    }

    /// Lowers the thread's request to `wanted`. False if there is none.
    pub(crate) fn lower(&mut self, slot: Slot, wanted: Reservation) -> bool {
        let Some(request) = self.request(slot) else {
            return false;
        };
        let request = Request {
            wanted,
            least: request.least.min(wanted.bandwidth()),
            ..*request
        };
        self.put(slot, request);
        true
    }

    pub(crate) fn weigh(&mut self, slot: Slot, weight: f64) {
        let request = self.request(slot).copied();
        if let Some(request) = request.filter(|request| request.weight != weight) {
            self.put(slot, Request { weight, ..request });
            self.is_stale |= self.is_compressed;
        }
    }

    pub(crate) fn renew_all(&mut self, slots: impl Iterator<Item = Slot>) -> Vec<Slot> {
        let slots: Vec<Slot> = slots.filter(|&slot| self.has_request(slot)).collect();
        for &slot in &slots {
            self.forget_changes(slot);
        }
        slots
    }

    pub(crate) fn withdraw(&mut self, slot: Slot) {
        let Some(place) = self.claims.get_mut(slot).place.take() else {
            return;
        };
        if let Some(moved) = self.requests.take(place) {
            self.claims.get_mut(moved).place = Some(place);
        }
        self.is_stale |= self.is_compressed;
    }
}
