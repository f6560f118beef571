//! The kernel's support for reservations: the actuator's lines of `onbeat doctor`.
//!
//! Policies are probed by taking them, on threads of our own that end at once.

use std::fs;
use std::io;
use std::path::Path;

use onbeat_model::{Bandwidth, Capacity, Feature, Reservation, Span, Support};

use crate::attributes::{Attributes, Policy};
use crate::cpufreq;
use crate::limits::{KernelLimits, allowed_cpus, may_reserve};
use crate::own::real_time;
use crate::server;
use crate::task::{numbers, stat};

/// How the machine stands with a feature, what it has, and what to do.
type Finding = (Support, String, &'static str);

fn full(detail: impl Into<String>) -> Finding {
    (Support::Full, detail.into(), "")
}

fn partial(detail: impl Into<String>, advice: &'static str) -> Finding {
    (Support::Partial, detail.into(), advice)
}

fn none(detail: impl Into<String>, advice: &'static str) -> Finding {
    (Support::None, detail.into(), advice)
}

/// Probes everything reservations need. Nothing is left changed on the machine.
#[must_use]
pub fn probe() -> Vec<Feature> {
    let limits = KernelLimits::read();
    let findings = [
        ("CAP_SYS_NICE", privilege()),
        ("SCHED_DEADLINE", reservations()),
        ("GRUB reclaiming", reclaiming()),
        ("reservable bandwidth", bandwidth(&limits)),
        ("reservation periods", periods(&limits)),
        ("CPU affinity", affinity(&limits)),
        ("cpusets", cpusets()),
        ("onbeat's own priority", own_priority()),
        ("throttled tasks", server_state()),
        ("exact runtimes", exact_runtimes()),
    ];
    let features = findings
        .into_iter()
        .map(|(name, (standing, detail, advice))| Feature::new(name, standing, &detail, advice));
    features
        .chain([cpufreq::probe(&cpufreq::Tree::default())])
        .collect()
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

fn privilege() -> Finding {
    if may_reserve() {
        full("held")
    } else {
        none(
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

fn reservations() -> Finding {
    let Some(least) = least(false) else {
        return none("not probed", "");
    };
    let Err(error) = takes(least) else {
        return full("reservations are admitted");
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
    none(format!("{detail} ({error})"), advice)
}

/// Whether the kernel knows reservations that may use what others leave (GRUB). One that has no
/// room just now, or refuses for want of privilege, still knows them.
#[must_use]
pub fn reclaims() -> bool {
    let unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    least(true).is_some_and(|least| !takes(least).is_err_and(|error| unknown(&error)))
}

fn reclaiming() -> Finding {
    match least(true).map(takes) {
        Some(Ok(())) => full("a reservation is a ceiling only with --hard"),
        Some(Err(error)) if error.raw_os_error() == Some(libc::EPERM) => partial(
            "not known: no reservation could be tried",
            "see CAP_SYS_NICE",
        ),
        _ => none(
            "reservations cannot use what others leave: each is a ceiling, as with --hard",
            "boot a kernel of 4.13 or newer",
        ),
    }
}

fn bandwidth(limits: &KernelLimits) -> Finding {
    let held = reserved();
    let detail = format!(
        "{} on {} CPUs, of which {held} is reserved now",
        limits.admissible(),
        limits.cpus
    );
    if limits.admissible() == Bandwidth::ZERO {
        none(
            detail,
            "write 950000 to /proc/sys/kernel/sched_rt_runtime_us",
        )
    } else if limits.per_cpu.is_none() {
        let detail = format!("{detail}; admission control is switched off");
        let advice = "write 950000 to /proc/sys/kernel/sched_rt_runtime_us, lest reserved programs \
                      take all of the machine";
        partial(detail, advice)
    } else if held >= limits.admissible() {
        partial(detail, "end other programs' reservations")
    } else {
        full(detail)
    }
}

/// The rhythms onbeat looks for: 0.5 ms to 1 s.
fn periods(limits: &KernelLimits) -> Finding {
    let detail = format!("{} to {}", limits.shortest_period, limits.longest_period);
    let is_wide =
        limits.shortest_period <= Span::from_us(500) && limits.longest_period >= Span::from_secs(1);
    if is_wide {
        full(detail)
    } else {
        let advice = "programs outside of that are left alone: see \
                      /proc/sys/kernel/sched_deadline_period_{min,max}_us";
        partial(detail, advice)
    }
}

fn affinity(limits: &KernelLimits) -> Finding {
    match allowed_cpus(std::process::id()) {
        Some((list, count)) if count < limits.cpus => partial(
            format!(
                "onbeat, and every program it starts, may run on CPU {list} alone of {}",
                limits.cpus
            ),
            "start onbeat without taskset and outside of a cpuset, or in one with \
             cpuset.cpus.partition=root: the kernel reserves for tasks that may run everywhere",
        ),
        Some((list, _)) => full(format!("CPU {list}, all there are")),
        None => none("not told", "mount /proc"),
    }
}

fn cpusets() -> Finding {
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    if controllers.split_whitespace().any(|name| name == "cpuset") {
        full("cgroup v2: CPUs can be set apart with cpuset.cpus.partition=root")
    } else if Path::new("/sys/fs/cgroup/cpuset/cpuset.cpus").exists() {
        let detail = "cgroup v1: CPUs can be set apart with cpuset.cpu_exclusive and \
                      cpuset.sched_load_balance";
        full(detail)
    } else {
        let detail = "none: programs bound to some CPUs cannot have reservations";
        let advice = "mount a cgroup file system with the cpuset controller";
        partial(detail, advice)
    }
}

fn own_priority() -> Finding {
    match takes(real_time(1)) {
        Ok(()) => full("SCHED_FIFO"),
        Err(error) => partial(
            format!("no real-time priority ({error}): it may act late on a busy machine"),
            "give it CAP_SYS_NICE; where real-time groups are compiled in, give its cgroup some \
             cpu.rt_runtime_us",
        ),
    }
}

fn server_state() -> Finding {
    if Path::new("/proc/self/sched").exists() {
        full("/proc/TID/sched tells whether a task is throttled")
    } else {
        let detail = "not known: a task may be released while it is throttled";
        let advice = "use a kernel with CONFIG_SCHED_DEBUG";
        partial(detail, advice)
    }
}

fn exact_runtimes() -> Finding {
    match server::measure() {
        // Exact enough for runtimes of some hundred microseconds.
        Some((used, given)) if used < given * 2 => {
            full("a task is stopped when its runtime is used up")
        }
        Some((used, given)) => partial(
            format!(
                "a task is stopped at the next tick only: of {given} given, one used {used}, and \
                 pays for it later"
            ),
            "'echo HRTICK_DL > /sys/kernel/debug/sched/features', if short reservations miss",
        ),
        None => partial(
            "not measured: no reservation could be made, or it was not enforced",
            "see SCHED_DEADLINE",
        ),
    }
}

/// Every thread on the machine that has a reservation, and its bandwidth.
pub(crate) fn reserved_tasks() -> impl Iterator<Item = (u32, Bandwidth)> {
    tasks_of_policy(libc::SCHED_DEADLINE as u32).filter_map(|tid| {
        match Attributes::get(tid).ok()?.policy {
            Policy::Deadline(deadline) => {
                let span = Span::from_ns;
                let bandwidth = Bandwidth::of(span(deadline.runtime_ns), span(deadline.period_ns));
                Some((tid, bandwidth))
            }
            _ => None,
        }
    })
}

pub fn tasks_of_policy(policy: u32) -> impl Iterator<Item = u32> {
    numbers(Path::new("/proc"))
        .flat_map(|pid| numbers(&Path::new("/proc").join(pid.to_string()).join("task")))
        .filter(move |&tid| stat(tid).is_some_and(|stat| stat.policy == policy))
}
