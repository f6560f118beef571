//! Which features of the running kernel the tracer stands on, and how each stands, each found by
//! trying it.

use std::fs;
use std::path::Path;

use libbpf_rs::MapType;
use onbeat_model::{Feature, Support};

use super::{BpfError, BpfOptions, BpfSensor, Hooks, MarkHook, interrupts};
use onbeat_kernel::proc::started_ticks;

pub fn probe() -> Vec<Feature> {
    let ring_buffer = ring_buffer();
    let mut rest = [task_storage(), wakers(), timers(), account(), marks()];
    // Who may load no BPF program is told nothing of them by another kernel.
    if ring_buffer.standing == Support::None {
        let booting = rest.iter_mut().filter(|f| f.advice.starts_with("boot"));
        booting.for_each(|feature| feature.advice = "see BPF ring buffer".to_owned());
    }
    [type_information(), ring_buffer]
        .into_iter()
        .chain(rest)
        .collect()
}

/// A feature that is there in full or else only `otherwise`: what either means, and what to do.
fn feature(
    name: &str,
    is_there: bool,
    otherwise: Support,
    [there, missing]: [&str; 2],
    advice: &str,
) -> Feature {
    if is_there {
        Feature::new(name, Support::Full, there, "")
    } else {
        Feature::new(name, otherwise, missing, advice)
    }
}

fn type_information() -> Feature {
    feature(
        "kernel type information (BTF)",
        Path::new("/sys/kernel/btf/vmlinux").exists(),
        Support::None,
        [
            "the tracer fits itself to this kernel",
            "no /sys/kernel/btf/vmlinux: the tracer cannot know where this kernel keeps what",
        ],
        "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' are",
    )
}

fn ring_buffer() -> Feature {
    feature(
        "BPF ring buffer",
        MapType::RingBuf.is_supported().unwrap_or(false),
        Support::None,
        [
            "records reach user space without a system call each",
            "cannot be made: no way for records to reach user space",
        ],
        "run as root; if root is refused, boot a kernel with CONFIG_BPF_SYSCALL=y, 5.10 or newer",
    )
}

fn task_storage() -> Feature {
    feature(
        "BPF task storage",
        MapType::TaskStorage.is_supported().unwrap_or(false),
        Support::Partial,
        [
            "an untracked task costs one load and one test",
            "cannot be made: a hash table is used, which costs more on a busy machine",
        ],
        "boot Linux 5.11 or newer",
    )
}

/// Whether this user may load BPF programs, and this kernel has type information, as far as two
/// system calls tell: what the verifier says is not known before the tracer is loaded.
pub fn is_likely() -> bool {
    type_information().standing == Support::Full && ring_buffer().standing == Support::Full
}

/// Whether it is told who woke a thread. Where it is not, every wakeup seems to come from an
/// interrupt.
pub fn tells_wakers() -> bool {
    interrupts::places().preempt_count.is_some()
}

fn wakers() -> Feature {
    feature(
        "wakers",
        tells_wakers(),
        Support::Partial,
        [
            "wakeups by threads and by interrupts are distinguished",
            "who woke a thread is not known: the count of nested interrupts was not found",
        ],
        "nothing to do: onbeat makes reservations only, and raises no thread",
    )
}

pub fn tells_expiries() -> bool {
    tells_wakers() && interrupts::places().timers.is_some()
}

fn timers() -> Feature {
    feature(
        "timers",
        tells_expiries(),
        Support::Partial,
        [
            "a thread that sleeps until absolute times shows its period in three jobs",
            "which timer woke a thread is not known: the kernel's timers were not found",
        ],
        "nothing to do: finding a period takes more wakeups",
    )
}

fn account() -> Feature {
    feature(
        "CPU time account",
        fs::read_to_string("/proc/thread-self/schedstat").is_ok()
            && started_ticks(std::process::id()).is_some(),
        Support::None,
        [
            "CPU time per thread is known to the nanosecond",
            "/proc has no CPU time per thread",
        ],
        "mount /proc, and boot a kernel with CONFIG_SCHED_INFO=y",
    )
}

fn marks() -> Feature {
    let options = BpfOptions {
        buffer_bytes: 0,
        ..BpfOptions::default()
    };
    let hook = BpfSensor::new(options).map_or(MarkHook::Unheard, |sensor| sensor.mark_hook());
    feature(
        "marks",
        hook == MarkHook::Tracepoint,
        Support::Partial,
        [
            "programs' marks of their jobs are received, and no other call costs more",
            match hook {
                MarkHook::Fentry => {
                    "received by fentry: every prctl() on the machine costs a little more"
                }
                MarkHook::Kprobe => "received by a kprobe: every prctl() on the machine costs more",
                _ => "programs' marks of their jobs are not received; all else works",
            },
        ],
        "boot Linux 6.13 or newer; an older one needs CONFIG_SECURITY=y, and CONFIG_FUNCTION_TRACER=y or CONFIG_KPROBES=y",
    )
}

/// Loads the tracer for a moment: the proof that no list of parts can be.
pub fn probe_tracer() -> Feature {
    const NAME: &str = "tracer bpf";
    let options = BpfOptions {
        buffer_bytes: 0,
        ..BpfOptions::default()
    };
    let loads = |is_on_btf| {
        feature(
            NAME,
            is_on_btf,
            Support::Partial,
            [
                "loads, on BTF tracepoints with task storage",
                "loads, but on raw tracepoints with a hash table: dearer on a busy machine",
            ],
            "boot Linux 5.11 or newer for BPF task storage",
        )
    };
    match BpfSensor::new(options) {
        Ok(sensor) => loads(sensor.hooks() == Hooks::Btf),
        Err(error) => {
            let advice = match error {
                BpfError::NoPrivilege => "run it with sudo",
                BpfError::OtherNumbers => "",
                _ => "boot a kernel with BPF and BTF, 5.10 or newer",
            };
            Feature::new(NAME, Support::None, &error.to_string(), advice)
        }
    }
}
