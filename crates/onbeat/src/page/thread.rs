//! The part of the page on one thread.

use std::f64::consts::TAU;

use onbeat_control::{DoneJob, ThreadReport, What};
use onbeat_model::{Instant, Reservation, Span};

use super::input::PageRun;
use super::plot::{Plot, Shape};
use super::{escaped, optional, percent, seconds, table};
use crate::history::ThreadHistory;

/// The spectrum is of so much of the history's end.
const HORIZON: Span = Span::from_secs(10);
const LOWEST_HZ: f64 = 5.0;
const HIGHEST_HZ: f64 = 400.0;
const STEP_HZ: f64 = 0.1;
/// It shows this number of multiples of the thread's frequency.
const MULTIPLES: f64 = 6.0;
/// The number of points that it is drawn with, the highest of those that fall together.
const POINTS: usize = 700;
const MOST_LISTED: usize = 500;

/// Its plots, and what changed and why. Times count from `begin`.
pub(super) fn section(run: &PageRun, thread: &ThreadReport, begin: Instant) -> String {
    let Some(history) = run.history_of(thread) else {
        return String::new();
    };
    let jobs: Vec<DoneJob> = history.recent_jobs.iter().collect();
    let mut text = format!(
        "<section id=\"thread-{}\">\n<h2>{} <small>thread {}{}{}</small></h2>\n",
        thread.task.id,
        escaped(&thread.task.comm.to_text()),
        thread.task.id,
        thread
            .period
            .map_or_else(String::new, |period| format!(", every {period}")),
        thread.stage.map_or_else(String::new, |stage| format!(
            ", {}",
            escaped(&stage.to_string())
        ))
    );
    text += &responses(thread, history, &jobs, begin);
    text += &budgets(run, thread, &jobs, begin);
    text += &distribution(thread, &jobs);
    if !history.wakeups_ns.is_empty() {
        text += &spectrum(thread, history);
    }
    text += &changes(run, thread, begin);
    text + "</section>\n"
}

fn ms(span: Span) -> f64 {
    span.as_ns() as f64 / 1e6
}

fn since(at: Instant, begin: Instant) -> f64 {
    at.since(begin).as_secs_f64()
}

fn released(job: &DoneJob, begin: Instant) -> f64 {
    since(job.ended - job.response, begin)
}

fn responses(
    thread: &ThreadReport,
    history: &ThreadHistory,
    jobs: &[DoneJob],
    begin: Instant,
) -> String {
    let dot = |job: &DoneJob| (released(job, begin), ms(job.response));
    let dots = |missed: bool| {
        let of = jobs.iter().filter(|job| job.missed == missed);
        Shape::Dots(of.map(dot).collect())
    };
    let mut marks = vec![
        ("blue", "a job in time", dots(false)),
        ("red", "a job that was late", dots(true)),
    ];
    let uncounted: Vec<(f64, f64)> = history.uncounted_jobs.iter().map(|job| dot(&job)).collect();
    if !uncounted.is_empty() {
        let label = "before jobs were counted";
        marks.push(("grey", label, Shape::Dots(uncounted)));
    }
    if let Some(period) = thread.period {
        marks.insert(0, ("grey", "the period", Shape::Level(ms(period))));
    }
    Plot {
        title: "Response times",
        x_label: "time of release (s)",
        y_label: "response time (ms)",
        marks,
        y_at_least: 0.0,
    }
    .figure()
}

fn budgets(run: &PageRun, thread: &ThreadReport, jobs: &[DoneJob], begin: Instant) -> String {
    let demands = jobs
        .iter()
        .map(|job| (released(job, begin), ms(job.executed)));
    let held = run
        .decisions_on(thread)
        .filter(|entry| entry.what != What::Refused);
    let budget = held.map(|entry| {
        let runtime = entry.new.map_or(f64::NAN, |new| ms(new.runtime()));
        (since(entry.at_ns, begin), runtime)
    });
    Plot {
        title: "Budget and demand",
        x_label: "time (s)",
        y_label: "CPU time in a period (ms)",
        marks: vec![
            ("blue", "what a job took", Shape::Dots(demands.collect())),
            (
                "orange",
                "what was reserved",
                Shape::Steps(budget.collect()),
            ),
        ],
        y_at_least: 0.0,
    }
    .figure()
}

fn distribution(thread: &ThreadReport, jobs: &[DoneJob]) -> String {
    let mut times: Vec<f64> = jobs.iter().map(|job| ms(job.response)).collect();
    times.sort_by(f64::total_cmp);
    let count = times.len() as f64;
    let shares = times
        .iter()
        .zip(1..)
        .map(|(&time, rank)| (time, f64::from(rank) / count * 100.0));
    let mut marks = vec![(
        "blue",
        "share of jobs that took no longer",
        Shape::Line(shares.collect()),
    )];
    if let Some(period) = thread.period {
        marks.push(("grey", "the period", Shape::Upright(ms(period))));
    }
    Plot {
        title: "Distribution of response times",
        x_label: "response time (ms)",
        y_label: "jobs (%)",
        marks,
        y_at_least: 100.0,
    }
    .figure()
}

/// The amplitude spectrum of the wakeups (LFS++, eq. 4).
fn spectrum(thread: &ThreadReport, history: &ThreadHistory) -> String {
    let frequency = thread
        .period
        .map(|period| 1e9 / period.as_ns().max(1) as f64);
    let highest_hz = frequency.map_or(HIGHEST_HZ, |hz| {
        (hz * MULTIPLES).clamp(LOWEST_HZ * 2.0, HIGHEST_HZ)
    });
    // A little more than the quotient, so that the highest is not lost to rounding.
    let bins = (highest_hz - LOWEST_HZ) / STEP_HZ + 1.0 + 1e-6;
    let wakeups = history.wakeups_ns.iter().copied();
    let last = wakeups.clone().max().unwrap_or_default();
    let wakeups = wakeups.filter(|&at| last.since(at) <= HORIZON);
    let amplitudes = amplitudes(wakeups, bins as usize);
    let together = amplitudes.len().div_ceil(POINTS).max(1);
    let points = amplitudes
        .chunks(together)
        .enumerate()
        .map(|(chunk, amplitudes)| {
            let hz = LOWEST_HZ + (chunk * together) as f64 * STEP_HZ;
            (hz, amplitudes.iter().copied().fold(0.0, f64::max))
        });
    let mut marks = vec![(
        "green",
        "amplitude of the wakeups",
        Shape::Line(points.collect()),
    )];
    if let Some(hz) = frequency {
        marks.insert(0, ("grey", "the thread's frequency", Shape::Upright(hz)));
    }
    Plot {
        title: "Spectrum",
        x_label: "frequency (Hz)",
        y_label: "amplitude",
        marks,
        y_at_least: 0.0,
    }
    .figure()
}

/// |S(f)| of pulses at these times, at each frequency from the lowest on.
fn amplitudes(mut pulses: impl Iterator<Item = Instant>, bins: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); bins];
    let first = pulses.next();
    for at in first.into_iter().chain(pulses) {
        let t = first.map_or(0.0, |first| at.offset_from(first) as f64 / 1e9);
        let turned = |hz: f64| (-TAU * (hz * t).fract()).sin_cos();
        let ((mut im, mut re), (step_im, step_re)) = (turned(LOWEST_HZ), turned(STEP_HZ));
        for (sum_re, sum_im) in &mut sums {
            *sum_re += re;
            *sum_im += im;
            (re, im) = (re * step_re - im * step_im, re * step_im + im * step_re);
        }
    }
    sums.into_iter()
        .map(|(re, im): (f64, f64)| (re * re + im * im).sqrt())
        .collect()
}

fn changes(run: &PageRun, thread: &ThreadReport, begin: Instant) -> String {
    let all: Vec<_> = run.decisions_on(thread).collect();
    if all.is_empty() {
        return String::new();
    }
    let reservation = |of: Reservation| {
        let share = percent(of.bandwidth().as_cpus());
        format!("{} / {} ({share})", of.runtime(), of.period())
    };
    let left_out = all.len().saturating_sub(MOST_LISTED);
    let rows = all.iter().skip(left_out).map(|entry| {
        vec![
            seconds(entry.at_ns, begin),
            entry.what.name().to_owned(),
            optional(entry.old, reservation),
            optional(entry.new, reservation),
            escaped(&entry.why),
        ]
    });
    let listed = table(&["at", "what", "from", "to", "why"], rows);
    let note = if left_out > 0 {
        format!(" (the last {MOST_LISTED} of {})", all.len())
    } else {
        String::new()
    };
    format!("<details open><summary>What changed, and why{note}</summary>\n{listed}</details>\n")
}
