//! Why the kernel said no, in words that tell what to do: it only has numbers, and one of them,
//! EPERM, means three different things.

use onbeat_model::{Bandwidth, Refusal};

use crate::limits::{KernelLimits, allowed_cpus};

/// Why `sched_setattr` answered EPERM to a reservation for the task `tid`, though this process may
/// change scheduling.
pub(super) fn not_permitted(tid: u32, limits: &KernelLimits) -> Refusal {
    match allowed_cpus(tid) {
        Some((list, count)) if count < limits.cpus => Refusal::NarrowAffinity {
            advice: format!(
                "task {tid} may run on CPU {list} alone, and the kernel reserves only on all {} \
                 CPUs together: widen it with 'taskset -pc 0-{} {tid}', or give these CPUs a \
                 cpuset of their own (cpuset.cpus.partition=root in cgroup v2) and move the task \
                 there",
                limits.cpus,
                limits.cpus.saturating_sub(1)
            ),
        },
        Some(_) => Refusal::NotPermitted {
            advice: format!(
                "the kernel refused task {tid} though the privilege is there and its affinity is \
                 whole: see 'onbeat doctor' whether reservations are switched off; inside a \
                 container, give it CAP_SYS_NICE outside of a user namespace"
            ),
        },
        None => Refusal::Gone,
    }
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
