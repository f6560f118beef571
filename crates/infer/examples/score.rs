//! Scores both period analysers over folders of recordings, each with a `truth.json`.
//!
//! ```text
//! cargo run --release -p onbeat-infer --example score -- FOLDER... [--verbose]
//! ```
//!
//! Per analyser, a table over all folders of how many windows of a periodic thread (of 1 s, of 0.5
//! s, and whole recordings) got the true period within 1%, a multiple or a fraction of it, another
//! one, or none, and how many windows of an aperiodic thread were called periodic. Windows that
//! hold 6 jobs of a periodic thread count in a row of their own, too: fewer show no period. For a
//! starved thread, its period and none are both right. A recording under `lime/` counts as one
//! window. Each share has its 95% confidence interval (Wilson), as if windows were independent;
//! those of one recording are alike, so the true interval is wider. Made-up threads of the seeds
//! from `--seeds=0` on count in the tables, too. Then, how often answers of a confidence were right
//! in recordings: all of them, and in the mean over programs, which is to be expected of another
//! one. `--verbose` prints every answer that was not right; `--windows` prints all answers of the
//! default analyser and no table. The last table is the tracker's: how often it called the rhythm
//! of a periodic thread, found by the default analyser, changed or lost.

#[path = "../tests/scoring/made_up.rs"]
mod made_up;
#[path = "../tests/scoring/mod.rs"]
mod scoring;
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use made_up::Train;
use onbeat_infer::period::{Beat, Tracker};
use onbeat_model::{Burst, Instant, Rhythm, Span};
use scoring::folder::{self, App, Single, Truth};
use scoring::{Thread, analyse};

/// How the names of made-up threads begin; they count for no confidence.
const MADE_UP: &str = "made-up";

/// How many made-up threads there are of each kind.
const SEEDS: u64 = 40;

#[derive(Default)]
struct Arguments {
    folders: Vec<PathBuf>,
    verbose: bool,
    windows: bool,
    first_seed: u64,
}

/// Which answers are printed one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    None,
    NotRight,
    All,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::default();
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            None if argument == "--verbose" => arguments.verbose = true,
            None if argument == "--windows" => arguments.windows = true,
            Some(("--seeds", first)) => arguments.first_seed = first.parse()?,
            _ => arguments.folders.push(argument.into()),
        }
    }
    if arguments.folders.is_empty() {
        return Err("usage: score FOLDER... [--verbose] [--windows] [--seeds=FIRST]".into());
    }
    let (mut apps, mut logs) = (Vec::new(), Vec::new());
    for folder in &arguments.folders {
        apps.extend(folder::apps(folder)?);
        logs.extend(folder::lime(folder)?);
    }
    let trains = made_up::trains(arguments.first_seed, SEEDS);
    let score = |show| {
        let mut score = Score::new(show);
        score.apps(&apps, Some(Span::from_secs(1)), "1 s");
        score.apps(&apps, Some(Span::from_ms(500)), "0.5 s");
        score.apps(&apps, None, "whole");
        score.lime(&logs);
        score.made_up(&trains);
        score
    };
    if arguments.windows {
        score(Show::All);
        return Ok(());
    }
    let show = if arguments.verbose {
        Show::NotRight
    } else {
        Show::None
    };
    score(show).print();
    track(&apps);
    Ok(())
}

/// How an answer compares with the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Right,
    Multiple,
    Fraction,
    None,
    Wrong,
}

impl Verdict {
    /// A multiple is 2 to 10 times one of the true periods, a fraction the inverse, each within 1%.
    fn of(found: Option<Rhythm>, truth: &Truth) -> Self {
        let Some(rhythm) = found else {
            return if truth.may_be_none() {
                Self::Right
            } else {
                Self::None
            };
        };
        if scoring::is_right(rhythm, truth) {
            return Self::Right;
        }
        let times = |ratio: f64| {
            let whole = ratio.round();
            (2.0..=10.0).contains(&whole) && (ratio / whole - 1.0).abs() <= scoring::WITHIN
        };
        let found = rhythm.period.as_ms_f64();
        let periods = &truth.periods;
        if periods.iter().any(|period| times(found / period)) {
            Self::Multiple
        } else if periods.iter().any(|period| times(period / found)) {
            Self::Fraction
        } else {
            Self::Wrong
        }
    }
}

/// How many jobs of the shortest true period these bursts are, if those nearer to each other than
/// half of it are of one.
fn jobs(bursts: &[Burst], truth: &Truth) -> usize {
    let shortest = truth.periods.iter().copied().fold(f64::INFINITY, f64::min);
    let woke_ms = |burst: &Burst| burst.woke.as_ns() as f64 / 1e6;
    let mut jobs: Vec<f64> = bursts.iter().map(woke_ms).collect();
    jobs.dedup_by(|next, job| *next - *job <= 0.5 * shortest);
    jobs.len()
}

/// One line of the table.
struct Row {
    name: String,
    counts: [u32; 5],
}

/// Answers whose confidence is at least `from`, and below that of the class above.
struct Class {
    from: f64,
    /// The answers for each program, and those that are right.
    programs: BTreeMap<String, (u32, u32)>,
    /// The sum of the confidences.
    expected: f64,
}

impl Class {
    /// The answers, and those that are right.
    fn count(&self) -> (u32, u32) {
        let sum = |sum: (u32, u32), of: &(u32, u32)| (sum.0 + of.0, sum.1 + of.1);
        self.programs.values().fold((0, 0), sum)
    }

    /// The share of right answers of a program, in the mean over all programs but `left_out`.
    fn mean_share(&self, left_out: Option<&str>) -> f64 {
        let others = self
            .programs
            .iter()
            .filter(|of| Some(of.0.as_str()) != left_out);
        let shares = others.map(|(_, &(answers, right))| f64::from(right) / f64::from(answers));
        let shares: Vec<f64> = shares.collect();
        shares.iter().sum::<f64>() / shares.len() as f64
    }

    /// The lowest and the highest of these means that leave one program out.
    fn leaving_one_out(&self) -> (f64, f64) {
        let means = self
            .programs
            .keys()
            .map(|program| self.mean_share(Some(program)));
        means.fold((1.0, 0.0), |(low, high), mean| {
            (mean.min(low), mean.max(high))
        })
    }
}

struct Score {
    show: Show,
    rows: Vec<Row>,
    classes: Vec<Class>,
}

impl Score {
    fn new(show: Show) -> Self {
        let class = |from| Class {
            from,
            programs: BTreeMap::new(),
            expected: 0.0,
        };
        Self {
            show,
            rows: Vec::new(),
            classes: [0.99, 0.98, 0.95, 0.9, 0.8, 0.0].map(class).into(),
        }
    }

    fn apps(&mut self, apps: &[App], length: Option<Span>, name: &str) {
        let before = self.rows.len();
        for kind in ["periodic", "starved", "aperiodic", "periodic, of 6 jobs"] {
            self.rows.push(Row::new(format!("{kind}, {name}")));
        }
        for app in apps {
            for thread in scoring::busiest_threads(&app.recording) {
                let Some(truth) = app.threads.get(&thread.comm) else {
                    continue;
                };
                let row = match truth {
                    truth if truth.is_aperiodic() => before + 2,
                    truth => before + usize::from(truth.starved),
                };
                let whole = app.recording.ended.since(app.recording.began);
                let length = length.unwrap_or(whole);
                for (to, bursts) in scoring::windows(&app.recording, &thread, length) {
                    let found = analyse(bursts, to);
                    let what = format!(
                        "{} {} {name} to {:.1} s",
                        app.name,
                        thread.comm,
                        to.since(app.recording.began).as_secs_f64()
                    );
                    let verdict = self.judge(row, found, truth, &what);
                    if row == before && jobs(bursts, truth) >= scoring::FEWEST {
                        self.rows[before + 3].counts[verdict as usize] += 1;
                    }
                }
            }
        }
    }

    fn lime(&mut self, logs: &[Single]) {
        let before = self.rows.len();
        self.rows.push(Row::new("LiME, periodic".into()));
        self.rows.push(Row::new("LiME, sporadic".into()));
        for single in logs {
            let threads = scoring::busiest_threads(&single.recording);
            let found = threads
                .first()
                .and_then(|thread| analyse(&thread.bursts, single.recording.ended));
            let row = before + usize::from(single.truth.is_aperiodic());
            self.judge(row, found, &single.truth, &single.name);
        }
    }

    fn made_up(&mut self, trains: &[Train]) {
        let before = self.rows.len();
        self.rows.push(Row::new("made up, periodic".into()));
        self.rows.push(Row::new("made up, aperiodic".into()));
        for (number, train) in trains.iter().enumerate() {
            let truth = Truth {
                periods: train.period_ns.iter().map(|period| period / 1e6).collect(),
                starved: false,
            };
            let to = train.bursts.last().map_or(Instant::ZERO, |b| b.blocked);
            let found = analyse(&train.bursts, to);
            let row = before + usize::from(truth.is_aperiodic());
            let what = format!("{MADE_UP} {} {number}", train.kind);
            self.judge(row, found, &truth, &what);
        }
    }

    fn judge(&mut self, row: usize, found: Option<Rhythm>, truth: &Truth, what: &str) -> Verdict {
        let verdict = Verdict::of(found, truth);
        self.rows[row].counts[verdict as usize] += 1;
        match self.show {
            Show::NotRight if verdict != Verdict::Right => {
                println!("  {what}: {verdict:?}: {found:?} for {truth:?}");
            }
            Show::All => {
                let period_ms = found.map_or(0.0, |rhythm| rhythm.period.as_ms_f64());
                let confidence = found.map_or(0.0, |rhythm| rhythm.confidence);
                let has_period = !truth.is_aperiodic();
                println!("{what}\t{has_period}\t{verdict:?}\t{period_ms}\t{confidence}");
            }
            Show::None | Show::NotRight => {}
        }
        let (Some(rhythm), false) = (found, what.starts_with(MADE_UP)) else {
            return verdict;
        };
        let class = self
            .classes
            .iter_mut()
            .find(|c| rhythm.confidence >= c.from);
        if let Some(class) = class {
            let program = what.split(['.', ' ']).next().unwrap_or_default();
            let (answers, right) = class.programs.entry(program.to_owned()).or_default();
            *answers += 1;
            *right += u32::from(verdict == Verdict::Right);
            class.expected += rhythm.confidence;
        }
        verdict
    }

    fn print(&self) {
        println!("| | windows | right | multiple | fraction | none | wrong |");
        println!("|---|---|---|---|---|---|---|");
        for Row { name, counts } in &self.rows {
            let all: u32 = counts.iter().sum();
            let cells = counts.map(|count| format!("{count}: {}", share(count, all)));
            println!("| {name} | {all} | {} |", cells.join(" | "));
        }
        println!(
            "\n| confidence from | mean confidence | answers | right | programs | mean over programs | \
             with one left out |"
        );
        println!("|---|---|---|---|---|---|---|");
        for class in self.classes.iter().filter(|c| !c.programs.is_empty()) {
            let (answers, right) = class.count();
            let (low, high) = class.leaving_one_out();
            println!(
                "| {} | {:.2}% | {answers} | {} | {} | {:.1}% | {:.1}% to {:.1}% |",
                class.from,
                100.0 * class.expected / f64::from(answers),
                share(right, answers),
                class.programs.len(),
                100.0 * class.mean_share(None),
                100.0 * low,
                100.0 * high
            );
        }
        println!();
    }
}

/// The share as percent, with its 95% confidence interval.
fn share(count: u32, all: u32) -> String {
    if all == 0 {
        return "-".into();
    }
    let (low, high) = wilson(count, all);
    let percent = 100.0 * f64::from(count) / f64::from(all);
    format!("{percent:.1}% ({:.1} to {:.1})", 100.0 * low, 100.0 * high)
}

/// The 95% confidence interval of a share (E. B. Wilson: "Probable Inference, the Law of
/// Succession, and Statistical Inference", 1927).
fn wilson(count: u32, all: u32) -> (f64, f64) {
    // The normal distribution's quantile of 0.975.
    let z = 1.959_964;
    let (count, all) = (f64::from(count), f64::from(all));
    let share = count / all;
    let middle = share + z * z / (2.0 * all);
    let reach = z * (share * (1.0 - share) / all + z * z / (4.0 * all * all)).sqrt();
    let scale = 1.0 + z * z / all;
    ((middle - reach) / scale, (middle + reach) / scale)
}

impl Row {
    fn new(name: String) -> Self {
        Self {
            name,
            counts: [0; 5],
        }
    }
}

/// Prints the tracker's verdict on each periodic thread, from the first window in which its period
/// is found.
fn track(apps: &[App]) {
    println!("tracker, from the first right lock on a window of 0.5 s");
    for app in apps {
        for thread in scoring::busiest_threads(&app.recording) {
            let Some(truth) = app.threads.get(&thread.comm) else {
                continue;
            };
            if truth.is_aperiodic() {
                continue;
            }
            let name = format!("{}, {}", app.name, thread.comm);
            match track_thread(app, &thread, truth) {
                Some(told) => println!("  {name:<32} {told}"),
                None => println!("  {name:<32} never locked"),
            }
        }
    }
}

fn track_thread(app: &App, thread: &Thread, truth: &Truth) -> Option<String> {
    let (from, rhythm) = scoring::windows(&app.recording, thread, Span::from_ms(500))
        .filter_map(|(to, bursts)| Some((to, analyse(bursts, to)?)))
        .find(|(_, rhythm)| scoring::is_right(*rhythm, truth))?;
    let mut tracker = Tracker::new(rhythm);
    let (mut bursts, mut changed) = (0, 0);
    for burst in thread.bursts.iter().filter(|burst| burst.woke >= from) {
        bursts += 1;
        match tracker.hear(burst) {
            Beat::Kept => {}
            Beat::RateChanged => changed += 1,
            Beat::Lost => {
                let at = burst.woke.since(from).as_secs_f64();
                return Some(format!("lost after {at:.2} s, {changed} changes before"));
            }
        }
    }
    let rhythm = tracker.rhythm();
    Some(format!(
        "kept for {bursts} bursts, {changed} changes, at last {:.4} ms, jitter {}",
        rhythm.period.as_ms_f64(),
        rhythm.jitter
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        // 81 of 263, in Newcombe: "Two-Sided Confidence Intervals for the Single Proportion", 1998.
        let (low, high) = wilson(81, 263);
        assert!((low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5);
        assert!(wilson(0, 20).0.abs() < 1e-9);
    }
}
