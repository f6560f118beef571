//! What onbeat itself costs.

use onbeat_model::{Instant, Span};

/// A reading of this process's CPU time, with the time of the reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnTime {
    pub(crate) at: Instant,
    pub(crate) cpu: Span,
}

impl OwnTime {
    pub(crate) fn now() -> Self {
        Self {
            at: Instant::from_ns(read(libc::CLOCK_MONOTONIC)),
            cpu: Span::from_ns(read(libc::CLOCK_PROCESS_CPUTIME_ID)),
        }
    }
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec to where a live one is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_time() {
        let before = OwnTime::now();
        let mut spins = 0_u64;
        while OwnTime::now().cpu == before.cpu {
            spins = std::hint::black_box(spins + 1);
        }
        assert!(OwnTime::now().at > before.at);
    }
}
