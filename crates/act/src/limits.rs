//! The kernel's limits for a reservation, from its sysctls, and the number of CPUs.
//!
//! Read as seldom as can be: kernels since 6.17 rebuild their account of bandwidth, and with it
//! forget tasks that are settling, even when `sched_rt_runtime_us` or `sched_rt_period_us` is only
//! read.

use std::fs;
use std::sync::OnceLock;

use onbeat_kernel::{cpus, proc};
use onbeat_model::{Bandwidth, Capacity, Reservation, Span};

/// The fair server's share of each CPU, unless it was changed: it counts in the admission test.
const FAIR_SERVER: f64 = 0.05;

/// `DL_SCALE` in `kernel/sched/deadline.c`: a shorter runtime is refused.
pub(crate) const DL_SCALE_NS: u64 = 1 << 10;

/// `include/uapi/linux/capability.h`.
const CAP_SYS_NICE: u32 = 23;

#[must_use]
pub fn may_reserve() -> bool {
    may_schedule(std::process::id())
}

pub(crate) fn may_schedule(tid: u32) -> bool {
    let mask = proc::status(tid, "CapEff:");
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << CAP_SYS_NICE) != 0)
}

/// The CPUs that the thread may run on, as the kernel lists them (`0-3,6`), and how many they are;
/// none if there is no such thread. The kernel reserves only for tasks that may run on all of their
/// root domain.
#[must_use]
pub fn allowed_cpus(tid: u32) -> Option<(String, u32)> {
    let list = proc::status(tid, "Cpus_allowed_list:")?.trim().to_owned();
    let count = cpus::list(&list)?.len();
    Some((list, u32::try_from(count).unwrap_or(u32::MAX)))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KernelLimits {
    pub(crate) cpus: u32,
    /// The share of one CPU that the admission test lets all reservations have; none if it is
    /// switched off.
    pub(crate) per_cpu: Option<Bandwidth>,
    /// The share of one CPU that the kernel itself reserves for ordinary tasks.
    pub(crate) fair_server: Bandwidth,
    pub(crate) shortest_period: Span,
    pub(crate) longest_period: Span,
}

impl KernelLimits {
    /// Reads them, the bandwidth but once in the process; what cannot be read is taken to be the
    /// kernel's default.
    pub(crate) fn read() -> Self {
        static PER_CPU: OnceLock<Option<Bandwidth>> = OnceLock::new();
        Self::with(*PER_CPU.get_or_init(per_cpu))
    }

    /// Reads them all, at the price of a recount.
    pub(crate) fn read_anew() -> Self {
        Self::with(per_cpu())
    }

    fn with(per_cpu: Option<Bandwidth>) -> Self {
        let microseconds = |name: &str, default| {
            let value = read_number(&format!("/proc/sys/kernel/{name}"))
                .and_then(|us| u64::try_from(us).ok());
            Span::from_us(value.unwrap_or(default))
        };
        Self {
            cpus: online(),
            per_cpu,
            fair_server: fair_server(),
            shortest_period: microseconds("sched_deadline_period_min_us", 100),
            longest_period: microseconds("sched_deadline_period_max_us", 1 << 22),
        }
    }

    #[must_use]
    pub(crate) fn admissible(&self) -> Bandwidth {
        let of_one = self.per_cpu.unwrap_or(Bandwidth::ONE) - self.fair_server;
        (0..self.cpus).map(|_| of_one).sum()
    }

    /// The same, as the loop reads it.
    #[must_use]
    pub(crate) fn capacity(&self) -> Capacity {
        Capacity {
            cpus: self.cpus,
            admissible: self.admissible(),
            shortest_runtime: Span::from_ns(DL_SCALE_NS),
            shortest_period: self.shortest_period,
            longest_period: self.longest_period,
        }
    }

    /// Why the kernel would not take this reservation, whatever room there is; none if it would.
    #[must_use]
    pub(crate) fn objection(&self, reservation: Reservation) -> Option<String> {
        let runtime = reservation.runtime();
        let period = reservation.period();
        let shortest = Span::from_ns(DL_SCALE_NS);
        if runtime < shortest {
            Some(format!(
                "a runtime of {runtime} is shorter than the kernel takes: ask for at least {shortest}"
            ))
        } else if period < self.shortest_period {
            Some(format!(
                "a period of {period} is shorter than the kernel takes: ask for at least {}, or \
                 lower /proc/sys/kernel/sched_deadline_period_min_us",
                self.shortest_period
            ))
        } else if period > self.longest_period {
            Some(format!(
                "a period of {period} is longer than the kernel takes: ask for at most {}, or raise \
                 /proc/sys/kernel/sched_deadline_period_max_us",
                self.longest_period
            ))
        } else {
            None
        }
    }
}

pub(crate) fn online() -> u32 {
    cpus::online().map_or(1, |cpus| cpus.len() as u32)
}

/// The share of one CPU that the admission test lets all reservations have; none if it is switched
/// off.
fn per_cpu() -> Option<Bandwidth> {
    let runtime_us = read_number("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or(950_000);
    let period_us = read_number("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    let runtime_us = u64::try_from(runtime_us).ok()?;
    let period_us = u64::try_from(period_us).unwrap_or(1_000_000);
    Some(Bandwidth::of(
        Span::from_us(runtime_us),
        Span::from_us(period_us),
    ))
}

/// The share of the first CPU that the kernel reserves for ordinary tasks; where it does not tell,
/// the default, which is the safe side.
fn fair_server() -> Bandwidth {
    let directory = "/sys/kernel/debug/sched/fair_server/cpu0";
    let nanoseconds = |name: &str| {
        let value = read_number(&format!("{directory}/{name}"))?;
        u64::try_from(value).ok().map(Span::from_ns)
    };
    match (nanoseconds("runtime"), nanoseconds("period")) {
        (Some(runtime), Some(period)) => Bandwidth::of(runtime, period),
        _ => Bandwidth::from_cpus(FAIR_SERVER),
    }
}

fn read_number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_would_not_take_is_told_with_the_limit() {
        let limits = KernelLimits {
            cpus: 2,
            per_cpu: Some(Bandwidth::from_cpus(0.95)),
            fair_server: Bandwidth::from_cpus(0.05),
            shortest_period: Span::from_us(100),
            longest_period: Span::from_secs(4),
        };
        assert_eq!(limits.admissible(), Bandwidth::from_cpus(1.8));
        let of = |runtime, period| Reservation::implicit(runtime, period).unwrap();
        let objection = |runtime, period| limits.objection(of(runtime, period)).unwrap_or_default();
        assert!(objection(Span::from_ns(1023), Span::from_ms(1)).contains("1.024 us"));
        assert!(objection(Span::from_us(9), Span::from_us(99)).contains("100 us"));
        assert!(objection(Span::from_ms(1), Span::from_secs(5)).contains("at most 4 s"));
        assert_eq!(objection(Span::from_ms(1), Span::from_ms(10)), "");
    }
}
