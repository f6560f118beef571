//! How long each CPU has been idle, by the kernel's own account (`/proc/stat`).
//!
//! Idle time, and not the times of use beside it: those are sampled on the scheduler's tick, while
//! a CPU's way into idleness and out of it is measured. In hundredths of a second, which is exact
//! enough for a utilisation once a second.

use std::fs;

use onbeat_kernel::clock::TICK;
use onbeat_model::Span;

/// Reads the idle time of each CPU that is online, in order; none if the kernel does not tell.
pub fn idle() -> Option<Vec<Span>> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// In each line `cpuN user nice system idle iowait ...`, the two that are no use of the CPU.
fn parse(stat: &str) -> Option<Vec<Span>> {
    let of_cpu = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(4);
        let mut field = || fields.next()?.parse::<u64>().ok();
        let ticks = field()?.saturating_add(field()?);
        Some(TICK * ticks)
    };
    let lines = stat.lines().filter(|line| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let idle: Vec<Span> = lines.map(of_cpu).collect::<Option<_>>()?;
    (!idle.is_empty()).then_some(idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_is_idle_while_it_waits_for_nothing_or_for_a_disk() {
        let stat = "cpu  30 0 30 3000 40 0 0 5 0 0\n\
                    cpu0 10 0 10 1000 20 0 0 5 0 0\n\
                    cpu3 20 0 20 2000 20 0 0 0 0 0\n\
                    intr 1 2 3 4 5 6 7\nctxt 5\n";
        let idle = parse(stat).unwrap();
        assert_eq!(idle, [10_200, 20_200].map(Span::from_ms));
    }
}
