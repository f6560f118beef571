//! Why the kernel said no, in words that tell what to do: it only has numbers, and one of them,
//! EPERM, means three different things.

use std::fmt::Write;
use std::io;

use onbeat_model::{Bandwidth, Refusal};

use crate::affinity::Affinity;
use crate::limits::{KernelLimits, may_reserve};

/// Why `sched_setattr` answered EPERM to a reservation for the task `tid`.
pub(super) fn not_permitted(tid: u32, limits: &KernelLimits) -> Refusal {
    if !may_reserve() {
        return Refusal::NotPermitted {
            advice: format!(
                "changing the scheduling of task {tid} needs CAP_SYS_NICE: run onbeat as root, or \
                 give it the capability with 'setcap cap_sys_nice+ep'"
            ),
        };
    }
    match Affinity::of(tid) {
        Ok(affinity) if affinity.count() < limits.cpus => narrow(tid, &affinity, limits),
        Ok(_) => Refusal::NotPermitted {
            advice: format!(
                "the kernel refused task {tid} though the privilege is there and its affinity is \
                 whole: see 'onbeat doctor' whether reservations are switched off; inside a \
                 container, give it CAP_SYS_NICE outside of a user namespace"
            ),
        },
        Err(error) => unknown(tid, &error),
    }
}

fn narrow(tid: u32, affinity: &Affinity, limits: &KernelLimits) -> Refusal {
    let mut advice = format!(
        "task {tid} may run on CPU {affinity} alone, and the kernel reserves only on all {} CPUs \
         together: ",
        limits.cpus
    );
    // Writing to a String cannot fail.
    let _ = write!(
        advice,
        "widen it with 'taskset -pc 0-{} {tid}', or give these CPUs a cpuset of their own \
         (cpuset.cpus.partition=root in cgroup v2) and move the task there",
        limits.cpus.saturating_sub(1)
    );
    Refusal::NarrowAffinity { advice }
}

pub(super) fn no_room(
    wanted: Bandwidth,
    admissible: Bandwidth,
    ours: Bandwidth,
    foreign: Bandwidth,
) -> Refusal {
    let free = admissible - ours - foreign;
    Refusal::NoRoom {
        wanted,
        advice: format!(
            "of the {admissible} that the kernel admits, other tasks of onbeat hold {ours} and \
             others' reservations {foreign}, which leaves {free}: ask for less, or end another \
             reservation"
        ),
    }
}

pub(super) fn unknown(tid: u32, error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Refusal::Gone,
        Some(libc::EINVAL) => Refusal::Other(format!(
            "the kernel did not take the parameters for task {tid}: see 'onbeat doctor' for its \
             limits"
        )),
        _ => Refusal::Other(format!(
            "the scheduling of task {tid} was not changed: {error}"
        )),
    }
}
