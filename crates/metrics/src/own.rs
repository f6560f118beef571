//! The cost of onbeat itself: CPU time, memory, open files. A value that cannot be read is left
//! out.

use std::fs;

use onbeat_kernel::clock::process_cpu_time;
use onbeat_kernel::proc::status_number;

pub(crate) fn cpu_time() -> f64 {
    process_cpu_time().as_secs_f64()
}

pub(crate) fn memory() -> Option<f64> {
    let kilobytes = status_number(std::process::id(), "VmRSS:")?;
    Some(f64::from(kilobytes) * 1024.0)
}

pub(crate) fn files() -> Option<f64> {
    // The folder is open while it is read.
    Some(
        fs::read_dir("/proc/self/fd")
            .ok()?
            .count()
            .saturating_sub(1) as f64,
    )
}
