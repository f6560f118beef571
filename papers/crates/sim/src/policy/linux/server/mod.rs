//! The rules of SCHED_DEADLINE's constant bandwidth server, one function for each rule.
//!
//! Hard reservations are the kernel's: a task that has used up the budget waits until the next
//! period. Soft ones are those of the first paper on the server (Abeni and Buttazzo, RTSS 1998):
//! the budget is refilled at once and the deadline postponed by a period, so the task goes on
//! behind the others.

use onbeat_model::{Instant, Reservation, Span};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overrun {
    /// The task waits for the next period, as in the kernel.
    #[default]
    Hard,
    /// The task goes on with a deadline one period later.
    Soft,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CbsState {
    /// The rest of the budget; below zero when it was overrun until the tick.
    left_ns: i64,
    /// None before the first job.
    deadline: Option<Instant>,
    replenish_at: Option<Instant>,
    /// The task gave up the rest of the budget that is refilled then.
    yielded: bool,
}

impl CbsState {
    pub(super) const fn is_new(&self) -> bool {
        self.deadline.is_none()
    }

    pub(super) const fn throttled(&self) -> bool {
        self.replenish_at.is_some()
    }

    pub(super) const fn yielded(&self) -> bool {
        self.yielded
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline.unwrap_or_default()
    }

    /// The rest of the budget; none if it is used up.
    pub(super) fn left(&self) -> Span {
        Span::from_ns(u64::try_from(self.left_ns).unwrap_or(0))
    }

    /// A new deadline from now on, and the whole budget.
    pub(super) fn begin(&mut self, reservation: &Reservation, now: Instant) {
        self.deadline = Some(now + reservation.deadline());
        self.left_ns = ns(reservation.runtime());
    }

    /// The task wakes. Keeps deadline and budget if both together do not exceed the reservation;
    /// begins anew otherwise. Answers when the task may run if it may not now: throttled, or its
    /// constrained deadline is over and its period is not.
    pub(super) fn wake(&mut self, reservation: &Reservation, now: Instant) -> Option<Instant> {
        if let Some(at) = self.replenish_at {
            return Some(at);
        }
        let Some(deadline) = self.deadline else {
            self.begin(reservation, now);
            return None;
        };
        let implicit = reservation.deadline() == reservation.period();
        if !implicit && deadline < now && now < self.next_period(reservation) {
            self.left_ns = self.left_ns.min(0);
            self.replenish_at = Some(self.next_period(reservation));
            return self.replenish_at;
        }
        if deadline < now {
            self.begin(reservation, now);
        } else if self.overflows(reservation, deadline.since(now)) {
            if implicit {
                self.begin(reservation, now);
            } else {
                // The revised wakeup rule: what the density allows until the deadline.
                let laxity = deadline.since(now);
                let runtime = reservation.runtime().as_ns();
                self.left_ns = ns(share(laxity, runtime, reservation.deadline().as_ns()));
            }
        }
        None
    }

    /// More budget is left than the density allows in the time before the deadline.
    fn overflows(&self, reservation: &Reservation, room: Span) -> bool {
        let left = i128::from(self.left_ns) * i128::from(reservation.deadline().as_ns());
        left > i128::from(room.as_ns()) * i128::from(reservation.runtime().as_ns())
    }

    pub(super) fn charge(&mut self, used: Span) -> bool {
        self.left_ns = self.left_ns.saturating_sub(ns(used));
        self.left_ns <= 0
    }

    pub(super) fn exhaust(
        &mut self,
        reservation: &Reservation,
        overrun: Overrun,
        now: Instant,
    ) -> Option<Instant> {
        match overrun {
            Overrun::Soft => {
                self.refill(reservation);
                None
            }
            Overrun::Hard if self.next_period(reservation) <= now => {
                self.replenish(reservation, now);
                None
            }
            Overrun::Hard => {
                self.replenish_at = Some(self.next_period(reservation));
                self.replenish_at
            }
        }
    }

    /// The task gives up the rest of its budget. Answers as [`exhaust`](Self::exhaust).
    pub(super) fn give_up(&mut self, reservation: &Reservation, now: Instant) -> Option<Instant> {
        self.left_ns = self.left_ns.min(0);
        let waits = self.exhaust(reservation, Overrun::Hard, now);
        self.yielded = waits.is_some();
        waits
    }

    /// The timer of [`exhaust`](Self::exhaust) or [`wake`](Self::wake) has fired. Answers whether
    /// this server still waited for it.
    pub(super) fn timer(&mut self, reservation: &Reservation, now: Instant) -> bool {
        let mine = self.replenish_at == Some(now);
        if mine {
            self.replenish(reservation, now);
        }
        mine
    }

    fn replenish(&mut self, reservation: &Reservation, now: Instant) {
        self.replenish_at = None;
        self.yielded = false;
        self.refill(reservation);
        if self.deadline() < now {
            self.begin(reservation, now);
        }
    }

    fn refill(&mut self, reservation: &Reservation) {
        let runtime = ns(reservation.runtime()).max(1);
        let periods = (-self.left_ns).max(0) / runtime + 1;
        self.left_ns += periods * runtime;
        self.deadline = Some(self.deadline() + reservation.period() * periods.unsigned_abs());
    }

    fn next_period(&self, reservation: &Reservation) -> Instant {
        self.deadline() + (reservation.period() - reservation.deadline())
    }

    /// When a task that blocks now has used what its bandwidth allowed: until then, no other task
    /// may use its share.
    pub(super) fn zero_lag(&self, reservation: &Reservation) -> Instant {
        let left = Span::from_ns(u64::try_from(self.left_ns).unwrap_or(0));
        let period = reservation.period().as_ns();
        self.deadline() - share(left, period, reservation.runtime().as_ns())
    }
}

fn ns(span: Span) -> i64 {
    i64::try_from(span.as_ns()).unwrap_or(i64::MAX)
}

fn share(of: Span, numerator: u64, denominator: u64) -> Span {
    let ns = u128::from(of.as_ns()) * u128::from(numerator) / u128::from(denominator.max(1));
    Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
