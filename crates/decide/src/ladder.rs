//! The ladder: what a member of an application has. [`next`] is the only rule.
//!
//! | application | member | rung |
//! |---|---|---|
//! | any | another program, a person or it itself decides about it | ordinary |
//! | any | asked for a reservation | reserved |
//! | needs nothing: its CPUs are not wanted by others | any | ordinary |
//! | needs, and the [guard](crate::guard) leaves no means | any | ordinary |
//! | needs, and the guard leaves all | keeps a period, and never yields | reserved, if it fits |
//! | needs, and its account is used up | any other | ordinary |
//! | needs | any other | raised, at its application's [`priority`] |

use onbeat_model::{Boost, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationFacts {
    /// Its members wait for CPUs that others use.
    pub needs: bool,
    pub may_spend: bool,
    pub guard: Option<(Rung, RungWhy)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberFacts {
    /// It has a priority, a nice value or a policy of its own, or lost onbeat's to another program.
    pub is_others: bool,
    pub is_granted: bool,
    pub is_regular: bool,
}

/// The means of a member, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    Ordinary,
    /// Before ordinary tasks, within its application's account: a real-time priority, or a nice
    /// value and a slice where the kernel refuses that.
    Raised,
    Reserved,
}

impl Rung {
    #[must_use]
    pub const fn below(self) -> Self {
        match self {
            Self::Reserved => Self::Raised,
            Self::Raised | Self::Ordinary => Self::Ordinary,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RungWhy {
    DecidedByOthers,
    Granted,
    NoNeed,
    UsedUp,
    /// Its application waits all the same, and is without its means for a moment, to compare.
    Compares,
    NoBetter,
    Regular,
    Waits,
}

/// The rung of a member, and why. See the file's head.
#[must_use]
pub const fn next(application: ApplicationFacts, member: MemberFacts) -> (Rung, RungWhy) {
    if member.is_others {
        (Rung::Ordinary, RungWhy::DecidedByOthers)
    } else if member.is_granted {
        (Rung::Reserved, RungWhy::Granted)
    } else if !application.needs {
        (Rung::Ordinary, RungWhy::NoNeed)
    } else if let Some((Rung::Ordinary, why)) = application.guard {
        (Rung::Ordinary, why)
    } else if member.is_regular && application.guard.is_none() {
        (Rung::Reserved, RungWhy::Regular)
    } else if !application.may_spend {
        (Rung::Ordinary, RungWhy::UsedUp)
    } else {
        (Rung::Raised, RungWhy::Waits)
    }
}

/// The real-time priority of an application's raised members, by the shortest period that one of
/// them keeps: the shorter, the higher (rate-monotonic), and the lowest without a period.
///
/// A level is a factor of two, because there are few levels, with usual periods (1, 2.7, 5.3, 10,
/// 16.7, 20, 33, 40 ms) well inside one: an estimate that varies changes nothing.
#[must_use]
pub fn priority(shortest: Option<Span>) -> u32 {
    const LONGEST: Span = Span::from_ms(96);
    let periods = shortest.map_or(0, |period| LONGEST.as_ns() / period.as_ns().max(1));
    let level = periods.checked_ilog2().map_or(1, |doubled| doubled + 2);
    level.min(Boost::HIGHEST_PRIORITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_the_period_the_higher_is_the_priority() {
        let us = [
            50, 1000, 2670, 5330, 10_000, 16_700, 20_000, 33_400, 40_000, 75_000, 2_000_000,
        ];
        let priorities = us.map(|us| priority(Some(Span::from_us(us))));
        assert_eq!(priorities, [8, 8, 7, 6, 5, 4, 4, 3, 3, 2, 1]);
        assert_eq!(priority(None), 1);
        for near in [0.9, 1.1] {
            let near = us.map(|us| priority(Some(Span::from_us(us).scale(near))));
            assert_eq!(near[1..], priorities[1..]);
        }
    }

    #[test]
    fn each_row_of_the_table_holds() {
        let [not_down, off_reservations, off_all] = [
            None,
            Some((Rung::Raised, RungWhy::NoBetter)),
            Some((Rung::Ordinary, RungWhy::Compares)),
        ];
        let application = |needs, may_spend, guard| ApplicationFacts {
            needs,
            may_spend,
            guard,
        };
        let [others, granted, regular, any] = [
            [true, true, true],
            [false, true, false],
            [false, false, true],
            [false, false, false],
        ]
        .map(|[is_others, is_granted, is_regular]| MemberFacts {
            is_others,
            is_granted,
            is_regular,
        });
        let (ordinary, raised, reserved) = (Rung::Ordinary, Rung::Raised, Rung::Reserved);
        #[rustfmt::skip]
        let rows = [
            (application(true, true, not_down), others, ordinary, RungWhy::DecidedByOthers),
            (application(false, false, off_all), granted, reserved, RungWhy::Granted),
            (application(false, true, not_down), regular, ordinary, RungWhy::NoNeed),
            (application(true, true, off_all), regular, ordinary, RungWhy::Compares),
            (application(true, false, not_down), regular, reserved, RungWhy::Regular),
            (application(true, true, off_reservations), regular, raised, RungWhy::Waits),
            (application(true, false, not_down), any, ordinary, RungWhy::UsedUp),
            (application(true, true, not_down), any, raised, RungWhy::Waits),
        ];
        for (application, member, rung, why) in rows {
            assert_eq!(
                next(application, member),
                (rung, why),
                "{application:?}, {member:?}"
            );
        }
    }
}
