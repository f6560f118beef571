//! Scores both period analysers over a folder of recordings with a `truth.json`.
//!
//! ```text
//! cargo run --release -p onbeat-infer --example score -- FOLDER [--verbose]
//! ```
//!
//! Per recording, thread and window length: how many windows got the true period (within 1%), a wrong
//! one, or none. A recording under `lime/` counts as one window. `--verbose` prints every window that
//! was not right. What follows the table is the tracker's: how often it called the rhythm of a
//! periodic thread changed or lost.

#[path = "../tests/scoring/mod.rs"]
mod scoring;

use std::error::Error;
use std::path::PathBuf;

use onbeat_infer::period::{Beat, Tracker};
use onbeat_model::Span;
use scoring::folder::{self, App, Single};
use scoring::{Method, Tally, Thread};

fn main() -> Result<(), Box<dyn Error>> {
    let (verbose, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg == "--verbose");
    let [folder] = folders.as_slice() else {
        return Err("usage: score FOLDER [--verbose]".into());
    };
    let (folder, verbose) = (PathBuf::from(folder), !verbose.is_empty());
    let apps = folder::apps(&folder)?;
    for method in [Method::Default, Method::Lfspp] {
        for window in [Span::from_secs(1), Span::from_ms(500)] {
            score_apps(&apps, method, window, verbose);
        }
        score_lime(&folder, method, verbose)?;
    }
    track(&apps);
    Ok(())
}

fn line(name: &str, truth: &str, tally: Tally) {
    println!(
        "  {name:<32} {truth:>9} {:>5} {:>5} {:>5} {:>5}  {:>6.1}%",
        tally.windows(),
        tally.right,
        tally.wrong,
        tally.none,
        100.0 * tally.share()
    );
}

fn score_apps(apps: &[App], method: Method, window: Span, verbose: bool) {
    println!("{}, windows of {window}", method.name());
    println!(
        "  {:<32} {:>9} {:>5} {:>5} {:>5} {:>5}  {:>7}",
        "recording, thread", "period ms", "all", "right", "wrong", "none", "right"
    );
    let (mut periodic, mut aperiodic) = (Tally::default(), Tally::default());
    for app in apps {
        for thread in scoring::busiest_threads(&app.recording) {
            let Some(truth) = app.threads.get(&thread.comm) else {
                continue;
            };
            let periods = truth.clone().unwrap_or_default();
            let mut tally = Tally::default();
            for (to, bursts) in scoring::windows(&app.recording, &thread, window) {
                let found = method.analyse(bursts, to);
                let before = tally.right;
                tally.judge(found, &periods);
                if verbose && tally.right == before {
                    let at = to.since(app.recording.began).as_secs_f64();
                    match found {
                        Some(r) => println!(
                            "    to {at:.1} s: {} ms, jitter {}, confidence {:.4}, {} bursts",
                            r.period.as_ms_f64(),
                            r.jitter,
                            r.confidence,
                            bursts.len()
                        ),
                        None => println!("    to {at:.1} s: none, {} bursts", bursts.len()),
                    }
                }
            }
            let truth = periods.first().map_or("none".into(), f64::to_string);
            line(&format!("{}, {}", app.name, thread.comm), &truth, tally);
            if periods.is_empty() {
                aperiodic.add(tally);
            } else {
                periodic.add(tally);
            }
        }
    }
    line("periodic", "", periodic);
    line("aperiodic", "", aperiodic);
}

fn score_lime(
    folder: &std::path::Path,
    method: Method,
    verbose: bool,
) -> Result<(), Box<dyn Error>> {
    println!("{}, whole recordings of lime", method.name());
    let (mut periodic, mut sporadic) = (Tally::default(), Tally::default());
    for Single {
        name,
        recording,
        periods,
    } in folder::lime(folder)?
    {
        let threads = scoring::busiest_threads(&recording);
        let found = threads
            .first()
            .and_then(|thread| method.analyse(&thread.bursts, recording.ended));
        let tally = if periods.is_empty() {
            &mut sporadic
        } else {
            &mut periodic
        };
        let before = tally.right;
        tally.judge(found, &periods);
        if verbose && tally.right == before {
            match found {
                Some(r) => println!("    {name}: {} ms", r.period.as_ms_f64()),
                None => println!("    {name}: none"),
            }
        }
    }
    line("lime/periodic", "", periodic);
    line("lime/sporadic", "none", sporadic);
    Ok(())
}

/// What the tracker says of each periodic thread, from the first window in which its period is found.
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
