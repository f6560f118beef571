//! All requests, kept together, so that one that changes is weighed against the sum of the others
//! without looking at any of them.
//!
//! The supervisor's arbitration looks at all requests. It is needed only when they do not fit:
//! as long as the sum stays within the limit, each is granted whole.

use onbeat_decide::supervisor::Request;
use onbeat_model::Bandwidth;

use crate::slots::Slot;

/// The requests in force, in the order in which they were first made, gaps filled from the end.
#[derive(Debug, Default)]
pub(super) struct RequestTable {
    requests: Vec<Request>,
    slots: Vec<Slot>,
    sum: Bandwidth,
}

pub(super) type RequestIndex = usize;

impl RequestTable {
    /// Puts in a request of the thread in `slot`, and says where it is.
    pub(super) fn put(&mut self, request: Request, slot: Slot) -> RequestIndex {
        self.sum += request.wanted.bandwidth();
        self.requests.push(request);
        self.slots.push(slot);
        self.requests.len() - 1
    }

    pub(super) fn change(&mut self, place: RequestIndex, request: Request) {
        if let Some(old) = self.requests.get_mut(place) {
            self.sum = self.sum - old.wanted.bandwidth() + request.wanted.bandwidth();
            *old = request;
        }
    }

    /// Takes the request at `place` out. Another thread's request may have been moved there: that
    /// thread's slot is returned.
    pub(super) fn take(&mut self, place: RequestIndex) -> Option<Slot> {
        if place >= self.requests.len() {
            return None;
        }
        let request = self.requests.swap_remove(place);
        self.slots.swap_remove(place);
        self.sum = self.sum - request.wanted.bandwidth();
        self.slots.get(place).copied()
    }

    pub(super) fn requests(&self) -> &[Request] {
        &self.requests
    }

    pub(super) fn slot(&self, place: RequestIndex) -> Option<Slot> {
        self.slots.get(place).copied()
    }

    pub(super) fn request(&self, place: RequestIndex) -> Option<&Request> {
        self.requests.get(place)
    }

    pub(super) const fn sum(&self) -> Bandwidth {
        self.sum
    }
}
