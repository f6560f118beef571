//! Scores both period analysers over folders of recordings, each with a `truth.json`.
//!
//! ```text
//! cargo run --release -p onbeat-infer --example score -- FOLDER... [--verbose]
//! ```
//!
//! Per analyser, a table over all folders of how many windows of a periodic thread (of 1 s, of 0.5
//! s, and whole recordings) got the true period within 1%, a multiple or a fraction of it, another
//! one, or none, and how many windows of an aperiodic thread were called periodic. For a starved
//! thread, its period and none are both right. A recording under `lime/` counts as one window.
//! Each share has its 95% confidence interval (Wilson), as if windows were independent; those of
//! one recording are alike, so the true interval is wider. Then, how often answers of a confidence
//! were right. `--verbose` prints every answer that was not right. The last table is the tracker's:
//! how often it called the rhythm of a periodic thread, found by the default analyser, changed or
//! lost.

#[path = "../tests/scoring/mod.rs"]
mod scoring;

use std::error::Error;
use std::path::PathBuf;

use onbeat_infer::period::{Beat, Tracker};
use onbeat_model::{Rhythm, Span};
use scoring::folder::{self, App, Single, Truth};
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
            classes: [0.999, 0.99, 0.95, 0.9, 0.5, 0.0].map(class).into(),
        }
    }

    fn apps(&mut self, apps: &[App], length: Option<Span>, name: &str) {
        let before = self.rows.len();
        for kind in ["periodic", "starved", "aperiodic"] {
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
                    let found = self.method.analyse(bursts, to);
                    let what = format!(
                        "{} {} {name} to {:.1} s",
                        app.name,
                        thread.comm,
                        to.since(app.recording.began).as_secs_f64()
                    );
                    self.judge(row, found, truth, &what);
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
            let row = before + usize::from(single.truth.is_aperiodic());
            self.judge(row, found, &single.truth, &single.name);
        }
    }

    fn judge(&mut self, row: usize, found: Option<Rhythm>, truth: &Truth, what: &str) {
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
            let cells = counts.map(|count| format!("{count}: {}", share(count, all)));
            println!("| {name} | {all} | {} |", cells.join(" | "));
        }
        println!("\n| confidence from | answers | right | mean confidence |");
        println!("|---|---|---|---|");
        for class in self.classes.iter().filter(|class| class.answers > 0) {
            let of = f64::from(class.answers);
            println!(
                "| {} | {} | {} | {:.2}% |",
                class.from,
                class.answers,
                share(class.right, class.answers),
                100.0 * class.expected / of
            );
        }
        println!();
    }
}

/// So many of these as percent, with the 95% confidence interval.
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

/// What the tracker says of each periodic thread, from the first window in which its period is
/// found.
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
        .filter_map(|(to, bursts)| Some((to, Method::Default.analyse(bursts, to)?)))
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
