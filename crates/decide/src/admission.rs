//! Whether one more fixed reservation fits, and what is free: the answer to `onbeat reserve`.
//!
//! Reservations are scheduled by global EDF (the kernel's SCHED_DEADLINE): its admission test is
//! eq. 1 of LFS++ over all CPUs, which bounds every task's tardiness. It does not promise that no
//! deadline is missed: for that the reservations must also fit when every task stays on one CPU.
//! Both are told.

use std::fmt;

use onbeat_model::Bandwidth;

use crate::supervisor::Limits;

/// Whether a reservation fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It fits, and a CPU is left that has room for the whole of it: it can be served as if alone.
    OnOneCpu {
        /// What stays free of the total.
        left: Bandwidth,
    },
    /// It fits in total, but no CPU has room for the whole of it: jobs may be late by a bounded time.
    AcrossCpus {
        /// What stays free of the total.
        left: Bandwidth,
        /// The most that one CPU has free.
        largest: Bandwidth,
    },
    /// Not enough is free in total.
    NoRoom {
        /// What is wanted.
        wanted: Bandwidth,
        /// What is free.
        free: Bandwidth,
    },
    /// More than one task may have.
    TooLarge {
        /// What is wanted.
        wanted: Bandwidth,
        /// What one task may have.
        most: Bandwidth,
    },
}

impl Verdict {
    /// It can be granted.
    #[must_use]
    pub const fn fits(&self) -> bool {
        matches!(self, Self::OnOneCpu { .. } | Self::AcrossCpus { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnOneCpu { left } => write!(f, "fits on one CPU; {left} stays free"),
            Self::AcrossCpus { left, largest } => write!(
                f,
                "fits, but no CPU has more than {largest} free, so jobs may end late by a bounded \
                 time; {left} stays free"
            ),
            Self::NoRoom { wanted, free } => write!(
                f,
                "{wanted} is wanted and {free} is free: ask for at most that, or end another \
                 reservation"
            ),
            Self::TooLarge { wanted, most } => write!(
                f,
                "{wanted} is wanted and one task may have {most}: lower the runtime, or raise the \
                 per-task cap"
            ),
        }
    }
}

/// Whether `wanted` fits beside the bandwidths in force (`held`) on `cpus` CPUs within `limits`.
#[must_use]
pub fn check(wanted: Bandwidth, held: &[Bandwidth], cpus: u32, limits: &Limits) -> Verdict {
    let free = limits.total - held.iter().copied().sum();
    if wanted > limits.per_task {
        return Verdict::TooLarge {
            wanted,
            most: limits.per_task,
        };
    }
    if wanted > free {
        return Verdict::NoRoom { wanted, free };
    }
    let left = free - wanted;
    let largest = largest_gap(held, cpus);
    if wanted <= largest {
        Verdict::OnOneCpu { left }
    } else {
        Verdict::AcrossCpus { left, largest }
    }
}

/// The most that one CPU has free when the tasks are packed by best fit, the largest first; a task
/// that no CPU has room for takes all of the emptiest one's.
fn largest_gap(held: &[Bandwidth], cpus: u32) -> Bandwidth {
    let mut free = vec![Bandwidth::ONE; cpus.max(1) as usize];
    let mut largest_first = held.to_vec();
    largest_first.sort_unstable_by(|a, b| b.cmp(a));
    for bandwidth in largest_first {
        free.sort_unstable();
        let best = free
            .partition_point(|gap| *gap < bandwidth)
            .min(free.len() - 1);
        free[best] = free[best] - bandwidth;
    }
    free.into_iter().max().unwrap_or(Bandwidth::ZERO)
}
