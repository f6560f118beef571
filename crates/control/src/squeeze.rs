//! Less room than was thought: the kernel's, for others hold reservations, too; or the owner's of one
//! thread.

use onbeat_model::{Actuator, Bandwidth, Instant, Reservation};

use crate::Why;
use crate::controller::{Controller, Due};
use crate::enforce::{FIRST_RETRY, backed_off, bandwidth};
use crate::roster::Slot;

/// What is tried in turn of a wish for which the kernel has no room.
const STEPS_DOWN: [f64; 4] = [0.85, 0.7, 0.5, 0.3];

/// The kernel admits less than was thought, for others hold reservations, too: until the time to try
/// again, no more than what was admitted is handed out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Squeeze {
    pub(crate) total: Option<Bandwidth>,
    pub(crate) tries: u32,
}

impl Squeeze {
    pub(crate) const fn widen(&mut self) {
        self.total = None;
    }
}

impl<A: Actuator> Controller<A> {
    /// The kernel has no room for `target`: takes as much as it admits, and from then on shares out
    /// no more than that, until there may be room again.
    pub(crate) fn step_down(&mut self, slot: Slot, target: Reservation, why: Why, now: Instant) {
        let Some(thread) = self.thread(slot) else {
            return;
        };
        let (task, held) = (thread.task, thread.held());
        for step in STEPS_DOWN {
            let runtime = target
                .runtime()
                .scale(step)
                .max(self.capacity.shortest_runtime);
            let Ok(less) = Reservation::new(runtime, target.deadline(), target.period()) else {
                break;
            };
            if less.bandwidth() <= bandwidth(held) {
                break;
            }
            if self
                .actuator
                .reserve(task.id, self.as_counted(less))
                .is_ok()
            {
                self.reserved(slot, less, why, now);
                break;
            }
        }
        self.squeeze.total = Some(self.in_force);
        self.arbitrate_all = true;
        let pause = backed_off(FIRST_RETRY, self.squeeze.tries);
        self.squeeze.tries += 1;
        self.timers.set(now + pause, Due::Widen);
    }

    /// Whoever the thread belongs to may have no more than `left` for it: that is all it asks for, until
    /// it is time to ask again. Nobody else is the worse for it.
    pub(crate) fn cap(
        &mut self,
        slot: Slot,
        target: Reservation,
        left: Bandwidth,
        why: Why,
        now: Instant,
    ) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let task = thread.task.id;
        thread.ceiling = Some(left);
        let pause = backed_off(FIRST_RETRY, thread.refusals);
        thread.refusals += 1;
        self.timers.set(now + pause, Due::Retry(task));
        let less = thread.under_ceiling(target, &self.capacity);
        if let (Some(less), Some(place)) = (less, thread.place)
            && let Some(request) = self.claims.request(place)
        {
            let request = onbeat_decide::supervisor::Request {
                wanted: less,
                least: request.least.min(less.bandwidth()),
                ..*request
            };
            self.claims.change(place, request);
            let raises = less.bandwidth() > bandwidth(thread.held());
            if raises && self.put_in_force(slot, task, less).is_ok() {
                let refusals = self.thread(slot).map_or(0, |thread| thread.refusals);
                self.reserved(slot, less, why, now);
                if let Some(thread) = self.thread(slot) {
                    thread.refusals = refusals;
                }
            }
            return;
        }
        if thread.held().is_none() {
            thread.enforcement.back_off(now + pause, None);
            self.drop_claim(slot);
        }
    }
}
