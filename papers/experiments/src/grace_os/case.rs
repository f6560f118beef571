//! One run: some codecs, one scheme, one processor; and what came out.

use std::sync::Arc;

use onbeat_model::{Instant, Ladder, Span, Speed, TaskId};
use onbeat_sim::machine::CpuAccount;
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::grace::{Grace, GraceClass, GraceSettings};
use onbeat_sim::scenario::Power;
use onbeat_sim::workload::{Arrival, Demand, Workload};
use onbeat_sim::{Costs, Cpus, Machine, Observer, Work};

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

pub(super) struct SimulatedCase<'a> {
    pub(super) codecs: &'a [&'a Codec],
    pub(super) settings: GraceSettings,
    /// Every speed between the lowest and the highest can be had.
    pub(super) continuous: bool,
    /// A program that computes without end, in the background.
    pub(super) math: bool,
}

/// The results, from the time after all first plans.
#[derive(Debug, Default)]
pub(super) struct CaseOutcome {
    pub(super) duration: f64,
    pub(super) jobs: usize,
    pub(super) missed: usize,
    pub(super) worst_codec_missed: f64,
    /// The share of the busy time at each speed, in MHz.
    pub(super) speeds: Vec<(f64, f64)>,
    pub(super) idle: f64,
    pub(super) changes_per_job: f64,
    /// As a share of what the highest speed takes all the time; idle time takes nothing.
    pub(super) energy: f64,
    /// Eq. 13 as the paper's tables have it: idle time takes what its speed does.
    pub(super) energy_with_idle: f64,
}

impl CaseOutcome {
    pub(super) fn miss_ratio(&self) -> f64 {
        self.missed as f64 / self.jobs.max(1) as f64
    }

    /// The share of the busy time at this speed; none if the run never was at it.
    pub(super) fn share_at(&self, mhz: u64) -> Option<f64> {
        let at = self.speeds.iter().find(|(speed, _)| *speed == mhz as f64);
        at.map(|(_, share)| *share)
    }
}

#[derive(Default)]
struct SeenJobs(Vec<Completion>);

impl Observer for SeenJobs {
    fn job(&mut self, job: &Completion) {
        self.0.push(*job);
    }
}

/// The codec's jobs in order, again and again.
pub(super) fn workload(codec: &Codec) -> Workload {
    let demand = Demand::Recorded {
        demands: Arc::clone(&codec.jobs),
        over: 0,
        repeat: true,
    };
    Workload::periodic(codec.period, demand)
}

impl<'a> SimulatedCase<'a> {
    pub(super) fn new(codecs: &'a [&'a Codec], settings: GraceSettings) -> Self {
        Self {
            codecs,
            settings,
            continuous: false,
            math: false,
        }
    }

    /// From when on it counts, and until when: the longest recording is played once, the others
    /// again and again.
    fn window(&self) -> (Instant, Instant) {
        let longest =
            |of: fn(&Codec) -> Span| self.codecs.iter().map(|c| of(c)).max().unwrap_or_default();
        let profiled = longest(|codec| codec.period * PROFILE as u64);
        let played = longest(|codec| codec.period * codec.jobs.len() as u64);
        let rounds = |span: Span| span.as_ns() / ROUND.as_ns();
        let from = ROUND * (rounds(profiled) + 2);
        let to = ROUND * rounds(played).max(rounds(from) + 1);
        (Instant::ZERO + from, Instant::ZERO + to)
    }

    pub(super) fn run(&self) -> CaseOutcome {
        let tasks = self.codecs.iter().map(|codec| GraceClass::RealTime {
            period: codec.period,
            rho: None,
        });
        let math = self.math.then_some(GraceClass::BestEffort);
        let tasks = tasks.chain(math).map(|class| (class, 0));
        let policy = Grace::new(self.settings.clone(), athlon(), 1, tasks);
        let cpus = Cpus {
            count: 1,
            speeds: athlon(),
            limit: None,
            continuous: self.continuous,
            costs: COSTS,
        };
        let mut machine = Machine::new(&cpus, policy, SeenJobs::default());
        for (tid, codec) in (1..).zip(self.codecs) {
            machine.add(TaskId::recorded(tid), workload(codec));
        }
        if self.math {
            let endless = Workload::new(Arrival::Always, Demand::Constant(Work::ENDLESS));
            machine.add(TaskId::recorded(1000), endless);
        }
        let (from, to) = self.window();
        machine.run_until(from);
        let before = machine.accounts().next().cloned();
        machine.run_until(to);
        let after = machine.accounts().next().cloned();
        let late = (0..self.codecs.len()).map(|task| machine.late(task) as usize);
        let late: Vec<usize> = late.collect();
        let (_, SeenJobs(mut jobs)) = machine.finish();
        jobs.retain(|job| job.release >= from);
        let duration = to.since(from);
        let mut outcome = counted(&jobs, &late, duration);
        if let (Some(before), Some(after)) = (before, after) {
            outcome.account(&before, &after, duration);
        }
        outcome.changes_per_job /= jobs.len().max(1) as f64;
        outcome
    }
}

/// The jobs that were done, and those of each codec that are late and not done.
fn counted(jobs: &[Completion], late: &[usize], duration: Span) -> CaseOutcome {
    let mut outcome = CaseOutcome {
        duration: duration.as_secs_f64(),
        ..CaseOutcome::default()
    };
    for (task, unfinished) in late.iter().enumerate() {
        let of = jobs.iter().filter(|job| job.task == task);
        let all = of.clone().count() + unfinished;
        let missed = of.filter(|job| job.missed()).count() + unfinished;
        outcome.jobs += all;
        outcome.missed += missed;
        let ratio = missed as f64 / all.max(1) as f64;
        outcome.worst_codec_missed = outcome.worst_codec_missed.max(ratio);
    }
    outcome
}

impl CaseOutcome {
    fn account(&mut self, before: &CpuAccount, after: &CpuAccount, duration: Span) {
        let all = duration.as_secs_f64();
        let grown = |before: &[(Speed, Span)], after: &[(Speed, Span)]| -> Vec<(f64, f64)> {
            let was = before.iter().map(|(_, span)| *span);
            let each = after.iter().zip(was.chain(std::iter::repeat(Span::ZERO)));
            each.map(|((speed, span), was)| {
                (speed.as_khz() as f64 / 1000.0, (*span - was).as_secs_f64())
            })
            .collect()
        };
        let busy = grown(&before.busy, &after.busy);
        let idle = grown(&before.idle, &after.idle);
        let busy_time: f64 = busy.iter().map(|(_, time)| time).sum();
        self.idle = 1.0 - busy_time / all;
        self.speeds = busy
            .iter()
            .map(|&(mhz, time)| (mhz, time / busy_time.max(f64::MIN_POSITIVE)))
            .collect();
        self.changes_per_job = (after.speed_changes - before.speed_changes) as f64;
        let power = |mhz: f64| Power::default().busy(mhz / 1000.0);
        for ((mhz, share), (_, idle)) in self.speeds.iter().zip(&idle) {
            let busy = (1.0 - self.idle) * share * power(*mhz);
            self.energy += busy;
            self.energy_with_idle += busy + idle / all * power(*mhz);
        }
    }
}
