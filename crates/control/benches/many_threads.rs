//! The cost of a job to the loop, when it keeps 1,000 threads of 50 Hz, without a system call.
//!
//! Between two turns the threads themselves run, and leave nothing of the loop's in the processor's
//! caches: here a walk through more memory than these hold, which is not counted.

#[path = "../tests/crowd/mod.rs"]
mod crowd;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use onbeat_model::Span;

use crowd::{Crowd, PERIOD};

const THREADS: u32 = 1000;
const MEASURED: Span = Span::from_secs(1);
/// More than what the caches hold of memory.
const BEYOND_CACHES: usize = 64 << 20;

fn many_threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("1000 threads of 50 Hz, a second of jobs");
    let jobs = MEASURED.as_ns() / PERIOD.as_ns() * u64::from(THREADS);
    group.throughput(Throughput::Elements(jobs)).sample_size(10);
    let ways = [
        ("each 20 ms, in the order of time", 20, false),
        ("each 100 ms, thread by thread", 100, true),
    ];
    let mut others = vec![0_u8; BEYOND_CACHES];
    for (name, turn_ms, by_thread) in ways {
        let mut crowd = Crowd::new(THREADS, Span::from_ms(turn_ms), by_thread);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|seconds| {
                let mut taken = Duration::ZERO;
                for _ in 0..seconds {
                    for events in crowd.turns(MEASURED) {
                        walk(&mut others);
                        let begin = Instant::now();
                        crowd.hear_turn(&events);
                        taken += begin.elapsed();
                    }
                }
                taken
            });
        });
    }
    group.finish();
}

fn walk(memory: &mut [u8]) {
    for byte in memory.iter_mut().step_by(64) {
        *byte = black_box(byte.wrapping_add(1));
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    many_threads(&mut criterion);
    criterion.final_summary();
}
