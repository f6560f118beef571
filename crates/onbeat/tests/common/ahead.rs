//! What programs use above ordinary priority, and a loop that stands still.

use std::path::Path;
use std::time::{Duration, Instant};

use onbeat_act::attributes::Attributes;
use onbeat_act::task::numbers;

pub(crate) fn nice(tid: u32) -> Option<i32> {
    Attributes::get(tid).ok()?.nice()
}

/// The CPU time of the thread, by the kernel.
fn executed(tid: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?;
    let ns = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}

/// The CPU time that threads of the process have used with a nice value below 0 or a real-time
/// priority, in about `time`; and how long that was.
pub(crate) fn ahead(pid: u32, time: Duration) -> (Duration, Duration) {
    let (began, mut sum, mut looked) = (Instant::now(), Duration::ZERO, Instant::now());
    let mut before = std::collections::BTreeMap::new();
    while began.elapsed() < time {
        // Between two looks that are far from each other it may have been ordinary meanwhile.
        let is_near = looked.elapsed() < Duration::from_millis(50);
        looked = Instant::now();
        for tid in numbers(Path::new(&format!("/proc/{pid}/task"))) {
            let (goes_first, now) = (nice(tid) < Some(0), executed(tid).unwrap_or_default());
            let former = before.insert(tid, (goes_first, now));
            if let Some((true, former)) = former.filter(|_| goes_first && is_near) {
                sum += now.saturating_sub(former);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    (sum, began.elapsed())
}

/// Stops the thread alone, and lets it go on when dropped.
pub(crate) struct Stopped(i32);

impl Stopped {
    pub(crate) fn new(tid: u32) -> Self {
        let (tid, null) = (tid.cast_signed(), std::ptr::null_mut::<libc::c_void>());
        // SAFETY: these requests take no memory of ours.
        unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, tid, null, null), 0);
            assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, tid, null, null), 0);
            assert_eq!(libc::waitpid(tid, std::ptr::null_mut(), libc::__WALL), tid);
        }
        Self(tid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let null = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: as above.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, null, null) };
    }
}
