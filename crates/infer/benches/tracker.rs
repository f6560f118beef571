//! The cost of a burst after the lock: the tracker alone, and with job separation and the demand
//! window.

use criterion::{BatchSize, Criterion, Throughput};
use onbeat_infer::jobs::Separator;
use onbeat_infer::period::Tracker;
use onbeat_model::{Burst, Instant, Rhythm, Span, TaskId};

const BURSTS: u64 = 1000;

/// Three bursts a job of 40 ms, the first up to 0.5 ms off the beat.
fn bursts() -> Vec<Burst> {
    let mut seed: u64 = 1;
    let mut jitter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % 1_000_000
    };
    let burst = |n: u64, jitter: u64| {
        let woke = 1_000_000_000 + (n / 3) * 40_000_000 + (n % 3) * 7_000_000 + jitter;
        Burst {
            first_ran: Instant::from_ns(woke + 20_000),
            executed: Span::from_us(1900),
            ..Burst::alone(
                TaskId::recorded(1),
                Instant::from_ns(woke),
                Span::from_ms(2),
            )
        }
    };
    (0..BURSTS).map(|n| burst(n, jitter())).collect()
}

fn rhythm() -> Rhythm {
    Rhythm {
        period: Span::from_ms(40),
        phase: Instant::from_ns(1_000_500_000),
        jitter: Span::from_us(300),
        confidence: 0.999,
    }
}

fn after_the_lock(criterion: &mut Criterion) {
    let bursts = bursts();
    let mut group = criterion.benchmark_group("after the lock");
    group.throughput(Throughput::Elements(BURSTS));
    group.bench_function("tracker, 1000 bursts", |bencher| {
        bencher.iter_batched_ref(
            || Tracker::new(rhythm()),
            |tracker| {
                for burst in &bursts {
                    std::hint::black_box(tracker.hear(burst));
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("tracker, separator and demand, 1000 bursts", |bencher| {
        bencher.iter_batched_ref(
            || {
                (
                    Tracker::new(rhythm()),
                    Separator::new(rhythm()),
                    onbeat_model::Demand::new(16),
                )
            },
            |(tracker, separator, demand)| {
                for burst in &bursts {
                    std::hint::black_box(tracker.hear(burst));
                    if let Some(job) = separator.hear(burst) {
                        separator.retune(tracker.rhythm());
                        demand.hear(&job);
                    }
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    after_the_lock(&mut criterion);
    criterion.final_summary();
}
