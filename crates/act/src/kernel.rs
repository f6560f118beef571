//! What this kernel gives for reservations: the actuator's lines of `onbeat doctor`.

use onbeat_model::{Capacity, Feature, Support};

use crate::deadline::may_reserve;
use crate::limits::Limits;

/// Probes everything reservations need. Nothing on the machine is changed.
#[must_use]
pub fn probe() -> Vec<Feature> {
    let limits = Limits::read();
    vec![privilege(), bandwidth(&limits)]
}

/// What there is to hand out.
#[must_use]
pub fn capacity() -> Capacity {
    Limits::read().capacity()
}

fn privilege() -> Feature {
    if may_reserve() {
        Feature::new("CAP_SYS_NICE", Support::Full, "held", "")
    } else {
        Feature::new(
            "CAP_SYS_NICE",
            Support::None,
            "not held: no scheduling can be changed",
            "run onbeat as root, or 'setcap cap_sys_nice+ep' it",
        )
    }
}

fn bandwidth(limits: &Limits) -> Feature {
    let name = "SCHED_DEADLINE bandwidth";
    match limits.per_cpu {
        Some(per_cpu) if per_cpu <= limits.fair_server => Feature::new(
            name,
            Support::None,
            "sched_rt_runtime_us leaves no room for reservations",
            "write 950000 to /proc/sys/kernel/sched_rt_runtime_us",
        ),
        _ => Feature::new(
            name,
            Support::Full,
            &format!("{} on {} CPUs", limits.admissible(), limits.cpus),
            "",
        ),
    }
}
