//! What onbeat itself takes: CPU time, memory, open files. A value that cannot be read is left out.

use std::fs;

/// In the kernel's interface to programs a second has so many ticks, on every machine
/// (`getconf CLK_TCK`).
const TICKS_A_SECOND: f64 = 100.0;

/// In seconds.
pub(crate) fn cpu_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may have spaces: the state is field 3, user and system time are 14 and
    // 15.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_A_SECOND)
}

/// In bytes.
pub(crate) fn memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes = resident.trim().strip_suffix("kB")?;
    Some(kilobytes.trim().parse::<f64>().ok()? * 1024.0)
}

/// How many.
pub(crate) fn files() -> Option<f64> {
    // The folder is open while it is read.
    Some(
        fs::read_dir("/proc/self/fd")
            .ok()?
            .count()
            .saturating_sub(1) as f64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_time_memory_and_files() {
        let mut spins = 0_u64;
        while cpu_time().unwrap() == 0.0 {
            spins = std::hint::black_box(spins + 1);
        }
        assert!(memory().unwrap() > 100_000.0);
        let before = files().unwrap();
        let open = fs::File::open("/proc/self/status").unwrap();
        // Other tests open files, too.
        assert!(files().unwrap() > 2.0 && before > 2.0);
        drop(open);
    }
}
