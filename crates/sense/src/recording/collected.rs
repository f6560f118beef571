//! The kernel's events of a recording, from whatever format, and the recording that they make.

use std::collections::HashMap;

use onbeat_model::{Instant, Name};

use super::bursts::Builder;
use super::lines::cut_off;
use super::{Format, Recording};
use crate::switch_event::{Mention, Raw, SchedEvent, UNTOLD};

/// The bits of an event's flags that say "in an interrupt": hard, soft or not maskable.
pub(super) const IN_INTERRUPT: u32 = 0x08 | 0x10 | 0x40;

#[derive(Default)]
pub(super) struct Collected {
    raws: Vec<Raw>,
    process_of: HashMap<u32, u32>,
    span: Option<(Instant, Instant)>,
    lost_before: u64,
    /// The times that are earlier than the one before.
    backwards: usize,
    pub(super) cut_off: bool,
    pub(super) warnings: Vec<String>,
}

impl Collected {
    pub(super) fn event(&mut self, raw: Raw) {
        let (first, last) = self.span.unwrap_or((raw.at, raw.at));
        self.span = Some((first.min(raw.at), last.max(raw.at)));
        let before = self.raws.last().map_or(raw.at, |last| last.at);
        self.backwards += usize::from(raw.at < before);
        self.raws.push(raw);
    }

    /// More than one time in four is earlier than the one before it.
    pub(super) const fn runs_backwards(&self) -> bool {
        self.backwards > 8 && self.backwards * 4 > self.raws.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        let is_nothing =
            |raw: &Raw| matches!(raw.what, SchedEvent::Other | SchedEvent::Lost { .. });
        self.raws.iter().all(is_nothing)
    }

    pub(super) fn process(&mut self, tid: u32, pid: u32) {
        self.process_of.insert(tid, pid);
    }

    pub(super) fn lost(&mut self, count: u64) {
        let at = self.span.map_or(Instant::ZERO, |(_, last)| last);
        self.lost_at(at, count);
    }

    /// The recorder lost `count` events before `at`.
    pub(super) fn lost_at(&mut self, at: Instant, count: u64) {
        self.raws.push(Raw {
            at,
            cpu: None,
            current: 0,
            what: SchedEvent::Lost { count },
        });
    }

    pub(super) fn lost_before(&mut self, count: u64) {
        self.lost_before = self.lost_before.saturating_add(count);
    }

    pub(super) fn cut_off(&mut self, piece: &str) {
        self.cut_off = true;
        self.warnings.push(cut_off(piece));
    }

    pub(super) fn into_recording(mut self, format: Format) -> Recording {
        self.raws.sort_by_key(|raw| raw.at);
        fill_in(&mut self.raws);
        name(&mut self.raws);
        let mut builder = Builder::default();
        for raw in self.raws {
            builder.hear(raw);
        }
        let built = builder.finish(&self.process_of);
        if built.lost > 0 {
            self.warnings.push(format!(
                "the recorder lost {} events in between; bursts around the gaps are left out",
                built.lost
            ));
        }
        if built.lacks_begins && built.lost == 0 {
            let advice = "record all CPUs ('perf record -a'), or with 'onbeat record'";
            self.warnings.push(format!(
                "many switches and wakeups are missing, so that of many bursts only the end is there: {advice}"
            ));
        }
        if self.lost_before > 0 {
            self.warnings.push(format!(
                "the recorder overwrote {} events before the first one: a larger buffer keeps them",
                self.lost_before
            ));
        }
        let (began, ended) = self.span.unwrap_or_default();
        Recording {
            format,
            facts: None,
            tasks: built.tasks,
            events: built.events,
            began,
            ended,
            lost: built.lost.saturating_add(self.lost_before),
            warnings: self.warnings,
            parents: built.parents,
        }
    }
}

/// Gives the threads that the recorder did not know by name the one that they have elsewhere.
fn name(raws: &mut [Raw]) {
    let unknown = Name::from("<...>");
    let mut names = HashMap::new();
    for raw in raws.iter_mut().rev() {
        for mention in raw.what.mentions() {
            if mention.comm != unknown {
                names.insert(mention.tid, mention.comm);
            }
        }
    }
    for raw in raws {
        for mention in raw.what.mentions() {
            if mention.comm == unknown {
                mention.comm = names.get(&mention.tid).copied().unwrap_or(unknown);
            } else {
                names.insert(mention.tid, mention.comm);
            }
        }
    }
}

/// Tells which thread ran where events happened, if they do not tell it themselves: the one that
/// the last switch on that CPU went to. `raws` are in the order of their times.
fn fill_in(raws: &mut [Raw]) {
    let mut occupants: HashMap<u32, Mention> = HashMap::new();
    for raw in raws {
        let occupant = raw.cpu.and_then(|cpu| occupants.get(&cpu).copied());
        if raw.current == UNTOLD {
            raw.current = occupant.map_or(UNTOLD, |thread| thread.tid);
        }
        match &mut raw.what {
            SchedEvent::Switch { from, to, .. } => {
                if from.tid == UNTOLD {
                    // A thread that is not known has no event.
                    *from = occupant.unwrap_or(Mention {
                        tid: 0,
                        comm: Name::default(),
                    });
                }
                raw.current = from.tid;
                occupants.extend(raw.cpu.map(|cpu| (cpu, *to)));
            }
            SchedEvent::Wakeup { waker, .. } if *waker == UNTOLD => {
                *waker = Some(raw.current)
                    .filter(|&tid| tid != UNTOLD)
                    .unwrap_or_default();
            }
            SchedEvent::Renamed { task } => {
                let renamed = occupants.values_mut().filter(|known| known.tid == task.tid);
                renamed.for_each(|known| known.comm = task.comm);
            }
            SchedEvent::Lost { .. } => occupants.clear(),
            _ => {}
        }
    }
}
