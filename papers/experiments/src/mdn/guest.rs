//! The same programs on a real kernel in virtual time: boots a guest that runs them one mix after
//! the other, and reads what they logged.

use std::fs;
use std::path::Path;

use anyhow::Context;
use onbeat_model::{Instant, Span};
use serde::Deserialize;

use super::paper::{Mix, Program};
use super::simulated::Setting;
use super::{Outcome, SAMPLE, Scheduler};
use crate::machine::Machine;
use crate::results::Ran;
use crate::vm::{Ended, Guest};

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) scheduler: Scheduler,
    pub(super) mdn: bool,
    pub(super) programs: Vec<Told>,
}

#[derive(Clone, Debug)]
pub(super) struct Told {
    program: Program,
    settings: String,
}

impl Told {
    /// The `place`th program of a run in this setting; it says `mdn()` when it is late, or never.
    pub(super) fn new(program: Program, setting: Setting, place: usize, mdn: bool) -> Self {
        let period_us = program.period().as_ns() / 1000;
        let settings = match program {
            Program::CpuBound => format!("share=1000+period_us={period_us}"),
            Program::Srt(_, permille) => format!(
                "period_us={period_us}+share={permille}+variation={}+seed={}+mdn={}",
                setting.variation,
                setting.seed * 16 + place as u64,
                u8::from(mdn)
            ),
        };
        Self { program, settings }
    }

    /// Told something more: `KEY=VALUE` with + between.
    pub(super) fn and(mut self, more: &str) -> Self {
        if !more.is_empty() {
            self.settings = format!("{}+{more}", self.settings);
        }
        self
    }
}

impl Run {
    pub(super) fn of_mix(scheduler: Scheduler, mix: Mix, setting: Setting, mdn: bool) -> Self {
        let programs = (0..).zip(mix.programs);
        Self {
            name: format!(
                "{}.{}.{}.{}",
                word(scheduler),
                u8::from(mdn),
                mix.name,
                setting.seed
            ),
            scheduler,
            mdn,
            programs: programs
                .map(|(place, program)| Told::new(*program, setting, place, mdn))
                .collect(),
        }
    }

    /// The run as `guest.sh` reads it.
    fn word(&self) -> String {
        let programs: Vec<&str> = self.programs.iter().map(|p| p.settings.as_str()).collect();
        format!(
            "{}:{}:{}:{}",
            self.name,
            word(self.scheduler),
            u8::from(self.mdn),
            programs.join(",")
        )
    }
}

/// The scheduler's name in `guest.sh`.
const fn word(scheduler: Scheduler) -> &'static str {
    match scheduler {
        Scheduler::Linux24 => "linux24",
        Scheduler::Best => "best",
        Scheduler::BestMeasuring => "best-measuring",
        Scheduler::Berate => "berate",
        // A guest's clock ticks at 250 Hz.
        Scheduler::Linux24Hz100 | Scheduler::BerateHz100 => "none",
        Scheduler::Eevdf => "eevdf",
        Scheduler::EevdfShort => "eevdf-short",
        Scheduler::Onbeat => "onbeat",
        Scheduler::OnbeatHard => "onbeat-hard",
    }
}

#[derive(Debug)]
pub(super) struct Guested {
    ended: Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    release: Instant,
    started: Instant,
    finished: Instant,
    used: Span,
}

#[derive(Deserialize)]
struct Turn {
    at_ns: u64,
    tasks: Vec<Thread>,
}

#[derive(Deserialize)]
struct Thread {
    tid: u32,
    comm: String,
    knows: Known,
}

/// BEST's knowledge of a program; other schedulers know nothing of the kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Known {
    pub(super) period_ns: u64,
    pub(super) confidence: u64,
}

pub(super) fn boot(
    machine: &Machine,
    image: u64,
    runs: &[Run],
    seconds: u64,
) -> anyhow::Result<Guested> {
    let words: Vec<String> = runs.iter().map(Run::word).collect();
    let ended = Guest::new("mdn-deadlines")
        .image(image)
        .set("RUNS", words.join(" "))
        .set("RUN_SECONDS", seconds)
        .boot(machine)?;
    Ok(Guested { ended })
}

impl Guested {
    pub(super) fn ran(&self) -> Ran {
        self.ended.ran()
    }

    pub(super) fn outcomes(&self, run: &Run) -> anyhow::Result<Vec<Outcome>> {
        let folder = self.ended.folder.join(&run.name);
        let logs = (0..run.programs.len()).map(|place| jobs(&folder.join(format!("{place}.csv"))));
        let logs = logs.collect::<anyhow::Result<Vec<Vec<Job>>>>()?;
        let began = began(&logs);
        let programs = run.programs.iter().zip(&logs);
        Ok(programs
            .map(|(told, jobs)| outcome(jobs, told.program.period(), began))
            .collect())
    }

    pub(super) fn known(&self, run: &Run, place: usize) -> anyhow::Result<Vec<(Instant, Known)>> {
        let path = self.ended.folder.join(&run.name).join("told.jsonl");
        let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
        let turns = text.lines().map(|line| {
            serde_json::from_str(line).with_context(|| format!("{}: {line}", path.display()))
        });
        Ok(known(&turns.collect::<anyhow::Result<Vec<Turn>>>()?, place))
    }
}

/// Periodic programs come first, and are started in their order, so their numbers are in that
/// order, too.
fn known(turns: &[Turn], place: usize) -> Vec<(Instant, Known)> {
    let began_ns = turns.first().map_or(0, |turn| turn.at_ns);
    let known = turns.iter().filter_map(|turn| {
        let programs = turn.tasks.iter().filter(|thread| thread.comm == "srtgen");
        let mut programs: Vec<&Thread> = programs.collect();
        programs.sort_unstable_by_key(|thread| thread.tid);
        let known = programs.get(place)?.knows;
        Some((Instant::from_ns(turn.at_ns - began_ns), known))
    });
    known.collect()
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

fn jobs(path: &Path) -> anyhow::Result<Vec<Job>> {
    let text = fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    text.lines()
        .skip(1)
        .map(|line| job(line).with_context(|| format!("{}: {line}", path.display())))
        .collect()
}

/// Number, release, start, finish, demand, used, missed, notified.
fn job(line: &str) -> Option<Job> {
    let mut fields = line.split(',');
    let mut field = |skipped: usize| fields.nth(skipped)?.parse::<u64>().ok();
    Some(Job {
        release: Instant::from_ns(field(1)?),
        started: Instant::from_ns(field(0)?),
        finished: Instant::from_ns(field(0)?),
        used: Span::from_ns(field(1)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_line_of_srtgens_log_is_a_job() {
        let expected = Job {
            release: Instant::from_ns(100),
            started: Instant::from_ns(110),
            finished: Instant::from_ns(170),
            used: Span::from_ns(50),
        };
        assert_eq!(job("0,100,110,170,40,50,0,0"), Some(expected));
        assert_eq!(job("0,100,110"), None);
        assert_eq!(job("number,release"), None);
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

    #[test]
    fn what_best_knows_is_that_of_the_program_that_was_started_in_its_place() {
        let line = |at, tid, period_ns: u64| {
            let thread = |tid, comm, period_ns: u64| serde_json::json!({ "tid": tid, "comm": comm, "knows": { "period_ns": period_ns } });
            let tasks = [
                thread(9, "sh", 7),
                thread(tid + 1, "srtgen", 8),
                thread(tid, "srtgen", period_ns),
            ];
            serde_json::from_value(serde_json::json!({ "at_ns": at, "tasks": tasks })).unwrap()
        };
        let turns = [line(100, 20, 40), line(300, 20, 41)];
        let seen = known(&turns, 0);
        let expected = |at_ns, period_ns| {
            let known = Known {
                period_ns,
                confidence: 0,
            };
            (Instant::from_ns(at_ns), known)
        };
        assert_eq!(seen, [expected(0, 40), expected(200, 41)]);
        assert_eq!(known(&turns, 1), [expected(0, 8), expected(200, 8)]);
        assert_eq!(known(&turns, 2), []);
    }

    #[test]
    fn deadlines_count_from_the_first_release_of_all() {
        let job = Job {
            release: ms(1040),
            started: ms(1041),
            finished: ms(1090),
            used: Span::from_ms(20),
        };
        let outcome = outcome(&[job], Span::from_ms(40), ms(1000));
        assert_eq!(outcome.jobs, [(ms(80), ms(90))]);
    }
}
