//! One run: some codecs, one scheme, one processor; and what came out.

use std::sync::Arc;

use onbeat_model::{Instant, Ladder, Span, Speed, TaskId};
use onbeat_sim::machine::CpuAccount;
use onbeat_sim::observe::Completion;
use onbeat_sim::optimum::{self, Hull, Piece};
use onbeat_sim::policy::Policy;
use onbeat_sim::policy::grace::{Grace, GraceClass, GraceSettings};
use onbeat_sim::scenario::Power;
use onbeat_sim::workload::{Arrival, Demand, Workload};
use onbeat_sim::{Costs, Cpus, Machine, Observer, Work};
use serde::Serialize;

use super::codecs::Codec;

pub(super) const MHZ: [u64; 6] = [300, 500, 600, 700, 800, 1000];
/// All releases come together again after this time: multiples of 25, 30 and 400 ms.
const ROUND: Span = Span::from_ms(1200);
pub(super) const PROFILE: usize = 100;

pub(super) fn athlon() -> Ladder {
    let speeds = MHZ
        .into_iter()
        .filter_map(|mhz| Speed::from_khz(mhz * 1000));
    Ladder::new(speeds).unwrap_or_else(|| unreachable!("the list is not empty"))
}

/// As the paper measured (Tables 3 and 4, Fig. 9), at 1000 MHz: a change of speed is 5450 cycles
/// and 10.4 us (a line through the columns of Table 4), a scheduling 800 cycles.
pub(super) const COSTS: Costs = Costs {
    switch: Span::ZERO,
    switch_work: Work::at_full_speed(Span::from_ns(800)),
    speed_change: Span::from_ns(10_400),
    speed_change_work: Work::at_full_speed(Span::from_ns(5450)),
};

#[derive(Clone)]
pub(super) struct SimulatedCase<'a> {
    pub(super) codecs: &'a [&'a Codec],
    pub(super) settings: GraceSettings,
    /// Every speed between the lowest and the highest can be had.
    pub(super) continuous: bool,
    pub(super) speeds: Ladder,
    pub(super) costs: Costs,
    /// A program that computes without end, in the background.
    pub(super) math: bool,
}

/// The results, from the time after all first plans.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct CaseOutcome {
    pub(super) duration: f64,
    pub(super) jobs: usize,
    pub(super) missed: usize,
    pub(super) miss_ratios: Vec<(&'static str, f64)>,
    pub(super) overran: usize,
    /// The share of the busy time at each speed, in MHz.
    pub(super) speeds: Vec<(f64, f64)>,
    pub(super) idle: f64,
    /// Where idle time was spent, in the same order as `speeds`, as a share of all time.
    pub(super) idle_at: Vec<f64>,
    pub(super) changes_per_job: f64,
    /// As a share of what the highest speed takes all the time; idle time takes nothing.
    pub(super) energy: f64,
    /// Eq. 13 as the paper's tables have it: idle time takes what its speed does.
    pub(super) energy_with_idle: f64,
    /// The least energy with which each job ends by its end in this run or its deadline, if that is
    /// later.
    pub(super) least_as_late: Option<f64>,
    #[serde(skip)]
    pub(super) clairvoyant: Vec<Piece>,
}

impl CaseOutcome {
    pub(super) fn miss_ratio(&self) -> f64 {
        self.missed as f64 / self.jobs.max(1) as f64
    }

    pub(super) fn worst_miss_ratio(&self) -> f64 {
        self.miss_ratios
            .iter()
            .map(|(_, ratio)| *ratio)
            .fold(0.0, f64::max)
    }

    /// The share of the busy time at this speed; none if the run never was at it.
    pub(super) fn share_at(&self, mhz: u64) -> Option<f64> {
        let at = self.speeds.iter().find(|(speed, _)| *speed == mhz as f64);
        at.map(|(_, share)| *share)
    }

    /// The mean power under another model, as a share of the highest.
    pub(super) fn power(&self, power: &Power) -> f64 {
        let busy = 1.0 - self.idle;
        let at = |mhz: f64| power.busy(mhz / 1000.0);
        let speeds = self.speeds.iter().zip(&self.idle_at);
        speeds
            .map(|((mhz, share), idle)| {
                let drawn = if power.idle_at_speed {
                    at(*mhz)
                } else {
                    power.idle
                };
                busy * share * at(*mhz) + idle * drawn
            })
            .sum()
    }
}

#[derive(Default)]
struct SeenJobs {
    jobs: Vec<Completion>,
    overran: usize,
}

impl Observer for SeenJobs {
    fn job(&mut self, job: &Completion) {
        self.jobs.push(*job);
    }
    fn exhausted(&mut self, _task: usize, _at: Instant) {
        self.overran += 1;
    }
}

impl<'a> SimulatedCase<'a> {
    pub(super) fn new(codecs: &'a [&'a Codec], settings: GraceSettings) -> Self {
        Self {
            codecs,
            settings,
            continuous: false,
            speeds: athlon(),
            costs: COSTS,
            math: false,
        }
    }

    fn cpus(&self) -> Cpus {
        Cpus {
            count: 1,
            speeds: self.speeds.clone(),
            limit: None,
            continuous: self.continuous,
            costs: self.costs,
        }
    }

    /// From when on it counts, and until when: the longest recording is played once, the others
    /// again and again.
    pub(super) fn window(&self) -> (Instant, Instant) {
        let longest =
            |of: fn(&Codec) -> Span| self.codecs.iter().map(|c| of(c)).max().unwrap_or_default();
        let profiled = longest(|codec| codec.period * PROFILE as u64);
        let played = longest(|codec| codec.period * codec.jobs.len() as u64);
        let rounds = |span: Span| span.as_ns() / ROUND.as_ns();
        let from = ROUND * (rounds(profiled) + 2);
        let to = ROUND * rounds(played).max(rounds(from) + 1);
        (Instant::ZERO + from, Instant::ZERO + to)
    }

    fn workload(codec: &Codec) -> Workload {
        let demand = Demand::Recorded {
            demands: Arc::clone(&codec.jobs),
            over: 0,
            repeat: true,
        };
        Workload::periodic(codec.period, demand)
    }

    pub(super) fn run(&self) -> CaseOutcome {
        let tasks = self.codecs.iter().map(|codec| GraceClass::RealTime {
            period: codec.period,
            rho: None,
        });
        let math = self.math.then_some(GraceClass::BestEffort);
        let tasks = tasks.chain(math).map(|class| (class, 0));
        self.run_under(Grace::new(
            self.settings.clone(),
            self.speeds.clone(),
            1,
            tasks,
        ))
    }

    /// Runs the same under another policy, which knows the codecs by their order.
    pub(super) fn run_under<P: Policy>(&self, policy: P) -> CaseOutcome {
        let mut machine = Machine::new(&self.cpus(), policy, SeenJobs::default());
        for (tid, codec) in (1..).zip(self.codecs) {
            machine.add(TaskId::recorded(tid), Self::workload(codec));
        }
        if self.math {
            let endless = Workload::new(Arrival::Always, Demand::Constant(Work::ENDLESS));
            machine.add(TaskId::recorded(1000), endless);
        }
        let (from, to) = self.window();
        machine.run_until(from);
        let before = machine.accounts().next().cloned();
        let overran = machine.observer().overran;
        machine.run_until(to);
        let after = machine.accounts().next().cloned();
        let late: Vec<u64> = (0..self.codecs.len())
            .map(|task| machine.late(task))
            .collect();
        let (_, seen) = machine.finish();
        let jobs: Vec<Completion> = seen
            .jobs
            .into_iter()
            .filter(|job| job.release >= from)
            .collect();
        let duration = to.since(from);
        let mut outcome = counted(self.codecs, &jobs, &late, duration);
        outcome.overran = seen.overran - overran;
        if let (Some(before), Some(after)) = (before, after) {
            outcome.account(&before, &after, duration);
        }
        outcome.changes_per_job /= jobs.len().max(1) as f64;
        let late: Vec<optimum::KnownJob> = jobs.iter().map(optimum::KnownJob::as_late).collect();
        outcome.clairvoyant = optimum::schedule(&late);
        outcome.least_as_late = self.mean_power(&outcome.clairvoyant, &Power::default());
        outcome
    }

    /// The mean power of a schedule on this processor; none if even the highest speed is not
    /// enough.
    pub(super) fn mean_power(&self, schedule: &[Piece], power: &Power) -> Option<f64> {
        let (from, to) = self.window();
        let duration = to.since(from);
        let hull = Hull::of(&self.speeds, self.continuous, power);
        let energy = hull.energy(schedule, duration)?;
        Some(energy / duration.as_secs_f64())
    }
}

fn counted(codecs: &[&Codec], jobs: &[Completion], late: &[u64], duration: Span) -> CaseOutcome {
    let mut outcome = CaseOutcome {
        duration: duration.as_secs_f64(),
        ..CaseOutcome::default()
    };
    for (task, codec) in codecs.iter().enumerate() {
        let of = jobs.iter().filter(|job| job.task == task);
        let unfinished = late.get(task).map_or(0, |&late| late as usize);
        let all = of.clone().count() + unfinished;
        let missed = of.filter(|job| job.missed()).count() + unfinished;
        outcome.jobs += all;
        outcome.missed += missed;
        let ratio = missed as f64 / all.max(1) as f64;
        outcome.miss_ratios.push((codec.name, ratio));
    }
    outcome
}

impl CaseOutcome {
    fn account(&mut self, before: &CpuAccount, after: &CpuAccount, duration: Span) {
        let all = duration.as_secs_f64();
        let grown = |before: &[(Speed, Span)], after: &[(Speed, Span)]| -> Vec<(f64, f64)> {
            let was = before
                .iter()
                .map(|(_, span)| *span)
                .chain(std::iter::repeat(Span::ZERO));
            let each = after.iter().zip(was);
            each.map(|((speed, span), was)| {
                (speed.as_khz() as f64 / 1000.0, (*span - was).as_secs_f64())
            })
            .collect()
        };
        let (busy, idle) = (
            grown(&before.busy, &after.busy),
            grown(&before.idle, &after.idle),
        );
        let busy_time: f64 = busy.iter().map(|(_, time)| time).sum();
        self.idle = 1.0 - busy_time / all;
        self.speeds = busy
            .iter()
            .map(|&(mhz, time)| (mhz, time / busy_time.max(f64::MIN_POSITIVE)))
            .collect();
        self.idle_at = idle.iter().map(|(_, time)| time / all).collect();
        self.changes_per_job = (after.speed_changes - before.speed_changes) as f64;
        let power = Power::default();
        self.energy = self.power(&power);
        self.energy_with_idle = self.power(&Power {
            idle_at_speed: true,
            ..power
        });
    }
}
