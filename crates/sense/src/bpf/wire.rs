//! Reads the ring buffer's records: `struct record` of record.h.

use onbeat_model::{Burst, Event, Instant, Mark, Name, Said, Span, Task, TaskId};

use crate::probes::Probe;

/// A thread's number takes the low bits of its packed identity, its start the others.
const TID_BITS: u32 = 22;
const SIZE: usize = 56;

const TRACKED: u32 = 0;
const RENAMED: u32 = 1;
const BURST: u32 = 2;
const EXHAUSTED: u32 = 3;
const WAKEUP: u32 = 4;
const EXITED: u32 = 5;
const SUPPRESSED: u32 = 6;
const JOB_BEGAN: u32 = 7;
const JOB_ENDED: u32 = 8;
const MISSED_DEADLINE: u32 = 9;
const REALTIME_STARTED: u32 = 10;
const REALTIME_EXITED: u32 = 11;
const CALLED: u32 = 12;
const EXECUTED: u32 = 13;

/// In place of a waker: a timer woke the thread, this number of nanoseconds after its expiry.
const WOKEN_BY_TIMER: u32 = 1 << 31;

/// The kind of record that the program writes of a call: the cookie of its probe.
pub(super) const fn of_probe(probe: Probe) -> Option<u32> {
    Some(match probe {
        Probe::JobBegin => JOB_BEGAN,
        Probe::JobEnd | Probe::RealTimeFinishJob => JOB_ENDED,
        Probe::Mdn => MISSED_DEADLINE,
        Probe::RealTimeStart => REALTIME_STARTED,
        Probe::RealTimeExit => REALTIME_EXITED,
    })
}

/// A task's identity as the programs write it.
pub(super) const fn pack(task: TaskId) -> u64 {
    task.started_ticks << TID_BITS | task.tid as u64
}

pub(super) const fn unpack(id: u64) -> TaskId {
    TaskId {
        tid: (id & ((1 << TID_BITS) - 1)) as u32,
        started_ticks: id >> TID_BITS,
    }
}

/// The process, not tracked, that executed a program of a wanted name, if the record tells of one.
pub(super) fn executed(bytes: &[u8]) -> Option<u32> {
    let bytes: &[u8; SIZE] = bytes.try_into().ok()?;
    (word(bytes, 52) == EXECUTED).then(|| word(bytes, 32))
}

/// The event that a record tells of; none if it is not one of ours.
pub(super) fn event(bytes: &[u8]) -> Option<Event> {
    let bytes: &[u8; SIZE] = bytes.try_into().ok()?;
    let task = unpack(long(bytes, 0));
    let at = Instant::from_ns(long(bytes, 8));
    let woken_by = word(bytes, 48);
    let is_by_timer = woken_by & WOKEN_BY_TIMER != 0;
    let waker = if is_by_timer { 0 } else { woken_by };
    let named = || {
        let mut comm = [0; 16];
        comm.copy_from_slice(&bytes[16..32]);
        Task {
            id: task,
            pid: word(bytes, 32),
            comm: Name::new(&comm),
        }
    };
    let marked = |said| {
        Event::Marked(Mark {
            at,
            task,
            woke: Instant::from_ns(long(bytes, 16)),
            executed: Span::from_ns(long(bytes, 24)),
            said,
        })
    };
    Some(match word(bytes, 52) {
        TRACKED => Event::Tracked { at, task: named() },
        RENAMED => Event::Renamed { at, task: named() },
        BURST => Event::Burst(Burst {
            task,
            woke: Instant::from_ns(long(bytes, 16)),
            first_ran: Instant::from_ns(long(bytes, 24)),
            blocked: at,
            executed: Span::from_ns(long(bytes, 32)),
            preempted: word(bytes, 40),
            waker,
            exhausted: word(bytes, 44) != 0,
            expiry: is_by_timer.then(|| {
                let late = Span::from_ns((woken_by & !WOKEN_BY_TIMER).into());
                Instant::from_ns(long(bytes, 16)) - late
            }),
        }),
        EXHAUSTED => Event::Exhausted { at, task },
        WAKEUP => Event::Wakeup { at, task, waker },
        EXITED => Event::Exited { at, task },
        SUPPRESSED => Event::Suppressed {
            at,
            task,
            count: woken_by,
        },
        JOB_BEGAN => marked(Said::JobBegan),
        JOB_ENDED => marked(Said::JobEnded),
        MISSED_DEADLINE => marked(Said::MissedDeadline),
        REALTIME_STARTED => marked(Said::RealTimeStarted {
            period: Span::from_ns(long(bytes, 32)),
            permille: word(bytes, 40),
        }),
        REALTIME_EXITED => marked(Said::RealTimeExited),
        CALLED => Event::Burst(Burst::pulse(task, at)),
        _ => return None,
    })
}

pub(super) fn long<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut long = [0; 8];
    long.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(long)
}

fn word(bytes: &[u8; SIZE], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_unpacks_to_what_was_packed_up_to_the_largest_thread_number() {
        for (tid, started_ticks) in [(1, 0), (4_194_303, 7), (40_000, 1 << 41)] {
            let task = TaskId { tid, started_ticks };
            assert_eq!(unpack(pack(task)), task);
        }
    }

    #[test]
    fn a_burst_that_a_timer_began_has_its_expiry_and_no_waker() {
        let told = |woken_by: u32| {
            let mut record = [0; SIZE];
            record[16..24].copy_from_slice(&5_000_u64.to_ne_bytes());
            record[48..52].copy_from_slice(&woken_by.to_ne_bytes());
            record[52..].copy_from_slice(&BURST.to_ne_bytes());
            match event(&record) {
                Some(Event::Burst(burst)) => (burst.waker, burst.expiry),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(told(4_194_303), (4_194_303, None));
        assert_eq!(told(0), (0, None));
        let expiry = Some(Instant::from_ns(4_990));
        assert_eq!(told(WOKEN_BY_TIMER | 10), (0, expiry));
    }

    #[test]
    fn what_is_no_record_is_no_event() {
        let mut record = [0; SIZE];
        record[52..].copy_from_slice(&EXITED.to_ne_bytes());
        assert!(event(&record).is_some());
        assert_eq!(event(&record[1..]), None);
        assert_eq!(event(&[]), None);
        record[52..].copy_from_slice(&(EXECUTED + 1).to_ne_bytes());
        assert_eq!((event(&record), executed(&record)), (None, None));
    }

    #[test]
    fn a_program_that_was_executed_is_no_event() {
        let mut record = [0; SIZE];
        record[32..36].copy_from_slice(&7_u32.to_ne_bytes());
        record[52..].copy_from_slice(&EXECUTED.to_ne_bytes());
        assert_eq!((event(&record), executed(&record)), (None, Some(7)));
    }
}
