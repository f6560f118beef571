//! Less room than was thought: the kernel's, because others hold reservations, too; or the owner's of one
//! thread.

use onbeat_model::{Actuator, Bandwidth, Instant, Reservation};

use super::{Books, Effects, Enforcer, FIRST_RETRY, as_counted, backed_off};
use crate::Why;
use crate::allocation::bandwidth;
use crate::task::table::Slot;
use crate::timer::TimerEvent;

/// What is tried in turn of a reservation for which the kernel has no room.
const STEPS_DOWN: [f64; 4] = [0.85, 0.7, 0.5, 0.3];

/// The kernel admits less than was thought: until the time to try again, no more than what was admitted
/// is handed out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admission {
    total: Option<Bandwidth>,
    /// How often in a row the kernel had no room.
    pub(super) tries: u32,
}

impl<A: Actuator> Enforcer<A> {
    /// The most that the kernel admits, if that is less than was thought.
    pub(crate) const fn admitted(&self) -> Option<Bandwidth> {
        self.admission.total
    }

    /// There may be room again.
    pub(crate) const fn widen(&mut self) {
        self.admission.total = None;
    }

    /// How often in a row the kernel had no room.
    pub(crate) const fn tries(&self) -> u32 {
        self.admission.tries
    }

    /// An arbitration is over, before which it had had no room so often.
    pub(crate) const fn settled(&mut self, tries_before: u32) {
        if self.admission.total.is_none() && self.admission.tries == tries_before {
            self.admission.tries = 0;
        }
    }

    /// The kernel has no room for `target`: takes as much as it admits, and from then on shares out
    /// no more than that, until there may be room again.
    pub(super) fn step_down(
        &mut self,
        books: &mut Books<'_>,
        slot: Slot,
        target: Reservation,
        why: Why,
        now: Instant,
    ) {
        let Some(thread) = books.tasks.get(slot) else {
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
            let counted = as_counted(less, books.scale, &self.capacity);
            if self.actuator.reserve(task.id, counted).is_ok() {
                self.reserved(books, slot, less, why, now);
                break;
            }
        }
        self.admission.total = Some(self.in_force);
        books.arbiter.look_at_all();
        let pause = backed_off(FIRST_RETRY, self.admission.tries);
        self.admission.tries += 1;
        books.timers.set(now + pause, TimerEvent::Widen);
    }

    /// Whoever the thread belongs to may have no more than `left` for it: that is all it asks for, until
    /// it is time to ask again. Nobody else is the worse for it.
    pub(super) fn cap(
        &mut self,
        books: &mut Books<'_>,
        slot: Slot,
        (target, left): (Reservation, Bandwidth),
        why: Why,
        now: Instant,
    ) -> Effects {
        let Some(thread) = books.tasks.get_mut(slot) else {
            return Effects::default();
        };
        thread.ceiling = Some(left);
        let until = now + backed_off(FIRST_RETRY, thread.refusals);
        thread.refusals += 1;
        let refusals = thread.refusals;
        books.timers.set(until, TimerEvent::Retry(thread.task.id));
        let (held, place) = (thread.held(), thread.place);
        if let Some(less) = thread.under_ceiling(target, &self.capacity)
            && place.is_some_and(|place| books.arbiter.lower(place, less))
        {
            let raises = less.bandwidth() > bandwidth(held);
            if raises && self.put_in_force(books, slot, less).is_ok() {
                self.reserved(books, slot, less, why, now);
                // It is still refused more.
                if let Some(thread) = books.tasks.get_mut(slot) {
                    thread.refusals = refusals;
                }
            }
            return Effects::default();
        }
        if held.is_some() {
            return Effects::default();
        }
        thread.enforcement.back_off(until, None);
        books.withdraw(slot)
    }
}
