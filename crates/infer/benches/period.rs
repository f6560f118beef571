//! The cost of one analysis: the default analyser, and the paper's spectrum as the reference,
//! summed anew as printed and kept up event by event, at equal range (0 to 1000 Hz) and resolution
//! (0.1 Hz), for 100 and 1000 events.
//!
//! The default analyser gives a period to better than 0.1 Hz over a wider range, so the comparison
//! does not flatter it. Three trains: a plain timer with jitter, a player (several wakeups a job,
//! some for nothing), and one without rhythm, which is the dearest, as every way is tried.

use criterion::{BatchSize, BenchmarkId, Criterion};
use onbeat_infer::period::spectrum::Spectrum;
use onbeat_infer::period::{Analyser, AnalyserConfig};
use onbeat_model::{Burst, Instant, Span, TaskId};

const STEP_HZ: f64 = 0.1;
const BINS: usize = 10_001;

/// Even on 0..1, the same at every run.
struct Random(u64);

impl Random {
    fn even(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn burst(woke_ns: f64, executed_ns: f64) -> Burst {
    let woke = Instant::from_ns(woke_ns as u64);
    Burst::alone(TaskId::recorded(1), woke, Span::from_ns(executed_ns as u64))
}

fn timer(count: usize) -> Vec<Burst> {
    let mut random = Random(1);
    (0..count)
        .map(|k| burst(1e9 + (k as f64 + 0.02 * random.even()) * 1e7, 1e6))
        .collect()
}

fn player(count: usize) -> Vec<Burst> {
    let mut random = Random(2);
    let mut bursts: Vec<Burst> = (0..count)
        .map(|k| {
            let (job, wakeup) = (k / 4, k % 4);
            let place = [0.0, 0.2, 2.0, 20.0 + 10.0 * random.even()][wakeup] + random.even() * 0.1;
            burst(
                1e9 + job as f64 * 4e7 + place * 1e6,
                2e5 * (0.5 + random.even()),
            )
        })
        .collect();
    bursts.sort_by_key(|burst| burst.woke);
    bursts
}

fn rhythmless(count: usize) -> Vec<Burst> {
    let mut random = Random(3);
    let mut now = 1e9;
    (0..count)
        .map(|_| {
            now -= (1.0 - random.even()).ln() * 1e7;
            burst(now, 1e6 * random.even())
        })
        .collect()
}

fn analyses(criterion: &mut Criterion) {
    for count in [100, 1000] {
        let mut group = criterion.benchmark_group(format!("analysis/{count}"));
        for (name, bursts) in [
            ("timer", timer(count)),
            ("player", player(count)),
            ("rhythmless", rhythmless(count)),
        ] {
            let mut analyser = Analyser::new(AnalyserConfig {
                window: Span::from_secs(100),
                ..AnalyserConfig::default()
            });
            for burst in &bursts {
                analyser.hear(burst);
            }
            let now = bursts.last().map_or(Instant::ZERO, |burst| burst.blocked);
            group.bench_function(BenchmarkId::new("default", name), |bencher| {
                bencher.iter(|| analyser.analyse(now));
            });
        }
        let events = timer(count);
        group.sample_size(10);
        group.bench_function("reference, incremental", |bencher| {
            bencher.iter_batched(
                || Spectrum::new(0.0, STEP_HZ, BINS),
                |mut spectrum| {
                    for event in &events {
                        spectrum.add(event.woke);
                    }
                    spectrum.amplitudes()
                },
                BatchSize::LargeInput,
            );
        });
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    analyses(&mut criterion);
    criterion.final_summary();
}
