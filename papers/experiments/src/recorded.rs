//! Recordings of players whose rate is known, and what an analyser says of every stretch of them.
//!
//! A recording is the kernel's own trace text, with wakeups, switches and system calls, as in
//! `tests/traces/apps`. Wakeups and bursts are read by onbeat-sense; the system calls it leaves out
//! are read here.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::read::MultiGzDecoder;
use onbeat_infer::period;
use onbeat_lfspp::{Analyser as Spectral, Config};
use onbeat_model::{Burst, Event, Instant, Span, TaskId};
use onbeat_sense::recording::{self, Recording};

const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/apps");

/// One player's thread.
pub(crate) struct Player {
    pub(crate) bursts: Vec<Burst>,
    pub(crate) calls: Vec<Instant>,
    began: Instant,
    ended: Instant,
}

/// The events that an analyser hears of a thread.
#[derive(Clone, Copy)]
pub(crate) enum EventSource {
    Calls,
    Wakeups,
    /// Bursts: wakeups, the work after each, and the waker.
    Bursts,
}

#[derive(Clone, Copy)]
pub(crate) enum Analyser {
    /// The LFS++ paper's.
    Lfspp,
    /// onbeat's own.
    Default,
}

pub(crate) fn in_checkout(name: &str) -> PathBuf {
    Path::new(TRACES).join(format!("{name}.txt.gz"))
}

impl Player {
    pub(crate) fn read(path: &Path, comm: &str) -> anyhow::Result<Self> {
        let recording = recording::read(path)?;
        let (tid, bursts) = bursts_of(&recording, comm)
            .with_context(|| format!("{} has no thread called {comm}", path.display()))?;
        Ok(Self {
            bursts,
            calls: calls_of(&text_of(path)?, tid),
            began: recording.began,
            ended: recording.ended,
        })
    }

    /// The frequency, in Hz, that `analyser` finds in the stretch of `length` that begins `offset`
    /// after the recording, and how many events it heard there.
    pub(crate) fn frequency(
        &self,
        analyser: Analyser,
        heard: EventSource,
        (offset, length): (Span, Span),
    ) -> (Option<f64>, usize) {
        let from = self.began + offset;
        let inside = |at: Instant| at >= from && at < from + length;
        let bursts: Vec<Burst> = match heard {
            EventSource::Bursts => self.bursts.clone(),
            EventSource::Wakeups => self
                .bursts
                .iter()
                .map(|b| Burst::pulse(b.task, b.woke))
                .collect(),
            EventSource::Calls => self
                .calls
                .iter()
                .map(|at| Burst::pulse(TaskId::recorded(1), *at))
                .collect(),
        };
        let bursts: Vec<Burst> = bursts.into_iter().filter(|b| inside(b.woke)).collect();
        let found = match analyser {
            Analyser::Default => {
                let mut analyser = period::Analyser::new(period::AnalyserConfig {
                    window: length,
                    capacity: bursts.len(),
                    ..period::AnalyserConfig::default()
                });
                bursts.iter().for_each(|burst| analyser.hear(burst));
                analyser.analyse(from + length).first().copied()
            }
            Analyser::Lfspp => onbeat_lfspp::rhythm(bursts.iter().copied(), length),
        };
        let frequency = found.map(|rhythm| 1.0 / rhythm.period.as_secs_f64());
        (frequency, bursts.len())
    }

    /// The begins of `count` stretches of `length`, spread evenly over the recording.
    pub(crate) fn stretches(&self, length: Span, count: u64) -> Vec<(Span, Span)> {
        let room = self.ended.since(self.began + length);
        let offset = |n: u64| Span::from_ns(room.as_ns() / count.max(1) * n);
        (0..count).map(|n| (offset(n), length)).collect()
    }

    /// The paper's spectrum of the wakeups in one stretch: frequency in Hz, amplitude as a share of
    /// the greatest.
    pub(crate) fn spectrum(&self, (offset, length): (Span, Span)) -> Vec<(f64, f64)> {
        let from = self.began + offset;
        let wakeups = self.bursts.iter().map(|burst| burst.woke);
        let inside = wakeups.filter(|at| *at >= from && *at < from + length);
        let config = Config {
            horizon: length,
            ..Config::default()
        };
        let mut analyser = Spectral::new(config).expect("the defaults are in range");
        inside.for_each(|at| analyser.add_event(at));
        let amplitudes = analyser.spectrum();
        let highest = amplitudes.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let frequencies = (0..).map(|n| config.lowest_hz + f64::from(n) * config.step_hz);
        let shares = amplitudes.iter().map(|amplitude| amplitude / highest);
        frequencies.zip(shares).collect()
    }
}

/// The number and the bursts of the thread called `comm` that has the most.
pub(crate) fn bursts_of(recording: &Recording, comm: &str) -> Option<(u32, Vec<Burst>)> {
    let bursts_of = |task: TaskId| {
        let bursts = recording.events.iter().filter_map(|event| match event {
            Event::Burst(burst) if burst.task == task => Some(*burst),
            _ => None,
        });
        bursts.collect::<Vec<_>>()
    };
    let named = recording.tasks.iter().filter(|t| t.comm.to_text() == comm);
    named
        .map(|task| (task.id.tid, bursts_of(task.id)))
        .max_by_key(|(_, bursts)| bursts.len())
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let mut text = Vec::new();
    MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// When the thread entered the kernel: lines like
/// `mplayer-14149   [000] .....   928.247245: sys_enter: NR 7 (...)`.
fn calls_of(text: &str, tid: u32) -> Vec<Instant> {
    let call = |line: &str| {
        let (before, _) = line.split_once(": sys_enter: ")?;
        let (task, rest) = before.split_once(" [")?;
        let (_, of) = task.trim_end().rsplit_once('-')?;
        let at: f64 = rest.split_whitespace().next_back()?.parse().ok()?;
        (of.parse() == Ok(tid)).then(|| Instant::ZERO + Span::from_secs_f64(at))
    };
    text.lines().filter_map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_are_read_from_the_kernels_trace_text() {
        let text = "         mplayer-7   [000] .....   928.250000: sys_enter: NR 7 (1, 2)\n\
                    a b-c-8 [001] ..... 928.300000: sys_enter: NR 0 (5)\n\
                    mplayer-7 [000] d..2. 928.3: sched_switch: prev_comm=mplayer prev_pid=7\n";
        let at = |s| vec![Instant::ZERO + Span::from_secs_f64(s)];
        assert_eq!(calls_of(text, 7), at(928.25));
        assert_eq!(calls_of(text, 8), at(928.3));
    }
}
