use onbeat_model::{Event, Flow, Follow, Sensor, Span, TaskId};
use onbeat_sense::recording::{Replay, read};

use crate::{read_bytes, task_of, trace};

fn drained(replay: &mut Replay, step: Span) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..100_000 {
        let before = replay.now();
        let flow = replay.poll(step, &mut events).unwrap();
        assert!(replay.now().since(before) <= step);
        assert!(events.last().is_none_or(|event| event.at() <= replay.now()));
        if flow == Flow::Ended {
            return events;
        }
    }
    panic!("the recording never ends");
}

#[test]
fn steps_of_any_size_give_the_same_events_and_the_clock_keeps_to_them() {
    let recording = read(trace("apps/rtappTableI.l0.txt.gz")).unwrap();
    for step in [Span::from_ms(1), Span::from_ms(37), Span::from_secs(60)] {
        let mut replay = Replay::new(recording.clone());
        assert_eq!(replay.now(), recording.began);
        replay.track_all();
        assert_eq!(drained(&mut replay, step), recording.events);
    }
}

#[test]
fn only_tracked_threads_are_reported_and_an_untracked_one_no_longer() {
    let recording = read(trace("apps/rtappTableI.l0.txt.gz")).unwrap();
    let [a, b] = ["a", "b"].map(|comm| task_of(&recording, comm));
    let mut replay = Replay::new(recording.clone());
    replay.track(a.tid, Follow::Threads).unwrap();
    replay.track(b.tid, Follow::Threads).unwrap();
    let mut events = Vec::new();
    replay.poll(Span::from_secs(6), &mut events).unwrap();
    assert!(
        events
            .iter()
            .all(|event| [Some(a), Some(b)].contains(&event.task()))
    );
    replay.untrack(&[b]).unwrap();
    let rest = drained(&mut replay, Span::from_secs(1));
    assert!(!rest.is_empty() && rest.iter().all(|event| event.task() == Some(a)));
}

#[test]
fn threads_of_the_process_are_followed_and_descendants_if_asked_for() {
    let open = || Replay::open(trace("perf/rtapp10.sched.txt.gz")).unwrap();
    let tid_of = |comm| task_of(open().recording(), comm).tid;
    let mut replay = open();
    replay.track(tid_of("rt-app"), Follow::Threads).unwrap();
    let heard = drained(&mut replay, Span::from_secs(1));
    assert!(
        heard
            .iter()
            .any(|e| e.task() == Some(TaskId::recorded(tid_of("ten"))))
    );

    let forked = "p-5 [000] 1.000000: sched_process_fork: comm=p pid=5 child_comm=p child_pid=6\n\
                  p-6 [000] 1.000001: sched_process_fork: comm=p pid=6 child_comm=p child_pid=7\n";
    for (follow, expected) in [(Follow::Threads, vec![6]), (Follow::Children, vec![6, 7])] {
        let mut replay = Replay::new(read_bytes(forked).unwrap());
        replay.track(6, follow).unwrap();
        let heard = drained(&mut replay, Span::from_secs(1));
        let tids: Vec<_> = heard.iter().filter_map(|e| Some(e.task()?.tid)).collect();
        assert_eq!(tids, expected);
    }
}
