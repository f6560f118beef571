//! The ladder: what a member of an application has. [`next`] is the only rule.
//!
//! | application | member | rung |
//! |---|---|---|
//! | any | another program, a person or it itself decides about it | ordinary |
//! | any | asked for a reservation | reserved |
//! | needs nothing: its CPUs are not wanted by others | any | ordinary |
//! | needs | keeps a period, and never yields | reserved, within the supervisor's bounds |
//! | needs, and its account is used up | any other | ordinary |
//! | needs | any other | raised |

/// What is known of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationFacts {
    /// Its members wait for CPUs that others use.
    pub needs: bool,
    /// Its account is not used up.
    pub may_spend: bool,
}

/// What is known of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberFacts {
    /// It has a priority, a nice value or a policy of its own, or lost onbeat's to another program.
    pub is_others: bool,
    /// A client asked for its reservation.
    pub is_granted: bool,
    /// A reservation can be computed for it.
    pub is_regular: bool,
}

/// The means of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// As without onbeat.
    Ordinary,
    /// Before ordinary tasks, within its application's account: a real-time priority, or a nice
    /// value and a slice where the kernel refuses that.
    Raised,
    /// `SCHED_DEADLINE`.
    Reserved,
}

/// Why it is on its rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RungWhy {
    /// Another program, a person or it itself decides about it.
    DecidedByOthers,
    /// It was asked for.
    Granted,
    /// Nobody else wants the CPUs.
    NoNeed,
    /// Its application has used up its account.
    UsedUp,
    /// It keeps a period.
    Regular,
    /// Its application waits for CPUs that others use.
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
    } else if member.is_regular {
        (Rung::Reserved, RungWhy::Regular)
    } else if !application.may_spend {
        (Rung::Ordinary, RungWhy::UsedUp)
    } else {
        (Rung::Raised, RungWhy::Waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table_holds() {
        let application = |needs, may_spend| ApplicationFacts { needs, may_spend };
        let member = |is_others, is_granted, is_regular| MemberFacts {
            is_others,
            is_granted,
            is_regular,
        };
        let rows = [
            (
                (true, true),
                (true, true, true),
                Rung::Ordinary,
                RungWhy::DecidedByOthers,
            ),
            (
                (false, false),
                (false, true, false),
                Rung::Reserved,
                RungWhy::Granted,
            ),
            (
                (false, true),
                (false, false, true),
                Rung::Ordinary,
                RungWhy::NoNeed,
            ),
            (
                (true, false),
                (false, false, false),
                Rung::Ordinary,
                RungWhy::UsedUp,
            ),
            (
                (true, false),
                (false, false, true),
                Rung::Reserved,
                RungWhy::Regular,
            ),
            (
                (true, true),
                (false, false, false),
                Rung::Raised,
                RungWhy::Waits,
            ),
        ];
        for ((needs, may_spend), (is_others, is_granted, is_regular), rung, why) in rows {
            let found = next(
                application(needs, may_spend),
                member(is_others, is_granted, is_regular),
            );
            assert_eq!(found, (rung, why));
        }
    }
}
