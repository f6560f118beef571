//! How a reservation followed a change, and the late jobs until then and after it.

use onbeat_model::{Instant, Span};

/// A period is the program's if it is off by less than one part in this many.
const SAME: u64 = 50;

pub(super) fn is_same(period: Span, of_program: Span) -> bool {
    period.abs_diff(of_program) * SAME < of_program
}

/// How long it took from the release of the first job at the new rate on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FollowTimes {
    /// Until the new period was known; none: never.
    pub(super) known: Option<Span>,
    /// Until the reservation had it; none: never.
    pub(super) reserved: Option<Span>,
    /// The reservation had another period later.
    pub(super) strayed: bool,
}

impl FollowTimes {
    /// At `since` after the change the reservation has this period, if there is one, and the
    /// program has `new`.
    pub(super) fn holds(&mut self, period: Option<Span>, new: Span, since: Span) {
        if period.is_some_and(|period| is_same(period, new)) {
            self.reserved.get_or_insert(since);
        } else {
            self.strayed |= self.reserved.is_some();
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) late: u32,
    pub(super) jobs: u32,
}

impl Late {
    /// Those of `jobs` (each a release and whether it was in time) until the reservation had
    /// followed the change, and those in the time `after` it.
    pub(super) fn around(
        jobs: &[(Instant, bool)],
        changed: Instant,
        followed: Span,
        after: Span,
    ) -> [Self; 2] {
        let follows = changed + followed;
        [(changed, follows), (follows, follows + after)].map(|(from, until)| {
            let released = jobs.iter().filter(|(at, _)| *at >= from && *at < until);
            released.fold(Self::default(), |sum, (_, in_time)| Self {
                late: sum.late + u32::from(!in_time),
                jobs: sum.jobs + 1,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_count_from_the_change_until_the_reservation_has_followed_and_after_it() {
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        let jobs: Vec<(Instant, bool)> = (0..10).map(|n| (at(n * 10), n % 3 == 0)).collect();
        let ms = Span::from_ms;
        let [meanwhile, after] = Late::around(&jobs, at(20), ms(30), ms(20));
        assert_eq!((meanwhile.late, meanwhile.jobs), (2, 3));
        assert_eq!((after.late, after.jobs), (1, 2));
    }

    #[test]
    fn a_reservation_that_has_another_period_after_it_followed_strayed() {
        let ms = Span::from_ms;
        let mut following = FollowTimes::default();
        following.holds(Some(ms(40)), ms(30), ms(5));
        assert_eq!(following, FollowTimes::default());
        following.holds(Some(Span::from_us(30_100)), ms(30), ms(10));
        following.holds(Some(ms(30)), ms(30), ms(20));
        assert_eq!(
            (following.reserved, following.strayed),
            (Some(ms(10)), false)
        );
        following.holds(None, ms(30), ms(30));
        assert!(following.strayed);
    }
}
