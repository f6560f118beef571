//! Scores both period analysers over folders of recordings, each with a `truth.json`.
//!
//! ```text
//! cargo run --release -p onbeat-infer --example score -- FOLDER... [--verbose]
//! ```
//!
//! Per analyser, a table over all folders of how many windows of a periodic thread (of 1 s, of 0.5
//! s, and whole recordings) got the true period within 1%, a multiple or a fraction of it, another
//! one, or none, and how many windows of an aperiodic thread were called periodic. A recording
//! under `lime/` counts as one window. Then, how often answers of a confidence were right.
//! `--verbose` prints every answer that was not right. What follows for the default analyser is the
//! tracker's: how often it called the rhythm of a periodic thread changed or lost.

// The tests count with a tally of their own.
#[allow(dead_code)]
#[path = "../tests/scoring/mod.rs"]
mod scoring;

use std::error::Error;
use std::path::PathBuf;

use onbeat_infer::period::{Beat, Tracker};
use onbeat_model::{Rhythm, Span};
use scoring::folder::{self, App, Single};
use scoring::{Method, Thread};

fn main() -> Result<(), Box<dyn Error>> {
    let (verbose, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg == "--verbose");
    if folders.is_empty() {
        return Err("usage: score FOLDER... [--verbose]".into());
    }
    let (mut apps, mut logs) = (Vec::new(), Vec::new());
    for folder in folders.iter().map(PathBuf::from) {
        apps.extend(folder::apps(&folder)?);
        logs.extend(folder::lime(&folder)?);
    }
    for method in [Method::Default, Method::Lfspp] {
        println!("{}\n", method.name());
        let mut score = Score::new(method, !verbose.is_empty());
        score.apps(&apps, Some(Span::from_secs(1)), "1 s");
        score.apps(&apps, Some(Span::from_ms(500)), "0.5 s");
        score.apps(&apps, None, "whole");
        score.lime(&logs);
        score.print();
    }
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
    fn of(found: Option<Rhythm>, truth: &[f64]) -> Self {
        let Some(rhythm) = found else {
            return if truth.is_empty() {
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
        if truth.iter().any(|period| times(found / period)) {
            Self::Multiple
        } else if truth.iter().any(|period| times(period / found)) {
            Self::Fraction
        } else {
            Self::Wrong
        }
    }
}

/// One line of the table.
struct Row {
    name: String,
    counts: [u32; 5],
}

/// Answers whose confidence is at least `from`, and below that of the class above.
struct Class {
    from: f64,
    answers: u32,
    right: u32,
    expected: f64,
}

struct Score {
    method: Method,
    verbose: bool,
    rows: Vec<Row>,
    classes: Vec<Class>,
}

impl Score {
    fn new(method: Method, verbose: bool) -> Self {
        let class = |from| Class {
            from,
            answers: 0,
            right: 0,
            expected: 0.0,
        };
        Self {
            method,
            verbose,
            rows: Vec::new(),
            classes: [0.999, 0.99, 0.95, 0.9, 0.0].map(class).into(),
        }
    }

    fn apps(&mut self, apps: &[App], length: Option<Span>, name: &str) {
        let before = self.rows.len();
        self.rows.push(Row::new(format!("periodic, {name}")));
        self.rows.push(Row::new(format!("aperiodic, {name}")));
        for app in apps {
            for thread in scoring::busiest_threads(&app.recording) {
                let Some(truth) = app.threads.get(&thread.comm) else {
                    continue;
                };
                let row = before + usize::from(truth.is_none());
                let truth = truth.clone().unwrap_or_default();
                let whole = app.recording.ended.since(app.recording.began);
                let length = length.unwrap_or(whole);
                for (to, bursts) in scoring::windows(&app.recording, &thread, length) {
                    let found = self.method.analyse(bursts, to);
                    let what = format!(
                        "{} {} {name} to {:.1} s",
                        app.name,
                        thread.comm,
                        to.since(app.recording.began).as_secs_f64()
                    );
                    self.judge(row, found, &truth, &what);
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
                .and_then(|thread| self.method.analyse(&thread.bursts, single.recording.ended));
            let row = before + usize::from(single.periods.is_empty());
            self.judge(row, found, &single.periods, &single.name);
        }
    }

    fn judge(&mut self, row: usize, found: Option<Rhythm>, truth: &[f64], what: &str) {
        let verdict = Verdict::of(found, truth);
        self.rows[row].counts[verdict as usize] += 1;
        if self.verbose && verdict != Verdict::Right {
            println!("  {what}: {verdict:?}: {found:?} for {truth:?}");
        }
        let Some(rhythm) = found else { return };
        let class = self
            .classes
            .iter_mut()
            .find(|c| rhythm.confidence >= c.from);
        if let Some(class) = class {
            class.answers += 1;
            class.right += u32::from(verdict == Verdict::Right);
            class.expected += rhythm.confidence;
        }
    }

    fn print(&self) {
        println!("| | windows | right | multiple | fraction | none | wrong |");
        println!("|---|---|---|---|---|---|---|");
        for Row { name, counts } in &self.rows {
            let all: u32 = counts.iter().sum();
            let cells: Vec<String> = counts.iter().map(u32::to_string).collect();
            println!("| {name} | {all} | {} |", cells.join(" | "));
        }
        println!("\n| confidence from | answers | right | mean confidence |");
        println!("|---|---|---|---|");
        for class in self.classes.iter().filter(|class| class.answers > 0) {
            let of = f64::from(class.answers);
            println!(
                "| {} | {} | {:.1}% | {:.2}% |",
                class.from,
                class.answers,
                100.0 * f64::from(class.right) / of,
                100.0 * class.expected / of
            );
        }
        println!();
    }
}

impl Row {
    fn new(name: String) -> Self {
        Self {
            name,
            counts: [0; 5],
        }
    }
}

/// What the tracker says of each periodic thread, from the first window in which its period is
/// found.
fn track(apps: &[App]) {
    println!("tracker, from the first right lock on a window of 0.5 s");
    for app in apps {
        for thread in scoring::busiest_threads(&app.recording) {
            let Some(Some(periods)) = app.threads.get(&thread.comm) else {
                continue;
            };
            let name = format!("{}, {}", app.name, thread.comm);
            match track_thread(app, &thread, periods) {
                Some(told) => println!("  {name:<32} {told}"),
                None => println!("  {name:<32} never locked"),
            }
        }
    }
}

fn track_thread(app: &App, thread: &Thread, periods: &[f64]) -> Option<String> {
    let (from, rhythm) = scoring::windows(&app.recording, thread, Span::from_ms(500))
        .filter_map(|(to, bursts)| Some((to, Method::Default.analyse(bursts, to)?)))
        .find(|(_, rhythm)| scoring::is_right(*rhythm, periods))?;
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
