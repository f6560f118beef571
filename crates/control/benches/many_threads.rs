//! What a job costs the loop when it keeps 1,000 threads of 50 Hz: hearing, inferring, deciding; no system call.
//!
//! Between two jobs of one thread there are those of all others, so nothing of it is left in the processor's caches: that
//! is most of the cost, and falls with the jobs of one thread that are heard together.

#[path = "../tests/crowd/mod.rs"]
mod crowd;

use std::cell::RefCell;

use criterion::{BatchSize, Criterion, Throughput};
use onbeat_model::Span;

use crowd::{Crowd, PERIOD};

const THREADS: u32 = 1000;
const MEASURED: Span = Span::from_secs(1);

fn many_threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("1000 threads of 50 Hz, a second of jobs");
    let jobs = MEASURED.as_ns() / PERIOD.as_ns() * u64::from(THREADS);
    group.throughput(Throughput::Elements(jobs)).sample_size(20);
    let ways = [
        ("each 20 ms, in the order of time", 20, false),
        ("each 100 ms, in the order of time", 100, false),
        ("each 100 ms, thread by thread", 100, true),
    ];
    for (name, turn_ms, by_thread) in ways {
        let crowd = RefCell::new(Crowd::new(THREADS, Span::from_ms(turn_ms), by_thread));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || crowd.borrow_mut().turns(MEASURED),
                |turns| {
                    crowd.borrow_mut().hear(&turns);
                    turns
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    many_threads(&mut criterion);
    criterion.final_summary();
}
