//! Which features of the running kernel the tracer stands on, and how each stands, each found by
//! trying it.

use std::path::Path;

use libbpf_rs::{MapType, ProgramType};
use onbeat_model::{Feature, Support};

use super::{BpfSensor, Error, Hooks, Options, interrupts};
use crate::workload;

/// A feature, with advice only where something is missing.
fn feature(name: &str, standing: Support, detail: &str, advice: &str) -> Feature {
    let advice = if standing == Support::Full {
        ""
    } else {
        advice
    };
    Feature::new(name, standing, detail, advice)
}

/// Tries each feature that the tracer needs, and last the tracer itself.
#[must_use]
pub fn probe() -> Vec<Feature> {
    vec![
        type_information(),
        ring_buffer(),
        wakers(),
        account(),
        tracer(),
    ]
}

fn standing(is_there: bool) -> Support {
    if is_there {
        Support::Full
    } else {
        Support::None
    }
}

fn type_information() -> Feature {
    let path = "/sys/kernel/btf/vmlinux";
    let is_there = Path::new(path).exists();
    let detail = if is_there {
        format!("{path} is there, so the tracer fits itself to this kernel")
    } else {
        format!("{path} is missing, so the tracer cannot know where this kernel keeps what")
    };
    let advice = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' are";
    feature(
        "kernel type information (BTF)",
        standing(is_there),
        &detail,
        advice,
    )
}

fn ring_buffer() -> Feature {
    let is_there = MapType::RingBuf.is_supported().unwrap_or(false)
        && ProgramType::RawTracepoint.is_supported().unwrap_or(false);
    let detail = if is_there {
        "tracing programs and ring buffers load"
    } else {
        "tracing programs or ring buffers do not load"
    };
    let advice =
        "run as root; if root is refused, boot a kernel with CONFIG_BPF_SYSCALL=y, 5.8 or newer";
    feature("BPF", standing(is_there), detail, advice)
}

fn wakers() -> Feature {
    let (standing, detail) = if interrupts::preempt_count_from_rq().is_some() {
        (
            Support::Full,
            "wakeups by threads and by interrupts are told apart",
        )
    } else {
        (
            Support::Partial,
            "who woke a thread is not told: the interrupt count was not found",
        )
    };
    feature(
        "wakers",
        standing,
        detail,
        "nothing; reservations do not depend on it",
    )
}

fn account() -> Feature {
    let own = std::fs::read_to_string("/proc/thread-self/schedstat").is_ok();
    let started = workload::started_ticks(std::process::id()).is_some();
    let detail = if own && started {
        "CPU time per thread is told to the nanosecond"
    } else {
        "/proc tells no CPU time per thread"
    };
    let advice = "mount /proc, and boot a kernel with CONFIG_SCHED_INFO=y";
    feature("CPU time account", standing(own && started), detail, advice)
}

/// Loads the tracer for a moment: the proof that no list of parts can be.
fn tracer() -> Feature {
    let options = Options {
        buffer_bytes: 0,
        ..Options::default()
    };
    let name = "tracer";
    match BpfSensor::new(options) {
        Ok(sensor) if sensor.hooks() == Hooks::Btf => feature(
            name,
            Support::Full,
            "loads, on BTF tracepoints with task storage",
            "",
        ),
        Ok(_) => feature(
            name,
            Support::Partial,
            "loads on raw tracepoints, with a hash table: dearer on a busy machine",
            "boot Linux 5.11 or newer for BPF task storage",
        ),
        Err(Error::NoPrivilege) => feature(
            name,
            Support::None,
            &Error::NoPrivilege.to_string(),
            "run it with sudo",
        ),
        Err(error) => feature(
            name,
            Support::None,
            &error.to_string(),
            "boot a kernel with BPF and BTF, 5.8 or newer",
        ),
    }
}
