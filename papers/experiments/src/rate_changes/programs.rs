//! Programs that change their rate once, in the middle of a run.

use onbeat_model::{Instant, Span};
use onbeat_sim::workload::{Arrival, Demand, Film, JobSpec};
use onbeat_sim::{Work, Workload};

use crate::simulated::quantile;

pub(super) const DURATION: Span = Span::from_secs(20);
const CHANGE: Span = Span::from_secs(10);
/// By how much later each further run's does: runs differ in how long ago the last analysis was.
const LATER: Span = Span::from_ms(53);
/// How late a timer wakes a thread that sleeps for a time: the kernel's default slack.
const SLACK: Span = Span::from_us(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramKind {
    /// A film from 25 to 30 frames a second. The player sleeps for the time until the next frame.
    Film,
    /// A control loop from 100 to 250 Hz that sleeps until absolute times.
    ControlLoop,
    /// The same, but a device wakes it.
    DeviceLoop,
    /// A game whose frames become harder, so that it shows one at every second refresh of 60 Hz.
    Game,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramRate {
    pub(super) period: Span,
    pub(super) mean: Span,
}

impl ProgramKind {
    pub(super) const ALL: [Self; 4] = [Self::Film, Self::ControlLoop, Self::DeviceLoop, Self::Game];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Film => "film, 25 to 30 Hz",
            Self::ControlLoop => "control loop with a timer, 100 to 250 Hz",
            Self::DeviceLoop => "control loop with a device, 100 to 250 Hz",
            Self::Game => "game, 60 to 30 Hz",
        }
    }

    /// Before the change and after it. After it each needs 30 to 36% of a CPU.
    pub(super) fn rates(self) -> [ProgramRate; 2] {
        let rate = |period, mean| ProgramRate {
            period: Span::from_us(period),
            mean: Span::from_us(mean),
        };
        match self {
            Self::Film => [rate(40_000, 12_000), rate(33_333, 12_000)],
            Self::ControlLoop | Self::DeviceLoop => [rate(10_000, 1200), rate(4000, 1200)],
            Self::Game => [rate(16_667, 5000), rate(33_334, 10_000)],
        }
    }

    fn demand(self, seed: u64) -> Demand {
        let mean = self.rates()[0].mean;
        match self {
            Self::Film => Demand::Decoder(mean, Film::of_seed(seed)),
            _ => Demand::Normal {
                mean,
                deviation: mean.scale(0.08),
                most: mean * 2,
            },
        }
    }

    /// The program for the run of this number.
    pub(super) fn program(self, seed: u64) -> ChangingProgram {
        let [before, after] = self.rates();
        let jitter = match self {
            Self::ControlLoop => Span::ZERO,
            _ => SLACK,
        };
        let arrival = Arrival::Periodic {
            period: before.period,
            next: Instant::ZERO,
            jitter,
        };
        let mut drawn = Workload::new(arrival, self.demand(seed)).seeded(seed, 0);
        let change = Instant::ZERO + CHANGE + LATER * seed;
        let mut release = Instant::ZERO + before.period;
        let mut changed = None;
        let mut jobs = Vec::new();
        while release < Instant::ZERO + DURATION
            && let Some(job) = drawn.next(Instant::ZERO)
        {
            if release >= change {
                changed.get_or_insert(release);
            }
            let rate = if changed.is_some() { after } else { before };
            let harder = rate.mean.ratio(before.mean);
            jobs.push(JobSpec {
                release,
                ready: release + job.ready.since(job.release),
                expiry: jitter.is_zero().then_some(release),
                deadline: release + rate.period,
                demand: Work::at_full_speed(job.demand.as_span().scale(harder)),
                ..job
            });
            release = release + rate.period;
        }
        ChangingProgram {
            periods: [before.period, after.period],
            jobs,
            changed: changed.unwrap_or(release),
        }
    }
}

/// A program whose jobs are drawn beforehand, so that each way to schedule it has the same.
#[derive(Clone, Debug)]
pub(super) struct ChangingProgram {
    pub(super) periods: [Span; 2],
    pub(super) jobs: Vec<JobSpec>,
    pub(super) changed: Instant,
}

impl ChangingProgram {
    /// The budget within which the share `rho` of its jobs stay, of those before the change or
    /// after it.
    pub(super) fn quantile(&self, rho: f64, is_after: bool) -> Span {
        let jobs = self.jobs.iter();
        let of_rate = jobs.filter(|job| (job.release >= self.changed) == is_after);
        quantile(of_rate, rho)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_keeps_one_period_until_the_change_and_the_other_from_it_on() {
        for kind in ProgramKind::ALL {
            let program = kind.program(3);
            let [before, after] = program.periods;
            for pair in program.jobs.windows(2) {
                let apart = pair[1].release.since(pair[0].release);
                let is_after = pair[0].release >= program.changed;
                assert_eq!(apart, if is_after { after } else { before }, "{kind:?}");
                assert_eq!(pair[0].deadline, pair[1].release, "{kind:?}");
            }
            let first = kind.program(1).changed.since(Instant::ZERO);
            assert!(
                first >= CHANGE + LATER && first < CHANGE + LATER + before,
                "{kind:?}"
            );
            for (rate, is_after) in kind.rates().iter().zip([false, true]) {
                let middle = program.quantile(0.5, is_after);
                assert!(
                    (middle.ratio(rate.mean) - 1.0).abs() < 0.1,
                    "{kind:?}: {middle}"
                );
            }
        }
    }
}
