//! The kernel's trace as text, in pieces that may end in the middle of a line.

use onbeat_model::{Instant, Name};

use crate::recording::text::{Content, content};
use crate::switch_event::{self, Raw, SchedEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TracefsEvent {
    /// Something that recordings tell as well.
    Raw(Raw),
    Started {
        at: Instant,
        parent: u32,
        tid: u32,
        is_thread: bool,
    },
    Executed {
        at: Instant,
        pid: u32,
        comm: Name,
    },
    /// This number of events was lost, or cannot be read.
    Lost(u64),
}

#[derive(Debug, Default)]
pub(super) struct Text {
    begun: Vec<u8>,
}

impl Text {
    pub(super) fn take(&mut self, piece: &[u8], said: &mut Vec<TracefsEvent>) {
        self.begun.extend_from_slice(piece);
        let Some(end) = self.begun.iter().rposition(|&byte| byte == b'\n') else {
            return;
        };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        said.extend(String::from_utf8_lossy(&whole).lines().filter_map(said_in));
    }
}

fn said_in(text: &str) -> Option<TracefsEvent> {
    let head = match content(text) {
        Content::Event(head) => head,
        Content::Lost(count) => return Some(TracefsEvent::Lost(count)),
        // A name with a line break in it makes two lines of one event.
        Content::Unknown => return Some(TracefsEvent::Lost(1)),
        Content::LostBefore(_) | Content::Nothing => return None,
    };
    let (name, fields) = (head.name, head.fields);
    let understood = match name {
        "task_newtask" => new_task(fields).map(|(tid, is_thread)| TracefsEvent::Started {
            at: head.at,
            parent: head.tid,
            tid,
            is_thread,
        }),
        _ => {
            let waker = if head.by_thread { head.tid } else { 0 };
            switch_event::parse(name, fields, waker).map(|what| match what {
                SchedEvent::Renamed { task } if name == "sched_process_exec" => {
                    TracefsEvent::Executed {
                        at: head.at,
                        pid: task.tid,
                        comm: task.comm,
                    }
                }
                what => TracefsEvent::Raw(Raw {
                    at: head.at,
                    cpu: head.cpu,
                    current: head.tid,
                    what,
                }),
            })
        }
    };
    Some(understood.unwrap_or(TracefsEvent::Lost(1)))
}

/// `pid=7 comm=NAME clone_flags=3d0f00 oom_score_adj=0`: the task, and whether it is of the same
/// process.
fn new_task(fields: &str) -> Option<(u32, bool)> {
    let (tid, rest) = fields.strip_prefix("pid=")?.split_once(" comm=")?;
    let (_, flags) = rest.rsplit_once(" clone_flags=")?;
    let flags = u64::from_str_radix(flags.split(' ').next()?, 16).ok()?;
    Some((tid.parse().ok()?, flags & libc::CLONE_THREAD as u64 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch_event::{Mention, WakeupKind};

    fn said(text: &str) -> Vec<TracefsEvent> {
        let mut said = Vec::new();
        Text::default().take(text.as_bytes(), &mut said);
        said
    }

    #[test]
    fn what_comes_in_pieces_is_what_comes_at_once() {
        let text = "          <idle>-0       [001] d.h5. 10.000001: sched_waking: comm=a b pid=7 prio=120 target_cpu=001\n\
            CPU:0 [LOST 12 EVENTS]\n\
             bash-9       [000] ..... 10.000002: task_newtask: pid=12 comm=bash clone_flags=3d0f00 oom_score_adj=0\n\
             bash-9       [000] ..... 10.000003: task_newtask: pid=13 comm=a=b clone_flags=1200011 oom_score_adj=0\n\
             true-13      [000] ..... 10.000004: sched_process_exec: filename=/bin/true pid=13 old_pid=14\n";
        let whole = said(text);
        let started = |us: u64, tid, is_thread| TracefsEvent::Started {
            at: Instant::from_ns(us * 1000),
            parent: 9,
            tid,
            is_thread,
        };
        let expected = [
            TracefsEvent::Raw(Raw {
                at: Instant::from_ns(10_000_001_000),
                cpu: Some(1),
                current: 0,
                what: SchedEvent::Wakeup {
                    kind: WakeupKind::Waking,
                    task: Mention {
                        tid: 7,
                        comm: Name::from("a b"),
                    },
                    waker: 0,
                },
            }),
            TracefsEvent::Lost(12),
            started(10_000_002, 12, true),
            started(10_000_003, 13, false),
            TracefsEvent::Executed {
                at: Instant::from_ns(10_000_004_000),
                pid: 13,
                comm: Name::from("true"),
            },
        ];
        assert_eq!(whole, expected);
        for at in 0..text.len() {
            let (mut pieces, mut both) = (Text::default(), Vec::new());
            let (first, second) = text.as_bytes().split_at(at);
            pieces.take(first, &mut both);
            pieces.take(second, &mut both);
            assert_eq!(both, whole, "{at}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_counts_as_lost() {
        let name_with_break = "a-7 [000] d..2. 10.000001: sched_switch: prev_comm=a\nb prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=c next_pid=8 next_prio=120\n";
        assert_eq!(
            said(name_with_break),
            [TracefsEvent::Lost(1), TracefsEvent::Lost(1)]
        );
        let flags =
            "a-7 [000] ..... 10.000001: task_newtask: pid=7 comm=a clone_flags=x oom_score_adj=0\n";
        assert_eq!(said(flags), [TracefsEvent::Lost(1)]);
    }
}
