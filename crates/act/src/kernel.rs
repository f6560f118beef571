//! The kernel's support for reservations: the actuator's lines of `onbeat doctor`.
//!
//! Policies are probed by taking them, on threads of our own that end at once.

use std::fs;
use std::io;
use std::path::Path;

use onbeat_model::{Bandwidth, Capacity, Feature, Reservation, Span, Support};

use crate::attributes::Attributes;
use crate::cpufreq;
use crate::enforcement;
use crate::limits::{KernelLimits, allowed_cpus, may_reserve};
use crate::own::real_time;
use crate::reserved::reserved_tasks;

/// Probes everything reservations need. Nothing is left changed on the machine.
#[must_use]
pub fn probe() -> Vec<Feature> {
    let limits = KernelLimits::read();
    vec![
        privilege(),
        reservations(),
        reclaiming(),
        bandwidth(&limits),
        periods(&limits),
        affinity(&limits),
        cpusets(),
        own_priority(),
        server_state(),
        exact_runtimes(),
        cpufreq::probe(&cpufreq::Tree::default()),
    ]
}

#[must_use]
pub fn capacity() -> Capacity {
    KernelLimits::read().capacity()
}

/// The bandwidth of all reservations of SCHED_DEADLINE on the machine now.
#[must_use]
pub fn reserved() -> Bandwidth {
    reserved_tasks().map(|(_, bandwidth)| bandwidth).sum()
}

fn privilege() -> Feature {
    let name = "CAP_SYS_NICE";
    if may_reserve() {
        Feature::new(name, Support::Full, "held", "")
    } else {
        Feature::new(
            name,
            Support::None,
            "not held: no scheduling can be changed",
            "run onbeat as root, or 'setcap cap_sys_nice+ep' it",
        )
    }
}

/// Whether a thread of our own can be given `attributes`; it ends right after.
fn takes(attributes: Attributes) -> io::Result<()> {
    std::thread::spawn(move || attributes.set(0))
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the probing thread broke off")))
}

/// A reservation so small that there is room for it if there is any.
fn least(reclaim: bool) -> Option<Attributes> {
    let least = Reservation::implicit(Span::from_us(10), Span::from_ms(100)).ok()?;
    Some(Attributes::reserved(least, reclaim))
}

fn reservations() -> Feature {
    let name = "SCHED_DEADLINE";
    let Some(least) = least(false) else {
        return Feature::new(name, Support::None, "not probed", "");
    };
    let Err(error) = takes(least) else {
        return Feature::new(name, Support::Full, "reservations are admitted", "");
    };
    let (detail, advice) = match error.raw_os_error() {
        Some(libc::EPERM) if !may_reserve() => ("refused", "see CAP_SYS_NICE"),
        Some(libc::EPERM) => (
            "refused though the privilege is there",
            "see CPU affinity and reservable bandwidth",
        ),
        Some(libc::EBUSY) => (
            "no room for the smallest reservation",
            "end other programs' reservations: 'ps -eLo tid,cls,comm | grep DLN' lists them",
        ),
        _ => (
            "the kernel does not know this policy",
            "boot a kernel of 3.14 or newer",
        ),
    };
    Feature::new(name, Support::None, &format!("{detail} ({error})"), advice)
}

/// Whether the kernel knows reservations that may use what others leave (GRUB). One that has no
/// room just now, or refuses for want of privilege, still knows them.
#[must_use]
pub fn reclaims() -> bool {
    let unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    least(true).is_some_and(|least| !takes(least).is_err_and(|error| unknown(&error)))
}

fn reclaiming() -> Feature {
    let name = "GRUB reclaiming";
    match least(true).map(takes) {
        Some(Ok(())) => Feature::new(
            name,
            Support::Full,
            "a reservation is a ceiling only with --hard",
            "",
        ),
        Some(Err(error)) if error.raw_os_error() == Some(libc::EPERM) => Feature::new(
            name,
            Support::Partial,
            "not known: no reservation could be tried",
            "see CAP_SYS_NICE",
        ),
        _ => Feature::new(
            name,
            Support::None,
            "reservations cannot use what others leave: each is a ceiling, as with --hard",
            "boot a kernel of 4.13 or newer",
        ),
    }
}

fn bandwidth(limits: &KernelLimits) -> Feature {
    let name = "reservable bandwidth";
    let held = reserved();
    let detail = format!(
        "{} on {} CPUs, of which {held} is reserved now",
        limits.admissible(),
        limits.cpus
    );
    if limits.admissible() == Bandwidth::ZERO {
        let advice = "write 950000 to /proc/sys/kernel/sched_rt_runtime_us";
        Feature::new(name, Support::None, &detail, advice)
    } else if limits.per_cpu.is_none() {
        let detail = format!("{detail}; admission control is switched off");
        let advice = "write 950000 to /proc/sys/kernel/sched_rt_runtime_us, lest reserved programs \
                      take all of the machine";
        Feature::new(name, Support::Partial, &detail, advice)
    } else if held >= limits.admissible() {
        let advice = "end other programs' reservations";
        Feature::new(name, Support::Partial, &detail, advice)
    } else {
        Feature::new(name, Support::Full, &detail, "")
    }
}

/// The rhythms onbeat looks for: 0.5 ms to 1 s.
fn periods(limits: &KernelLimits) -> Feature {
    let name = "reservation periods";
    let detail = format!("{} to {}", limits.shortest_period, limits.longest_period);
    let is_wide =
        limits.shortest_period <= Span::from_us(500) && limits.longest_period >= Span::from_secs(1);
    if is_wide {
        Feature::new(name, Support::Full, &detail, "")
    } else {
        let advice = "programs outside of that are left alone: see \
                      /proc/sys/kernel/sched_deadline_period_{min,max}_us";
        Feature::new(name, Support::Partial, &detail, advice)
    }
}

fn affinity(limits: &KernelLimits) -> Feature {
    let name = "CPU affinity";
    match allowed_cpus(std::process::id()) {
        Some((list, count)) if count < limits.cpus => Feature::new(
            name,
            Support::Partial,
            &format!(
                "onbeat, and every program it starts, may run on CPU {list} alone of {}",
                limits.cpus
            ),
            "start onbeat without taskset and outside of a cpuset, or in one with \
             cpuset.cpus.partition=root: the kernel reserves for tasks that may run everywhere",
        ),
        Some((list, _)) => {
            let detail = format!("CPU {list}, all there are");
            Feature::new(name, Support::Full, &detail, "")
        }
        None => Feature::new(name, Support::None, "not told", "mount /proc"),
    }
}

fn cpusets() -> Feature {
    let name = "cpusets";
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    if controllers.split_whitespace().any(|name| name == "cpuset") {
        let detail = "cgroup v2: CPUs can be set apart with cpuset.cpus.partition=root";
        Feature::new(name, Support::Full, detail, "")
    } else if Path::new("/sys/fs/cgroup/cpuset/cpuset.cpus").exists() {
        let detail = "cgroup v1: CPUs can be set apart with cpuset.cpu_exclusive and \
                      cpuset.sched_load_balance";
        Feature::new(name, Support::Full, detail, "")
    } else {
        let detail = "none: programs bound to some CPUs cannot have reservations";
        let advice = "mount a cgroup file system with the cpuset controller";
        Feature::new(name, Support::Partial, detail, advice)
    }
}

fn own_priority() -> Feature {
    let name = "onbeat's own priority";
    match takes(real_time(1)) {
        Ok(()) => Feature::new(name, Support::Full, "SCHED_FIFO", ""),
        Err(error) => Feature::new(
            name,
            Support::Partial,
            &format!("no real-time priority ({error}): it may act late on a busy machine"),
            "give it CAP_SYS_NICE; where real-time groups are compiled in, give its cgroup some \
             cpu.rt_runtime_us",
        ),
    }
}

fn server_state() -> Feature {
    let name = "throttled tasks";
    if Path::new("/proc/self/sched").exists() {
        let detail = "/proc/TID/sched tells whether a task is throttled";
        Feature::new(name, Support::Full, detail, "")
    } else {
        let detail = "not known: a task may be released while it is throttled";
        let advice = "use a kernel with CONFIG_SCHED_DEBUG";
        Feature::new(name, Support::Partial, detail, advice)
    }
}

fn exact_runtimes() -> Feature {
    let name = "exact runtimes";
    match enforcement::measure() {
        // Exact enough for runtimes of some hundred microseconds.
        Some((used, given)) if used < given * 2 => {
            let detail = "a task is stopped when its runtime is used up";
            Feature::new(name, Support::Full, detail, "")
        }
        Some((used, given)) => Feature::new(
            name,
            Support::Partial,
            &format!(
                "a task is stopped at the next tick only: of {given} given, one used {used}, and \
                 pays for it later"
            ),
            "'echo HRTICK_DL > /sys/kernel/debug/sched/features', if short reservations miss",
        ),
        None => Feature::new(
            name,
            Support::Partial,
            "not measured: no reservation could be made, or it was not enforced",
            "see SCHED_DEADLINE",
        ),
    }
}
