//! The kernel's own scheduling events, as text formats carry them.
//!
//! ftrace and `perf script` differ in how a line begins; what follows the event's name is the same
//! in both: either the kernel's own format (`comm=mplayer pid=7 prio=120 ...`) or the short one of
//! libtraceevent (`mplayer:7 [120] ...`), which `trace-cmd report` and `perf script` may use.

use std::borrow::Cow;

use onbeat_model::{Instant, Name};

/// A scheduling event that bursts are built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) at: Instant,
    /// On which CPU, where the recording tells.
    pub(crate) cpu: Option<u32>,
    pub(crate) current: u32,
    pub(crate) what: SchedEvent,
}

/// The number of a thread that the recording does not tell; no thread has it.
pub(crate) const UNTOLD: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) tid: u32,
    pub(crate) comm: Name,
}

/// Which of the kernel's wakeup events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeupKind {
    /// `sched_waking`: written by the waker.
    Waking,
    /// `sched_wakeup`: written when the task is ready; may follow a waking.
    Wakeup,
    /// `sched_wakeup_new`: the first of a new thread.
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchedEvent {
    Wakeup {
        kind: WakeupKind,
        task: Mention,
        /// The thread that woke it; zero if unknown.
        waker: u32,
    },
    Switch {
        from: Mention,
        ready: bool,
        to: Mention,
    },
    Fork {
        parent: u32,
        child: Mention,
    },
    Renamed {
        task: Mention,
    },
    Exit {
        tid: u32,
    },
    /// Something that bursts are not built from, by a thread that ran.
    Other,
    Lost {
        count: u64,
    },
}

impl SchedEvent {
    pub(crate) fn mentions(&mut self) -> impl Iterator<Item = &mut Mention> {
        let (one, other) = match self {
            Self::Wakeup { task, .. } | Self::Renamed { task } => (Some(task), None),
            Self::Fork { child, .. } => (Some(child), None),
            Self::Switch { from, to, .. } => (Some(from), Some(to)),
            Self::Exit { .. } | Self::Other | Self::Lost { .. } => (None, None),
        };
        one.into_iter().chain(other)
    }
}

/// The fields of an event, by the kernel's names and, where that has others, LTTng's.
pub(crate) trait Fields {
    fn number(&self, name: &str) -> Option<i64>;
    fn text(&self, name: &str) -> Option<Cow<'_, str>>;

    fn thread(&self, comm: &str, tid: &str) -> Option<Mention> {
        let (tid, comm) = (self.tid(tid)?, named(comm, &self.text(comm)?));
        Some(Mention { tid, comm })
    }

    fn tid(&self, name: &str) -> Option<u32> {
        self.number(name)?.try_into().ok()
    }
}

/// The event `name` with these fields; `waker` is the thread that wrote it, zero if that was not
/// what caused it. None if it is a scheduling event with other fields than the kernel's.
pub(crate) fn of_fields(name: &str, fields: &impl Fields, waker: u32) -> Option<SchedEvent> {
    let wakeup = |kind| {
        let task = fields.thread("comm", "pid")?;
        Some(SchedEvent::Wakeup { kind, task, waker })
    };
    match name {
        "sched_waking" => wakeup(WakeupKind::Waking),
        "sched_wakeup" => wakeup(WakeupKind::Wakeup),
        "sched_wakeup_new" => wakeup(WakeupKind::New),
        "sched_switch" => Some(SchedEvent::Switch {
            from: fields.thread("prev_comm", "prev_pid")?,
            ready: is_ready(fields.number("prev_state")?),
            to: fields.thread("next_comm", "next_pid")?,
        }),
        "sched_process_fork" => Some(SchedEvent::Fork {
            parent: fields.tid("parent_pid").or_else(|| fields.tid("pid"))?,
            child: fields.thread("child_comm", "child_pid")?,
        }),
        "sched_process_exec" => {
            let task = fields.thread("filename", "pid")?;
            Some(SchedEvent::Renamed { task })
        }
        "sched_process_exit" => Some(SchedEvent::Exit {
            tid: fields.tid("pid")?,
        }),
        _ => Some(SchedEvent::Other),
    }
}

/// The event `name` with the fields `payload`, in the kernel's format or in the short one.
pub(crate) fn parse(name: &str, payload: &str, waker: u32) -> Option<SchedEvent> {
    // What libtraceevent writes before the fields of an event whose format it does not understand.
    let payload = payload
        .trim()
        .trim_start_matches("[FAILED TO PARSE]")
        .trim_start();
    match name {
        "sched_switch" => switch(payload),
        "task_rename" => rename(payload),
        // Kernels before 4.3 tell of a wakeup that found the thread awake, or in another sleep.
        _ if payload.rsplit(' ').take(2).any(|word| word == "success=0") => Some(SchedEvent::Other),
        _ => of_fields(name, &Payload(payload), waker),
    }
}

/// The fields as text: `comm=mplayer pid=7 prio=120`. A name may hold anything.
struct Payload<'a>(&'a str);

impl<'a> Payload<'a> {
    /// What stands before the last field of this name, and what behind its sign.
    fn around(&self, name: &str) -> Option<(&'a str, &'a str)> {
        self.0.rmatch_indices(name).find_map(|(at, _)| {
            let (before, rest) = self.0.split_at(at);
            let value = rest.strip_prefix(name)?.strip_prefix('=')?;
            (before.is_empty() || before.ends_with(' ')).then_some((before.trim_end(), value))
        })
    }
}

impl Fields for Payload<'_> {
    fn number(&self, name: &str) -> Option<i64> {
        first_word(self.around(name)?.1).parse().ok()
    }

    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        let whole = self
            .0
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('='));
        whole.or_else(|| Some(self.around(name)?.1)).map(Cow::from)
    }

    fn thread(&self, comm: &str, tid: &str) -> Option<Mention> {
        let Some((before, number)) = self.around(tid) else {
            return Some(short(self.0)?.0);
        };
        let comm = named(comm, &Payload(before).text(comm)?);
        let tid = first_word(number).parse().ok()?;
        Some(Mention { tid, comm })
    }
}

/// The name that a thread has by a field: of a program's file, the last part.
fn named(field: &str, text: &str) -> Name {
    let last = text.rsplit('/').next().filter(|_| field == "filename");
    Name::from(last.unwrap_or(text))
}

fn mention(comm: &str, tid: &str) -> Option<Mention> {
    Some(Mention {
        tid: tid.parse().ok()?,
        comm: Name::from(comm),
    })
}

fn first_word(text: &str) -> &str {
    text.split_ascii_whitespace().next().unwrap_or("")
}

/// `NAME:TID [PRIO] ...`: the mention, and what follows the priority.
fn short(text: &str) -> Option<(Mention, &str)> {
    let (task, rest) = text.rsplit_once(" [")?;
    let (_, rest) = rest.split_once(']')?;
    let (comm, tid) = task.rsplit_once(':')?;
    Some((mention(comm, tid)?, rest.trim()))
}

/// A name may hold anything: the first place is taken where what stands on both sides fits.
fn switch(payload: &str) -> Option<SchedEvent> {
    let (from, state, to) = if let Some(fields) = payload.strip_prefix("prev_comm=") {
        let (from, state, next) = fields.match_indices(" prev_pid=").find_map(|(at, begin)| {
            let (comm, prev) = fields.split_at(at);
            let (prev, rest) = prev.strip_prefix(begin)?.split_once(" prev_state=")?;
            // `trace-cmd report -R` writes the fields as they are, without the arrow.
            let (state, next) = rest.split_once(' ')?;
            let next = next.strip_prefix("==> ").unwrap_or(next);
            Some((
                mention(comm, first_word(prev))?,
                state,
                next.strip_prefix("next_comm=")?,
            ))
        })?;
        let (comm, next) = next.rsplit_once(" next_pid=")?;
        (from, state, mention(comm, first_word(next))?)
    } else {
        payload.match_indices(" ==> ").find_map(|(at, arrow)| {
            let (prev, next) = payload.split_at(at);
            let (from, state) = short(prev)?;
            let next = short(next.strip_prefix(arrow)?)?.0;
            (!state.contains(' ')).then_some((from, state, next))
        })?
    };
    let number = match state.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => state.parse().ok(),
    };
    let ready = match number {
        Some(number) => is_ready(number),
        None if state.starts_with(|c: char| c.is_ascii_alphabetic()) => state.starts_with('R'),
        None => return None,
    };
    Some(SchedEvent::Switch { from, ready, to })
}

/// Whether a thread whose `prev_state` is this number still wants to run: 0 is `R`, and one bit
/// beyond all states says that it was preempted.
///
/// That bit is the kernel's `TASK_REPORT_MAX` (256) from 4.14 on, and was `TASK_STATE_MAX`: 4096
/// from 4.8 on, 2048 from 4.2 on, 1024 from 3.9 on. Only 1024 of these has another meaning
/// elsewhere, and never alone: `TASK_IDLE` is
/// 1026. A thread that leaves a CPU is never in the states 256 and 2048 of former kernels,
///   `TASK_WAKING` and `TASK_NEW`.
pub(crate) const fn is_ready(prev_state: i64) -> bool {
    const PREEMPTED: i64 = 256 | 2048 | 4096;
    prev_state == 0 || prev_state == 1024 || prev_state & PREEMPTED != 0
}

fn rename(payload: &str) -> Option<SchedEvent> {
    let (pid, fields) = payload.strip_prefix("pid=")?.split_once(" oldcomm=")?;
    let (_, comm) = fields.rsplit_once(" newcomm=")?;
    let comm = comm
        .rsplit_once(" oom_score_adj=")
        .map_or(comm, |(comm, _)| comm);
    Some(SchedEvent::Renamed {
        task: mention(comm, pid)?,
    })
}
