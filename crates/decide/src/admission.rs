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

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::Span;

    fn asked(wanted: f64, held: &[f64]) -> Verdict {
        let held: Vec<Bandwidth> = held.iter().copied().map(Bandwidth::from_cpus).collect();
        let limits = Limits {
            total: Bandwidth::from_cpus(1.7),
            per_task: Bandwidth::from_cpus(0.85),
            shortest_runtime: Span::from_ns(1024),
        };
        check(Bandwidth::from_cpus(wanted), &held, 2, &limits)
    }

    #[test]
    fn a_reservation_fits_on_one_cpu_across_cpus_or_not_at_all() {
        let one = asked(0.5, &[0.6, 0.5]);
        assert!(one.fits());
        assert_eq!(one.to_string(), "fits on one CPU; 10.0% stays free");
        let across = asked(0.5, &[0.6, 0.59]);
        assert!(across.fits());
        assert_eq!(
            across.to_string(),
            "fits, but no CPU has more than 41.0% free, so jobs may end late by a bounded time; \
             1.0% stays free"
        );
        let none = asked(0.5, &[0.8, 0.8]);
        assert!(!none.fits());
        assert!(
            none.to_string()
                .starts_with("50.0% is wanted and 10.0% is free")
        );
        let large = asked(0.9, &[]);
        assert!(!large.fits());
        assert!(large.to_string().contains("one task may have 85.0%"));
    }

    #[test]
    fn small_tasks_are_packed_before_a_gap_is_called_too_small() {
        let one = asked(0.8, &[0.3, 0.2, 0.4]);
        assert_eq!(one.to_string(), "fits on one CPU; 0.0% stays free");
    }
}
