//! Which features of the running kernel the tracer stands on, and how each stands, each found by
//! trying it.

use std::path::Path;

use libbpf_rs::{MapType, ProgramType};

use super::{BpfSensor, Error, Hooks, Options, interrupts};
use crate::workload;

/// How far the kernel gives a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All of it.
    Full,
    /// Enough to work, with a loss.
    Partial,
    /// None of it.
    None,
}

/// One thing the tracer needs or profits from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// What it is called.
    pub name: &'static str,
    /// How it stands here.
    pub standing: Standing,
    /// What that means for the tracer.
    pub detail: String,
    /// What to do about it; empty if there is nothing to do.
    pub advice: &'static str,
}

impl Feature {
    fn new(
        name: &'static str,
        standing: Standing,
        detail: impl Into<String>,
        advice: &'static str,
    ) -> Self {
        let advice = if standing == Standing::Full {
            ""
        } else {
            advice
        };
        Self {
            name,
            standing,
            detail: detail.into(),
            advice,
        }
    }
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

fn standing(is_there: bool) -> Standing {
    if is_there {
        Standing::Full
    } else {
        Standing::None
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
    Feature::new(
        "kernel type information (BTF)",
        standing(is_there),
        detail,
        advice,
    )
}

fn ring_buffer() -> Feature {
    let is_there = MapType::RingBuf.is_supported().unwrap_or(false)
        && ProgramType::Tracing.is_supported().unwrap_or(false);
    let detail = if is_there {
        "tracing programs and ring buffers load"
    } else {
        "tracing programs or ring buffers do not load"
    };
    let advice =
        "run as root; if root is refused, boot a kernel with CONFIG_BPF_SYSCALL=y, 5.8 or newer";
    Feature::new("BPF", standing(is_there), detail, advice)
}

fn wakers() -> Feature {
    let (standing, detail) = if interrupts::preempt_count_from_rq().is_some() {
        (
            Standing::Full,
            "wakeups by threads and by interrupts are told apart",
        )
    } else {
        (
            Standing::Partial,
            "who woke a thread is not told: the interrupt count was not found",
        )
    };
    Feature::new(
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
    Feature::new("CPU time account", standing(own && started), detail, advice)
}

/// Loads the tracer for a moment: the proof that no list of parts can be.
fn tracer() -> Feature {
    let options = Options {
        buffer_bytes: 0,
        ..Options::default()
    };
    let name = "tracer";
    match BpfSensor::new(options) {
        Ok(sensor) if sensor.hooks() == Hooks::Btf => Feature::new(
            name,
            Standing::Full,
            "loads, on BTF tracepoints with task storage",
            "",
        ),
        Ok(_) => Feature::new(
            name,
            Standing::Partial,
            "loads on raw tracepoints, with a hash table: dearer on a busy machine",
            "boot Linux 5.11 or newer for BPF task storage",
        ),
        Err(Error::NoPrivilege) => Feature::new(
            name,
            Standing::None,
            Error::NoPrivilege.to_string(),
            "run it with sudo",
        ),
        Err(error) => Feature::new(
            name,
            Standing::None,
            error.to_string(),
            "boot a kernel with BPF and BTF, 5.8 or newer",
        ),
    }
}
