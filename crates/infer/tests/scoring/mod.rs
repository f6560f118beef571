//! Scores the analyser over recordings whose periods are known: shared by the test over small
//! recordings and by the `score` example over whole folders.

pub(crate) mod folder;

use onbeat_infer::period;
use onbeat_model::{Burst, Event, Instant, Rhythm, Span};
use onbeat_sense::recording::Recording;

use folder::Truth;

pub(crate) const FEWEST: usize = 6;
pub(crate) const WITHIN: f64 = 0.01;

/// The strongest rhythm of these bursts, in a window that ends at `now`.
pub(crate) fn analyse(bursts: &[Burst], now: Instant) -> Option<Rhythm> {
    let whole = bursts
        .first()
        .map_or(Span::ZERO, |first| now.since(first.woke));
    let mut analyser = period::Analyser::new(period::AnalyserConfig {
        window: whole,
        capacity: bursts.len(),
        ..period::AnalyserConfig::default()
    });
    bursts.iter().for_each(|burst| analyser.hear(burst));
    analyser.analyse(now).first().copied()
}

pub(crate) fn is_right(rhythm: Rhythm, truth: &Truth) -> bool {
    let found = rhythm.period.as_ms_f64();
    truth
        .periods
        .iter()
        .any(|t| (found / t - 1.0).abs() <= WITHIN)
}

pub(crate) struct Thread {
    pub(crate) comm: String,
    pub(crate) bursts: Vec<Burst>,
}

/// Every thread of a recording that woke at all; of threads with one name, the one with the most
/// wakeups.
pub(crate) fn busiest_threads(recording: &Recording) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    for task in &recording.tasks {
        let bursts: Vec<Burst> = recording
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Burst(burst) if burst.task == task.id => Some(*burst),
                _ => None,
            })
            .collect();
        let thread = Thread {
            comm: task.comm.to_text(),
            bursts,
        };
        match threads.iter_mut().find(|t| t.comm == thread.comm) {
            Some(other) if other.bursts.len() >= thread.bursts.len() => {}
            Some(other) => *other = thread,
            None => threads.push(thread),
        }
    }
    threads.retain(|thread| !thread.bursts.is_empty());
    threads
}

/// The whole windows of a recording, from its first event, each with the bursts of `thread` that
/// woke in it; those with too few are left out.
pub(crate) fn windows<'a>(
    recording: &Recording,
    thread: &'a Thread,
    length: Span,
) -> impl Iterator<Item = (Instant, &'a [Burst])> + use<'a> {
    let (began, ended) = (recording.began, recording.ended);
    let count = ended.since(began).as_ns() / length.as_ns().max(1);
    let bursts = thread.bursts.as_slice();
    (0..count).filter_map(move |n| {
        let (from, to) = (began + length * n, began + length * (n + 1));
        let first = bursts.partition_point(|burst| burst.woke < from);
        let last = bursts.partition_point(|burst| burst.woke < to);
        let inside = &bursts[first..last];
        (inside.len() >= FEWEST).then_some((to, inside))
    })
}
