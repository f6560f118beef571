//! The recordings in `experiments/demands`, which other experiments play, and how stable the
//! distribution of each codec's demands is (GRACE-OS, section 4.2, Fig. 10 and 11): its first 50
//! jobs, its first 100 and all of them; and what a budget from each of these, or from the last 100,
//! is worth for all.

use std::fs;

use anyhow::Context;
use onbeat_model::{Demand, Span};
use onbeat_sim::stochastic::Histogram;

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Ran, Table, percent};
use crate::statistics::{mean, quantile};

const NAME: &str = "demands-stability";

/// The probability with which a job is to stay within its budget: the paper's for Tables 6 to 10.
const RHO: f64 = 0.95;

const GROUPS: usize = 50;

/// The recordings in the order of the paper's Table 2: the file, and the program of the paper in
/// whose place the codec stands.
const RECORDINGS: [(&str, &str); 5] = [
    ("mpeg1-decode", "mpgplay"),
    ("mp3-decode", "madplay"),
    ("h263-encode", "tmn"),
    ("h263-decode", "tmndec"),
    ("gsm-encode", "toast"),
];

pub(crate) struct Kept {
    pub(crate) name: &'static str,
    pub(crate) paper: &'static str,
    pub(crate) period: Span,
    /// Execution times in order, at the recording machine's one speed.
    pub(crate) jobs: Vec<Span>,
}

impl Kept {
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        let read = |(name, paper)| {
            let path = format!("{}/demands/{name}.csv", env!("CARGO_MANIFEST_DIR"));
            let text = fs::read_to_string(&path).with_context(|| format!("no {path}"))?;
            let (period, jobs) = parse(&text).with_context(|| format!("{path} is damaged"))?;
            Ok(Self {
                name,
                paper,
                period,
                jobs,
            })
        };
        RECORDINGS.into_iter().map(read).collect()
    }
}

/// The period and the jobs: facts, of which each has a name and a value, a heading, and a demand a
/// line.
fn parse(text: &str) -> Option<(Span, Vec<Span>)> {
    let (facts, jobs) = text.split_once("\ndemand_ns\n")?;
    let fact = |name: &str| facts.lines().find_map(|line| line.strip_prefix(name));
    let jobs = jobs.lines().map(|ns| ns.parse().ok().map(Span::from_ns));
    let jobs = jobs.collect::<Option<Vec<Span>>>()?;
    let is_whole = fact("# jobs: ")?.parse() == Ok(jobs.len());
    is_whole.then_some((Span::from_ns(fact("# period_ns: ")?.parse().ok()?), jobs))
}

/// What a budget from jobs is worth for others, as the share of these that it is too small for.
struct Stability {
    /// The greatest difference of two distributions (Kolmogorov): the first 50 jobs and the first
    /// 100, the first 50 and all, the first 100 and all; and the mean over all jobs of that between
    /// 100 jobs and the 100 before them.
    distances: [f64; 4],
    /// Of the first 100 for all later jobs; made anew after every 100 jobs from these; and from the
    /// last 100, made anew after each.
    over: [f64; 3],
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let all = Kept::all()?;
    for kept in &all {
        let name = kept.name;
        distributions(kept).draw(machine.out(), &format!("{NAME}-{name}"))?;
        if kept.paper == "mpgplay" {
            in_order(kept).draw(machine.out(), &format!("{NAME}-{name}-jobs"))?;
        }
    }
    let table = Table::of(&all, |kept| {
        let Stability { distances, over } = stability(&kept.jobs);
        let [a, b, c, d] = distances.map(|distance| format!("{distance:.2}"));
        let [first, renewed, online] = over.map(|share| percent(share, 1));
        [
            ("codec", kept.name.to_owned()),
            ("first 50 to 100", a),
            ("50 to all", b),
            ("100 to all", c),
            ("each 100 to the next", d),
            ("over a budget of the first 100", first),
            ("of each 100 for the next", renewed),
            ("of the last 100", online),
        ]
    });
    let ran = Ran::computed(machine, "the recordings in experiments/demands");
    machine.publish(&ran, NAME, &table);
    Ok(())
}

fn budget(jobs: &[Span]) -> Span {
    let mut demand = Demand::new(jobs.len());
    jobs.iter().for_each(|&job| demand.record(job));
    let histogram = Histogram::of(&demand, GROUPS);
    histogram.map_or(Span::ZERO, |histogram| histogram.budget(RHO).demand)
}

/// The greatest difference of the two distributions (Kolmogorov), exact: in a histogram, one job
/// that took ten times as long as the others would leave all of these in one group.
fn distance(a: &[Span], b: &[Span]) -> f64 {
    let sorted = |jobs: &[Span]| {
        let mut sorted = jobs.to_vec();
        sorted.sort_unstable();
        sorted
    };
    let (a, b) = (sorted(a), sorted(b));
    let within = |sorted: &[Span], job: Span| {
        sorted.partition_point(|&other| other <= job) as f64 / sorted.len().max(1) as f64
    };
    let jobs = a.iter().chain(&b);
    jobs.map(|&job| (within(&a, job) - within(&b, job)).abs())
        .fold(0.0, f64::max)
}

/// The share of `jobs` that need more than `budget`.
fn share_over(jobs: impl Iterator<Item = (Span, Span)>) -> f64 {
    let (mut over, mut all) = (0, 0);
    for (job, budget) in jobs {
        all += 1;
        over += u32::from(job > budget);
    }
    f64::from(over) / f64::from(all.max(1))
}

fn stability(jobs: &[Span]) -> Stability {
    let first = |count: usize| jobs.get(..count).unwrap_or(jobs);
    let hundreds: Vec<&[Span]> = jobs.chunks_exact(100).collect();
    let steps: Vec<f64> = hundreds
        .windows(2)
        .map(|two| distance(two[0], two[1]))
        .collect();
    let later = jobs.get(100..).unwrap_or_default();
    let learnt = budget(first(100));
    let renewed = hundreds.windows(2).flat_map(|two| {
        let budget = budget(two[0]);
        two[1].iter().map(move |&job| (job, budget))
    });
    let online = jobs
        .windows(101)
        .filter_map(|window| window.split_last())
        .map(|(&job, before)| (job, budget(before)));
    Stability {
        distances: [
            distance(first(50), first(100)),
            distance(first(50), jobs),
            distance(first(100), jobs),
            mean(&steps),
        ],
        over: [
            share_over(later.iter().map(|&job| (job, learnt))),
            share_over(renewed),
            share_over(online),
        ],
    }
}

fn ms(jobs: &[Span]) -> Vec<f64> {
    jobs.iter().map(|job| job.as_ms_f64()).collect()
}

/// Fig. 10 (b) and 11.
fn distributions(kept: &Kept) -> Figure {
    let all = ms(&kept.jobs);
    let first = |count: usize| all.get(..count).unwrap_or(&all);
    let line = |name, jobs| Line::new(name, Look::Steps, distribution(jobs));
    // Beyond these are single jobs.
    let (least, most) = (quantile(&all, 0.0), quantile(&all, 0.999));
    Figure {
        title: format!("{} ({} in the paper)", kept.name, kept.paper),
        x: Axis::linear("execution time of a job, ms", least..most * 1.02),
        y: Axis::linear("jobs that take no longer", 0.0..1.0),
        lines: vec![
            line("first 50 jobs", first(50)),
            line("first 100 jobs", first(100)),
            line("all jobs", &all),
        ],
        names: Corner::LowerRight,
    }
}

/// Fig. 10 (a).
fn in_order(kept: &Kept) -> Figure {
    let all = ms(&kept.jobs);
    let most = quantile(&all, 1.0) * 1.05;
    let points = all
        .iter()
        .enumerate()
        .map(|(n, &ms)| (n as f64, ms))
        .collect();
    Figure {
        title: format!("{}: each job", kept.name),
        x: Axis::linear("job", 0.0..all.len() as f64),
        y: Axis::linear("execution time, ms", 0.0..most),
        lines: vec![Line::new("", Look::Points, points)],
        names: Corner::UpperRight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(us: impl Iterator<Item = u64>) -> Stability {
        stability(&us.map(Span::from_us).collect::<Vec<_>>())
    }

    #[test]
    fn a_recording_with_another_number_of_jobs_than_it_says_is_damaged() {
        let text = "# period_ns: 30000000\n# jobs: 2\n# cpu: fast\ndemand_ns\n5\n7\n";
        let jobs = [5, 7].map(Span::from_ns);
        assert_eq!(parse(text), Some((Span::from_ms(30), jobs.to_vec())));
        assert_eq!(parse(&text.replace("7\n", "")), None);
        assert_eq!(parse(&text.replace('7', "x")), None);
        for kept in Kept::all().unwrap() {
            let fits = |job: &Span| *job > Span::ZERO && *job < kept.period;
            assert!(kept.jobs.len() > 200 && kept.jobs.iter().all(fits));
        }
    }

    #[test]
    fn jobs_that_repeat_are_stable_and_a_harder_scene_is_not() {
        let alike = of((0..1000).map(|n| 5000 + n * 7 % 50));
        assert!(alike.distances[1] < 1e-9 && alike.distances[3] < 1e-9);
        assert!(alike.over[0] <= 0.05, "{}", alike.over[0]);
        let scenes = of((0..1000).map(|n| if n < 500 { 5000 } else { 9000 }));
        assert_eq!(scenes.distances[..3], [0.0, 0.5, 0.5]);
        // Six of a hundred are enough to be more than 1 - rho of them.
        let over = [500.0, 100.0, 6.0].map(|jobs| jobs / 900.0);
        assert!(
            over.iter()
                .zip(scenes.over)
                .all(|(a, b)| (a - b).abs() < 1e-9)
        );
    }
}
