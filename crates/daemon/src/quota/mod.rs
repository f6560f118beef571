//! Quotas of users, groups and rules: the most bandwidth and tasks, the shortest period, deadline
//! and runtime, and the longest runtime that their reservations may have.
//!
//! Per-user and per-group limits as AQuoSA's supervisor has them; there a group's limit holds for
//! each member, here for all together.

use std::collections::{BTreeSet, HashMap};

use onbeat_model::{Bandwidth, Reservation, Span};

use crate::account::Allotment;

mod error;
mod seats;

pub use error::{QuotaError, Whose};
pub(crate) use seats::{SEATS, users_at};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quota {
    /// All his reservations together.
    pub bandwidth: Bandwidth,
    /// How many tasks of his are tracked, reserved for or given a priority, together.
    pub tasks: u32,
    /// The shortest period of a reservation. Short ones cost the scheduler more.
    pub shortest_period: Span,
    /// The shortest deadline of one. A task with a short one runs before all that have later ones.
    pub shortest_deadline: Span,
    /// The shortest runtime of one. The kernel may notice only at its next tick that a shorter one
    /// is used up, and for so little bandwidth many tasks would fit into a quota.
    pub shortest_runtime: Span,
    /// All runtimes of his together. The longest time for which their tasks may keep one CPU from
    /// all tasks without a reservation, the service itself included.
    pub longest_runtime: Span,
}

impl Default for Quota {
    /// Half a CPU, 64 tasks, and no period or deadline below a millisecond.
    ///
    /// The shortest runtime is what the service itself gives at least: its minimum of 1% in the
    /// shortest period. The longest is such that with half of a CPU one CPU is taken for 200 ms at
    /// a stretch (100 ms, and the half of that which can be used again meanwhile, and so on).
    /// RealtimeKit lets its clients run as long.
    fn default() -> Self {
        Self {
            bandwidth: Bandwidth::from_cpus(0.5),
            tasks: 64,
            shortest_period: Span::from_ms(1),
            shortest_deadline: Span::from_ms(1),
            shortest_runtime: Span::from_us(10),
            longest_runtime: Span::from_ms(100),
        }
    }
}

impl Quota {
    /// The same with `share` of all `cpus`, unless that is less, and so many times the longest
    /// runtime: the tasks may keep all CPUs for as long as else one.
    pub(crate) fn at_seat(self, share: Bandwidth, cpus: f64) -> Self {
        let bandwidth = Bandwidth::from_cpus(share.as_cpus() * cpus);
        if bandwidth <= self.bandwidth {
            return self;
        }
        Self {
            bandwidth,
            longest_runtime: self.longest_runtime.scale(cpus),
            ..self
        }
    }

    /// Why `reservation` is not within the quota beside what `others` of the same user or group
    /// use.
    pub(crate) fn error(
        &self,
        whose: Whose,
        reservation: Reservation,
        others: Used,
    ) -> Option<QuotaError> {
        let times = [
            ("period", reservation.period(), self.shortest_period),
            ("deadline", reservation.deadline(), self.shortest_deadline),
            ("runtime", reservation.runtime(), self.shortest_runtime),
        ];
        let too_short = times.into_iter().find(|(_, given, least)| given < least);
        if let Some((what, given, shortest)) = too_short {
            return Some(QuotaError::TooShort {
                whose,
                what,
                given,
                shortest,
            });
        }
        let left = self.bandwidth - others.bandwidth;
        if density(reservation) > left {
            let most = self.bandwidth;
            return Some(QuotaError::Bandwidth { whose, most, left });
        }
        let left = self.longest_runtime - others.runtime;
        (reservation.runtime() > left).then_some(QuotaError::TooLong {
            whose,
            most: self.longest_runtime,
            left,
        })
    }
}

/// The charge for `reservation`: its runtime as a share of its deadline. A reservation whose
/// deadline is far shorter than its period runs before those of others as one whose period is that
/// short; by its share of the period, fifty of them that run one after the other would fit into
/// half a CPU.
pub(crate) fn density(reservation: Reservation) -> Bandwidth {
    Bandwidth::of(reservation.runtime(), reservation.deadline())
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quotas {
    /// The quota of a user without one of their own.
    pub default: Quota,
    /// The quota of one who sits at the machine, without one of their own.
    pub seat: Quota,
    pub seated: BTreeSet<u32>,
    pub users: HashMap<u32, Quota>,
    /// By number of the group: for all its members together.
    pub groups: HashMap<u32, Quota>,
    /// The CPU time that all tasks above ordinary priority may use before those that are boosted
    /// lose that; none if they may use all.
    pub all: Option<Bandwidth>,
}

impl Quotas {
    /// The quota of the user alone; root is under none.
    pub fn of_user(&self, uid: u32) -> Option<Quota> {
        let is_seated = self.seated.contains(&uid);
        let usual = if is_seated { self.seat } else { self.default };
        (uid != 0).then(|| self.users.get(&uid).copied().unwrap_or(usual))
    }

    /// The quota of a rule with a bandwidth of its own.
    pub(crate) const fn of_rule(&self, own: Allotment) -> Quota {
        Quota {
            bandwidth: own.bandwidth,
            ..self.default
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) bandwidth: Bandwidth,
    pub(crate) runtime: Span,
    pub(crate) tasks: u32,
}

impl Used {
    pub(crate) const ONE_TASK: Self = Self {
        bandwidth: Bandwidth::ZERO,
        runtime: Span::ZERO,
        tasks: 1,
    };

    pub(crate) fn by(held: Option<Reservation>) -> Self {
        held.map_or(Self::default(), |held| Self {
            bandwidth: density(held),
            runtime: held.runtime(),
            tasks: 0,
        })
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.bandwidth += more.bandwidth;
        self.runtime += more.runtime;
        self.tasks += more.tasks;
    }

    pub(crate) fn take(&mut self, less: Self) {
        self.bandwidth = self.bandwidth - less.bandwidth;
        self.runtime = self.runtime - less.runtime;
        self.tasks = self.tasks.saturating_sub(less.tasks);
    }

    pub(crate) fn without(mut self, less: Self) -> Self {
        self.take(less);
        self
    }
}
