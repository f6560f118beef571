use onbeat_model::Span;

use super::*;
use crate::switch_event::WakeupKind;

const PARENT: u32 = 1_000_000_001;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

fn seen(tid: u32, pid: u32) -> ThreadStatus {
    ThreadStatus {
        task: Task {
            id: TaskId {
                tid,
                started_ticks: 5,
            },
            pid,
            comm: Name::from("player"),
        },
        is_asleep: true,
    }
}

fn following(follow: Follow) -> (Followed, Vec<Event>) {
    let (mut followed, mut events) = (Followed::default(), Vec::new());
    followed.track(at(0), seen(PARENT, PARENT), follow, &mut events);
    (followed, events)
}

/// The kernel of a virtual machine was seen to hide each switch from the idle task of its second
/// CPU.
#[test]
fn a_switch_that_the_kernel_hides_came_at_once_if_the_others_are_told() {
    for switches in [true, false] {
        let (mut followed, mut events) = following(Follow::Threads);
        let wakeup = Wakeup {
            at: at(10),
            kind: WakeupKind::Waking,
            waker: 7,
            cpu: Some(0),
            current: 7,
            switches,
        };
        followed.woken(PARENT, wakeup, &mut events);
        followed.seen_running(at(13), PARENT, Some(1));
        followed.off_cpu(at(14), PARENT, false, &mut events);
        let Some(Event::Burst(burst)) = events.last() else {
            panic!("{events:?}");
        };
        let executed = Span::from_ms(if switches { 4 } else { 1 });
        assert_eq!((burst.woke, burst.executed), (at(10), executed));
    }
}

#[test]
fn a_number_that_another_thread_has_now_is_another_task() {
    let (mut followed, mut events) = following(Follow::Threads);
    let mut other = seen(PARENT, PARENT);
    other.task.id.started_ticks = 6;
    followed.track(at(9), other, Follow::Threads, &mut events);
    let kinds: Vec<_> = events[1..]
        .iter()
        .map(|event| {
            (
                event.task().unwrap().started_ticks,
                matches!(event, Event::Exited { .. }),
            )
        })
        .collect();
    assert_eq!(kinds, [(5, true), (6, false)]);
    followed.untrack(seen(PARENT, PARENT).task.id);
    assert!(followed.has(PARENT));
    followed.untrack(other.task.id);
    assert!(!followed.has(PARENT));
}

#[test]
fn after_lost_events_no_burst_is_made_up_and_those_that_are_gone_have_exited() {
    let (mut followed, mut events) = following(Follow::Threads);
    // SAFETY: no arguments, cannot fail.
    let me = ThreadStatus::look(unsafe { libc::gettid() }.unsigned_abs()).unwrap();
    followed.track(at(0), me, Follow::Threads, &mut events);
    let tid = me.task.id.tid;
    followed.on_cpu(at(1), tid, 0, &mut events);
    followed.lost(at(2), 7, &mut events);
    followed.lost(at(2), 3, &mut events);
    followed.off_cpu(at(3), tid, false, &mut events);
    assert!(followed.look_again(at(200), &mut events));
    assert!(followed.has(tid) && !followed.has(PARENT));
    assert!(events.contains(&Event::Lost {
        at: at(2),
        count: 10
    }));
    assert!(!events.iter().any(|event| matches!(event, Event::Burst(_))));
}
