//! The programs of LFS++'s Fig. 5, 6, 7 and 10 in the simulated machine, beside CPU hogs that come
//! after 5 s: by then every controller has seen the programs undisturbed.

use onbeat_model::{Instant, Span};
use onbeat_sim::workload::{Demand, Frames, JobSpec};
use onbeat_sim::{Work, Workload};

use crate::statistics::quantile;

pub(super) const DURATION: Span = Span::from_secs(60);
pub(super) const HOGS_FROM: Span = Span::from_secs(5);
const COUNT_FROM: Span = Span::from_secs(10);
const FALL_AT: Span = Span::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bed {
    Film,
    /// Fig. 6: the three tasks of Table I.
    ThreeRtApps,
    /// Fig. 7: an encoder, I and P frames in turn.
    Encoder,
    /// Fig. 10: every job takes 1.6 times as long from one moment on.
    Frequency,
}

impl Bed {
    pub(super) const ALL: [Self; 4] = [
        Self::Film,
        Self::ThreeRtApps,
        Self::Encoder,
        Self::Frequency,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Film => "film (Fig. 5)",
            Self::ThreeRtApps => "three rt-apps (Fig. 6)",
            Self::Encoder => "encoder (Fig. 7)",
            Self::Frequency => "frequency (Fig. 10)",
        }
    }

    pub(super) fn file(self) -> String {
        let (name, _) = self.name().split_once(" (").unwrap_or_default();
        name.replace(' ', "-")
    }

    /// After how many jobs the demands of the first program repeat, as its author knows.
    pub(super) fn group(self) -> usize {
        match self {
            Self::Film => GROUP.len(),
            Self::Encoder => 2,
            Self::ThreeRtApps | Self::Frequency => 1,
        }
    }

    pub(super) fn counts_from(self) -> Instant {
        let from = match self {
            Self::Frequency => FALL_AT,
            _ => COUNT_FROM,
        };
        Instant::ZERO + from
    }

    /// Its programs, the one that is judged first, for the run of this number.
    pub(super) fn programs(self, seed: u64) -> Vec<DrawnProgram> {
        match self {
            Self::Film => vec![frames(40, &GROUP, seed)],
            Self::Encoder => vec![frames(40, &[8.0, 20.0], seed)],
            Self::ThreeRtApps => [(3.505, 0.30), (8.220, 0.28), (100.0, 0.21)]
                .into_iter()
                .zip(0..)
                .map(|((period_ms, load), place)| rt_app(period_ms, load, (seed, place)))
                .collect(),
            Self::Frequency => {
                let mut program = rt_app(100.0, 0.13, (seed, 0));
                for job in &mut program.jobs {
                    if job.release >= Instant::ZERO + FALL_AT {
                        job.demand =
                            Work::at_full_speed(job.demand.as_span().scale(HIGH_MHZ / LOW_MHZ));
                    }
                }
                vec![program]
            }
        }
    }
}

/// Section 7.5: from 2.4 to 1.5 GHz.
const HIGH_MHZ: f64 = 2400.0;
const LOW_MHZ: f64 = 1500.0;

/// I, P and B frames in ms, 12 ms in the mean: 30% of the CPU at 25 Hz. As `made up` of the
/// experiment `predictors` has them.
const GROUP: [f64; 12] = [
    20.3, 10.2, 10.2, 14.0, 10.2, 10.2, 14.0, 10.2, 10.2, 14.0, 10.2, 10.2,
];

/// A program whose jobs are drawn beforehand, so that each method schedules the same.
#[derive(Clone, Debug)]
pub(super) struct DrawnProgram {
    pub(super) period: Span,
    pub(super) jobs: Vec<JobSpec>,
}

impl DrawnProgram {
    fn drawn(period: Span, demand: Demand, (seed, place): (u64, u64)) -> Self {
        let mut workload = Workload::periodic(period, demand).seeded(seed, place);
        let count = DURATION.as_ns() / period.as_ns();
        Self {
            period,
            jobs: (0..count)
                .filter_map(|_| workload.next(Instant::ZERO))
                .collect(),
        }
    }

    /// The budget within which the share `rho` of all its jobs stay.
    pub(super) fn quantile(&self, rho: f64) -> Span {
        let demands = self
            .jobs
            .iter()
            .map(|job| job.demand.as_span().as_ns() as f64);
        Span::from_ns(quantile(&demands.collect::<Vec<f64>>(), rho) as u64)
    }

    /// The share of a CPU that its jobs need from `from` on.
    pub(super) fn needs(&self, from: Instant) -> f64 {
        let counted = self.jobs.iter().filter(|job| job.release >= from);
        let sum: Span = counted.map(|job| job.demand.as_span()).sum();
        sum.ratio((Instant::ZERO + DURATION).since(from))
    }
}

/// Frames of a film whose scenes differ by 15%, four seconds each in the mean.
fn frames(period_ms: u64, group_ms: &[f64], seed: u64) -> DrawnProgram {
    let group = group_ms.iter().map(|ms| Span::from_secs_f64(ms / 1000.0));
    let frames = Frames::new(group.collect(), 0.08, 0.15, 0.01);
    DrawnProgram::drawn(Span::from_ms(period_ms), Demand::Frames(frames), (seed, 0))
}

/// A task whose jobs differ by 3%, as a busy loop's on a quiet machine do.
fn rt_app(period_ms: f64, load: f64, place: (u64, u64)) -> DrawnProgram {
    let period = Span::from_secs_f64(period_ms / 1000.0);
    let mean = period.scale(load);
    let demand = Demand::Normal {
        mean,
        deviation: mean.scale(0.03),
        most: period,
    };
    DrawnProgram::drawn(period, demand, place)
}
