//! What threads wish for: put in, changed and taken back, one at a time.

use onbeat_decide::supervisor::Request;
use onbeat_model::{Actuator, Bandwidth, Reservation};

use crate::controller::Controller;
use crate::power::Power;
use crate::roster::Slot;
use crate::{Why, server};

/// A difference of less than this share of a CPU is not worth a system call, as long as the job fits.
const TRIFLE_CPUS: f64 = 0.001;
/// How much less than others a thread counts that has yet to show a rhythm.
const WEIGHT_ON_TRIAL: f64 = 0.1;

impl<A: Actuator> Controller<A> {
    /// The thread's wish may be another one: puts it in if the difference is worth it.
    pub(crate) fn consider(&mut self, slot: Slot, why: Option<Why>) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        if thread.enforcement.is_over()
            || (thread.enforcement.is_backed_off() && thread.place.is_none())
        {
            return;
        }
        thread.treatment(&self.settings);
        let stretch = self.power.as_ref().map_or(1.0, Power::stretch);
        let Some((wish, job)) = thread.wish(&self.settings, &self.capacity, stretch) else {
            return;
        };
        let former = thread
            .place
            .and_then(|place| self.claims.request(place))
            .map(|request| request.wanted);
        if former.is_some_and(|former| is_trifle(former, wish)) {
            return;
        }
        let Some(wanted) = thread.hysteresis.consider(former, wish) else {
            return;
        };
        self.put_in(slot, wanted, why.unwrap_or(Why::Demand { job }));
    }

    /// Puts the thread's wish in, whatever it was before.
    fn put_in(&mut self, slot: Slot, wanted: Reservation, why: Why) {
        let weight = self.weight(slot);
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let least = if thread.is_on_trial() {
            Bandwidth::ZERO
        } else {
            self.settings.minimum.min(wanted.bandwidth())
        };
        let request = Request {
            task: thread.task.id,
            wanted,
            least,
            weight,
        };
        match thread.place {
            Some(place) => self.claims.change(place, request),
            None => thread.place = Some(self.claims.put(request, slot)),
        }
        self.ask(slot, why);
    }

    /// How much the thread's wish counts; that of a thread that is there for others, as much as theirs.
    fn weight(&mut self, slot: Slot) -> f64 {
        let of_users = self.weight_of_partner(slot);
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return 0.0;
        };
        let weight = of_users.unwrap_or_else(|| thread.treatment(&self.settings).weight);
        if thread.is_on_trial() {
            weight * WEIGHT_ON_TRIAL
        } else {
            weight
        }
    }

    /// The thread works for others than before, or they count otherwise.
    pub(crate) fn weigh_anew(&mut self, slot: Slot) {
        let weight = self.weight(slot);
        let place = self.thread(slot).and_then(|thread| {
            let follows_rhythm = thread.fixed.is_none();
            thread.place.filter(|_| follows_rhythm)
        });
        let Some((place, request)) = place.and_then(|at| Some((at, *self.claims.request(at)?)))
        else {
            return;
        };
        if request.weight != weight {
            self.claims.change(place, Request { weight, ..request });
            self.arbitrate_all |= self.crowded;
        }
    }

    /// All wishes anew, for the speed at which budgets must suffice now: they are settled in this turn.
    pub(crate) fn put_all_in(&mut self, why: &Why) {
        let stretch = self.power.as_ref().map_or(1.0, Power::stretch);
        self.arbitrate_all |= self.rounds.level().is_some();
        for slot in 0..self.threads.len() {
            let Some(thread) = self.thread(slot).filter(|thread| thread.place.is_some()) else {
                continue;
            };
            thread.hysteresis.forget();
            let thread = self.threads.get(slot).and_then(Option::as_ref);
            let wish = thread.and_then(|t| t.wish(&self.settings, &self.capacity, stretch));
            if let Some((wish, _)) = wish {
                self.put_in(slot, wish, why.clone());
            }
        }
    }

    /// The thread's wish is to be settled in this turn. Of several reasons the last one counts, and a
    /// change of demand for none if there is another.
    pub(crate) fn ask(&mut self, slot: Slot, why: Why) {
        let Some(thread) = self.threads.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        if thread.asked.is_none() || thread.waits {
            self.changed.push(slot);
        }
        thread.waits = false;
        match &thread.asked {
            None => thread.asked = Some(why),
            Some(_) if matches!(why, Why::Demand { .. }) => {}
            Some(_) => thread.asked = Some(why),
        }
    }

    pub(crate) fn drop_claim(&mut self, slot: Slot) {
        self.backlog.hurry(slot);
        let Some(place) = self.thread(slot).and_then(|thread| thread.place.take()) else {
            return;
        };
        if let Some(moved) = self.claims.take(place)
            && let Some(thread) = self.thread(moved)
        {
            thread.place = Some(place);
        }
        self.arbitrate_all |= self.crowded && !self.rounds.leave_room();
    }
}

/// Both serve a job as well, and cost about the same.
fn is_trifle(former: Reservation, wish: Reservation) -> bool {
    let (a, b) = (former.bandwidth(), wish.bandwidth());
    same_server(former, wish)
        && wish.runtime() <= former.runtime() + server::MARGIN
        && (a - b).max(b - a).as_cpus() < TRIFLE_CPUS
}

pub(crate) fn same_server(former: Reservation, wish: Reservation) -> bool {
    former.period().abs_diff(wish.period()) * 100 <= former.period()
}
