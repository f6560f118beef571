//! Programs side by side under one scheduler: on the simulated CPU, or on a kernel in virtual time.

use std::path::Path;

use onbeat_model::{Instant, Span};
use onbeat_sim::workload::{Arrival, Demand, Film, Notifies};
use onbeat_sim::{Work, Workload};
use rayon::prelude::*;

use super::paper::{Mix, Program};
use super::{Outcome, SAMPLE, Scheduler, simulated};
use crate::log::numbers;
use crate::machine::Machine;
use crate::results::Ran;
use crate::vm::{Ended, Guest};

/// How different the frames are, in permille of srtgen's default. The paper does not say; with this
/// its first figure comes out: 7.9% missed under Linux without MDN.
const VARIATION: u32 = 1400;

/// When programs that cheat begin to, in seconds.
pub(super) const CHANGE: u64 = 15;

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) scheduler: Scheduler,
    /// Whether the scheduler listens.
    pub(super) mdn: bool,
    pub(super) programs: Vec<RunProgram>,
}

#[derive(Clone, Debug)]
pub(super) struct RunProgram {
    pub(super) workload: Workload,
    period: Span,
    share: u64,
    /// The same as srtgen's arguments, with + between.
    told: String,
}

impl RunProgram {
    /// The `place`th program of a run with this film, whose timers fire at each `tick`; it says
    /// `mdn()` when it is late, or never.
    pub(super) fn new(program: Program, tick: Span, seed: u64, place: u64, mdn: bool) -> Self {
        let period = program.period();
        let (period_ns, period_us) = (period.as_ns(), period.as_ns() / 1000);
        let notifies = if mdn {
            Notifies::WhenLate
        } else {
            Notifies::Never
        };
        let (share, told, arrival, demand) = match program {
            Program::CpuBound => (
                1000,
                format!("share=1000+period_us={period_us}"),
                Arrival::Always,
                Demand::constant(period),
            ),
            Program::Srt(_, share) => {
                let film = seed * 16 + place;
                let arrival = Arrival::Paced {
                    period,
                    // Elsewhere between the clock's ticks in each run.
                    next: Instant::from_ns(period_ns * (seed * 37 % 100) / 100),
                    timer: tick,
                };
                let mean = Span::from_ns(period_ns * share / 1000);
                let told = format!(
                    "period_us={period_us}+share={share}+variation={VARIATION}+seed={film}+mdn={}",
                    u8::from(mdn)
                );
                (share, told, arrival, Demand::Decoder(mean, frames(film)))
            }
        };
        Self {
            workload: Workload::new(arrival, demand).notifying(notifies),
            period,
            share,
            told,
        }
    }

    /// One whose jobs come at random and need 40%, notifying as it computes.
    pub(super) fn without_a_period(seed: u64, place: u64, cries: u64) -> Self {
        let arrival = Arrival::Poisson {
            mean: Span::from_ms(40),
            last: Instant::ZERO,
        };
        let demand = Demand::Decoder(Span::from_ms(16), frames(seed));
        let one = Self {
            workload: Workload::new(arrival, demand).seeded(seed, place),
            period: Span::from_ms(40),
            share: 400,
            told: String::new(),
        };
        one.crying(cries)
    }

    /// The same, but it notifies so many times in each second of its computing, late or not.
    pub(super) fn crying(mut self, cries: u64) -> Self {
        self.workload = self.workload.notifying(match cries {
            0 => Notifies::Never,
            _ => Notifies::Every(Work::at_full_speed(Span::from_secs(1) / cries)),
        });
        self.told += &format!("+cry={cries}");
        self
    }

    /// From [`CHANGE`] on it does what the other does, crying.
    pub(super) fn then(self, other: Self, cries: u64) -> Self {
        let change = Instant::ZERO + Span::from_secs(CHANGE);
        Self {
            told: format!(
                "{}+change_s={CHANGE}+share_then={}+cry_then={cries}",
                self.told, other.share
            ),
            workload: self.workload.then(change, other.crying(cries).workload),
            ..self
        }
    }
}

fn frames(seed: u64) -> Film {
    Film::of_seed(seed).varied(VARIATION)
}

impl Run {
    pub(super) fn of_mix(scheduler: Scheduler, mix: Mix, seed: u64, mdn: bool) -> Self {
        let mdn = mdn && scheduler.listens();
        let program = |(place, program): (u64, &Program)| {
            RunProgram::new(*program, scheduler.tick(), seed, place, mdn)
        };
        Self {
            name: format!("{}.{}.{}.{seed}", scheduler.word(), u8::from(mdn), mix.name),
            scheduler,
            mdn,
            programs: (0..).zip(mix.programs).map(program).collect(),
        }
    }

    /// The run as `guest.sh` reads it.
    fn word(&self) -> String {
        let programs: Vec<&str> = self.programs.iter().map(|p| p.told.as_str()).collect();
        format!(
            "{}:{}:{}:{}",
            self.name,
            self.scheduler.word(),
            u8::from(self.mdn),
            programs.join(",")
        )
    }

    /// What srtgen logged of each program in a guest.
    fn logged(&self, folder: &Path) -> anyhow::Result<Vec<Outcome>> {
        let logs = (0..self.programs.len())
            .map(|place| {
                let log = numbers(&folder.join(&self.name).join(format!("{place}.csv")))?;
                Ok(log.into_iter().map(job).collect())
            })
            .collect::<anyhow::Result<Vec<Vec<Job>>>>()?;
        let began = began(&logs);
        let programs = self.programs.iter().zip(&logs);
        Ok(programs
            .map(|(program, jobs)| outcome(jobs, program.period, began))
            .collect())
    }
}

/// Where programs run, and for how long.
pub(super) struct Bed {
    guest: Option<Ended>,
    pub(super) seconds: u64,
}

impl Bed {
    pub(super) const fn simulated(seconds: u64) -> Self {
        Self {
            guest: None,
            seconds,
        }
    }

    /// Boots a guest that does all these runs, one after the other.
    pub(super) fn booted(machine: &Machine, runs: &[Run], seconds: u64) -> anyhow::Result<Self> {
        let mut words: Vec<String> = runs.iter().map(Run::word).collect();
        // One that does not listen is the same with notifications and without.
        words.dedup();
        let guest = Guest::new("mdn-deadlines")
            .set("RUNS", words.join(" "))
            .set("RUN_SECONDS", seconds)
            .boot(machine)?;
        Ok(Self {
            guest: Some(guest),
            seconds,
        })
    }

    /// Where the figures come from; `simulated` says more of runs on the simulated machine.
    pub(super) fn ran(&self, machine: &Machine, simulated: &str) -> Ran {
        match &self.guest {
            Some(guest) => guest.ran(machine),
            None => Ran::computed(machine, format!("simulated, {simulated}")),
        }
    }

    /// The programs' outcomes in each of these runs.
    pub(super) fn outcomes(&self, runs: &[Run]) -> anyhow::Result<Vec<Vec<Outcome>>> {
        let duration = Span::from_secs(self.seconds);
        match &self.guest {
            Some(guest) => runs.iter().map(|run| run.logged(&guest.folder)).collect(),
            None => Ok(runs
                .par_iter()
                .map(|run| simulated::run(run, duration))
                .collect()),
        }
    }

    /// What BEST knows of a program in the course of a run.
    pub(super) fn known(&self, run: &Run, place: usize) -> Vec<(Instant, Known)> {
        let known = simulated::known(run, Span::from_secs(self.seconds), place);
        let times = (1..).map(|sample| Instant::ZERO + SAMPLE * sample);
        times.zip(known).collect()
    }
}

struct Job {
    release: Instant,
    started: Instant,
    finished: Instant,
    used: Span,
}

/// BEST's knowledge of a program; other schedulers know nothing of the kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) period_ns: u64,
    pub(super) confidence: u64,
}

/// The first release of all: where the run's time begins.
fn began(logs: &[Vec<Job>]) -> Instant {
    let firsts = logs.iter().filter_map(|jobs| jobs.first());
    firsts.map(|job| job.release).min().unwrap_or(Instant::ZERO)
}

fn outcome(jobs: &[Job], period: Span, began: Instant) -> Outcome {
    let mut outcome = Outcome::default();
    let since = |at: Instant| Instant::ZERO + at.since(began);
    for job in jobs {
        outcome
            .jobs
            .push((since(job.release + period), since(job.finished)));
        note(
            &mut outcome.cpu,
            since(job.started),
            since(job.finished),
            job.used,
        );
    }
    outcome
}

/// Adds CPU time to the samples from one time to another, evenly.
fn note(cpu: &mut Vec<Span>, from: Instant, to: Instant, used: Span) {
    let sample_ns = SAMPLE.as_ns();
    let (from_ns, to_ns) = (from.as_ns(), to.as_ns().max(from.as_ns() + 1));
    let last = ((to_ns - 1) / sample_ns) as usize;
    if cpu.len() <= last {
        cpu.resize(last + 1, Span::ZERO);
    }
    let long = u128::from(to_ns - from_ns);
    for (index, sample) in cpu
        .iter_mut()
        .enumerate()
        .skip((from_ns / sample_ns) as usize)
    {
        let begin = index as u64 * sample_ns;
        let within = to_ns
            .min(begin + sample_ns)
            .saturating_sub(from_ns.max(begin));
        let part = u128::from(used.as_ns()) * u128::from(within) / long;
        *sample += Span::from_ns(u64::try_from(part).unwrap_or(0));
    }
}

/// Of number, release, start, finish, demand, used, missed, notified.
fn job([_, release, started, finished, _, used, _, _]: [f64; 8]) -> Job {
    let [release, started, finished] =
        [release, started, finished].map(|ns| Instant::from_ns(ns as u64));
    Job {
        release,
        started,
        finished,
        used: Span::from_ns(used as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn the_cpu_time_of_a_job_is_spread_over_the_samples_that_it_ran_in() {
        let mut cpu = Vec::new();
        note(&mut cpu, ms(50), ms(250), Span::from_ms(100));
        assert_eq!(
            cpu,
            [Span::from_ms(25), Span::from_ms(50), Span::from_ms(25)]
        );
        note(&mut cpu, ms(100), ms(100), Span::ZERO);
        assert_eq!(cpu.len(), 3);
    }
}
