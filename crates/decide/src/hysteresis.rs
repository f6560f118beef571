//! When a new grant differs enough from what is in force to be worth a system call.
//!
//! Predictions tremble with every job. A raise that matters is made at once, because the next job
//! needs it; a smaller one waits until its lack has added up. A shrink waits until keeping the old
//! grant has wasted, over the jobs since, a fixed fraction of one job's runtime: a large shrink
//! comes after a job or two, one of 5% after eight, and a job that needs the old grant again starts
//! the count anew. So the waste of hesitating is bounded, whatever the size of the step.

use onbeat_model::{Reservation, Span};

/// Up to this part of its period a runtime counts as so long: a twentieth of that is a thousandth
/// of a CPU, and less is not worth a system call.
const SHORT: u64 = 50;

/// A raise by at least this fraction of the runtime is made at once.
const RAISE: f64 = 0.05;
/// A shrink by less than this fraction is never made.
const SHRINK: f64 = 0.05;
/// How much may be wasted (or lacking) before a shrink (or a smaller raise) is made: the sum, over
/// the jobs since, of the fraction by which the runtime was too long (or too short).
const PATIENCE: f64 = 0.40;
/// A change of the period by at least this fraction is made at once.
const PERIOD: f64 = 0.01;

#[derive(Clone, Copy, Debug, Default)]
pub struct Hysteresis {
    waste: f64,
    most_wanted: Span,
    lack: f64,
}

impl Hysteresis {
    /// The task holds `held` and could be granted `granted`: what to put in force now, if anything.
    /// To be asked once per job, and whenever a budget ran out.
    pub fn consider(
        &mut self,
        held: Option<Reservation>,
        granted: Reservation,
    ) -> Option<Reservation> {
        let worth_it = match held {
            None => Some(granted),
            Some(held) if Self::is_another_shape(held, granted) => Some(granted),
            Some(held) => self.change(held, granted),
        };
        if worth_it.is_some() {
            self.forget();
        }
        worth_it
    }

    #[must_use]
    pub fn is_raise(held: Option<Reservation>, granted: Option<Reservation>) -> bool {
        let bandwidth = |it: Option<Reservation>| it.map_or(0.0, |it| it.bandwidth().as_cpus());
        bandwidth(granted) > bandwidth(held) * (1.0 + RAISE)
    }

    /// Starts counting anew, as after a reservation was changed by other means.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    fn is_another_shape(held: Reservation, granted: Reservation) -> bool {
        let differs = |a: Span, b: Span| a.abs_diff(b).ratio(a) >= PERIOD;
        differs(held.period(), granted.period()) || differs(held.deadline(), granted.deadline())
    }

    fn change(&mut self, held: Reservation, granted: Reservation) -> Option<Reservation> {
        let (now, wanted) = (held.runtime(), granted.runtime());
        let whole = now.max(held.period() / SHORT);
        let more = (wanted - now).ratio(whole);
        let less = (now - wanted).ratio(whole);
        if more >= RAISE {
            return Some(granted);
        }
        if less < SHRINK {
            self.waste = 0.0;
            self.most_wanted = Span::ZERO;
        } else {
            self.waste += less;
            self.most_wanted = self.most_wanted.max(wanted);
        }
        self.lack = if more > 0.0 { self.lack + more } else { 0.0 };
        if self.lack >= PATIENCE {
            Some(granted)
        } else if self.waste >= PATIENCE {
            Reservation::new(self.most_wanted, granted.deadline(), granted.period()).ok()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(runtime_us: u64) -> Reservation {
        Reservation::implicit(Span::from_us(runtime_us), Span::from_us(4000)).unwrap()
    }

    /// After how many jobs that want `wanted_us` a task that holds 1000 us gets something else, and
    /// what.
    fn settled(wanted_us: u64) -> Option<(usize, Span)> {
        let mut hysteresis = Hysteresis::default();
        (1..=50).find_map(|job| {
            hysteresis
                .consider(Some(reservation(1000)), reservation(wanted_us))
                .map(|change| (job, change.runtime()))
        })
    }

    #[test]
    fn a_raise_is_made_at_once_and_a_shrink_the_sooner_the_larger_it_is() {
        let us = Span::from_us;
        assert_eq!(settled(1050), Some((1, us(1050))));
        assert_eq!(settled(500), Some((1, us(500))));
        assert_eq!(settled(800), Some((2, us(800))));
        assert_eq!(settled(949), Some((8, us(949))));
        assert_eq!(settled(960), None);
        assert_eq!(settled(1000), None);
        assert_eq!(settled(1030), Some((14, us(1030))));
    }
}
