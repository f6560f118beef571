//! Reads the ring buffer's records: `struct record` of record.h.

use std::mem::offset_of;

use onbeat_model::{Burst, Event, Instant, Mark, Name, Origin, Said, Span, Task, TaskId};

use super::skeleton::types::{record, record_bits as Bits, record_kind as RecordKind};

const TID_BITS: u32 = Bits::ID_TID_BITS.0;
const WOKEN_BY_TIMER: u32 = Bits::WOKEN_BY_TIMER.0;
const SIZE: usize = size_of::<record>();

pub(super) const fn pack(task: TaskId) -> u64 {
    task.started_ticks << TID_BITS | task.tid as u64
}

pub(super) const fn unpack(id: u64) -> TaskId {
    TaskId {
        tid: (id & ((1 << TID_BITS) - 1)) as u32,
        started_ticks: id >> TID_BITS,
    }
}

pub(super) fn event(bytes: &[u8]) -> Option<Event> {
    let bytes: &[u8; SIZE] = bytes.try_into().ok()?;
    let task = unpack(long(bytes, offset_of!(record, id)));
    let at = Instant::from_ns(long(bytes, offset_of!(record, at_ns)));
    let woken_by = word(bytes, offset_of!(record, waker));
    let is_by_timer = woken_by & WOKEN_BY_TIMER != 0;
    let waker = if is_by_timer { 0 } else { woken_by };
    let woke = || Instant::from_ns(long(bytes, offset_of!(record, of.burst.woke_ns)));
    let named = || {
        let mut comm = [0; 16];
        let at = offset_of!(record, of.task.comm);
        comm.copy_from_slice(&bytes[at..at + 16]);
        Task {
            id: task,
            pid: word(bytes, offset_of!(record, of.task.pid)),
            comm: Name::new(&comm),
        }
    };
    let marked = |said| {
        Event::Marked(Mark {
            at,
            task,
            woke: Instant::from_ns(long(bytes, offset_of!(record, of.mark.woke_ns))),
            executed: Span::from_ns(long(bytes, offset_of!(record, of.mark.executed_ns))),
            said,
        })
    };
    Some(match RecordKind(word(bytes, offset_of!(record, kind))) {
        RecordKind::RECORD_TRACKED => Event::Tracked { at, task: named() },
        RecordKind::RECORD_RENAMED => Event::Renamed { at, task: named() },
        RecordKind::RECORD_BURST => Event::Burst(Burst {
            task,
            woke: woke(),
            first_ran: Instant::from_ns(long(bytes, offset_of!(record, of.burst.first_ran_ns))),
            blocked: at,
            executed: Span::from_ns(long(bytes, offset_of!(record, of.burst.executed_ns))),
            preempted: word(bytes, offset_of!(record, of.burst.preempted)),
            waker,
            exhausted: word(bytes, offset_of!(record, of.burst.exhausted)) != 0,
            expiry: is_by_timer.then(|| {
                let late = Span::from_ns((woken_by & !WOKEN_BY_TIMER).into());
                woke() - late
            }),
        }),
        RecordKind::RECORD_EXHAUSTED => Event::Exhausted { at, task },
        RecordKind::RECORD_YIELDED => Event::Yielded { at, task },
        RecordKind::RECORD_WAITED => Event::Waited {
            at,
            task,
            waited: Span::from_ns(long(bytes, offset_of!(record, of.burst.executed_ns))),
            behind: woken_by,
        },
        RecordKind::RECORD_WAKEUP => Event::Wakeup { at, task, waker },
        RecordKind::RECORD_EXITED => Event::Exited { at, task },
        RecordKind::RECORD_SUPPRESSED => Event::Suppressed {
            at,
            task,
            count: woken_by,
        },
        RecordKind::RECORD_JOB_BEGAN => marked(Said::JobBegan),
        RecordKind::RECORD_JOB_ENDED => marked(Said::JobEnded),
        RecordKind::RECORD_MISSED_DEADLINE => marked(Said::MissedDeadline),
        RecordKind::RECORD_REALTIME_STARTED => marked(Said::RealTimeStarted {
            period: Span::from_ns(long(bytes, offset_of!(record, of.mark.period_ns))),
            permille: word(bytes, offset_of!(record, of.mark.permille)),
        }),
        RecordKind::RECORD_REALTIME_EXITED => marked(Said::RealTimeExited),
        RecordKind::RECORD_CALLED => Event::Burst(Burst::pulse(task, at)),
        _ => return None,
    })
}

pub(super) fn origin(bytes: &[u8]) -> Option<(TaskId, Origin)> {
    let bytes: &[u8; SIZE] = bytes.try_into().ok()?;
    let kind = RecordKind(word(bytes, offset_of!(record, kind)));
    if ![RecordKind::RECORD_TRACKED, RecordKind::RECORD_RENAMED].contains(&kind) {
        return None;
    }
    let uid = word(bytes, offset_of!(record, of.task.uid));
    let origin = Origin {
        parent: word(bytes, offset_of!(record, of.task.parent)),
        uid: (uid != Bits::OF_TWO_USERS.0).then_some(uid),
    };
    Some((unpack(long(bytes, offset_of!(record, id))), origin))
}

pub(super) fn long<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut long = [0; 8];
    long.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(long)
}

pub(super) fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}
