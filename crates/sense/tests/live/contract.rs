use std::thread;

use onbeat_model::{Burst, Event, Follow, Sensor, Span, Task};
use onbeat_sense::tracer::{self, Tracer, TracerKind, Wants};

use crate::following::tracked;
use crate::role::{Role, alive_after, bursts_of, heard, heard_to_the_end};

const ACTIVATIONS: usize = 101;
const THREADS: usize = 500;

/// One of each kind that works here; what a user's machine cannot have is skipped, with the reason.
pub(crate) fn tracers() -> Vec<Tracer> {
    let wants = Wants {
        bursts: true,
        running: true,
        ..Wants::default()
    };
    let start = |kind| match tracer::start(&[kind], &wants) {
        Ok(started) => Some(started.tracer),
        Err(error) if std::env::var_os("CI").is_some() => panic!("{kind}: {error}"),
        Err(error) => {
            let test = thread::current();
            println!("skipped: {}: {error}", test.name().unwrap_or("contract"));
            None
        }
    };
    [TracerKind::Bpf, TracerKind::Tracefs, TracerKind::Perf]
        .into_iter()
        .filter_map(start)
        .collect()
}

#[test]
fn a_prime_number_of_activations_is_counted_by_each_tracer() {
    for mut tracer in tracers() {
        let mut role = Role::tracked_by(&mut tracer);
        let before = role.account_ns();
        for _ in 0..ACTIVATIONS {
            role.ask(b'c');
        }
        let account = Span::from_ns(role.account_ns() - before);
        let kind = tracer.kind();
        let events = heard(&mut tracer);
        let bursts = bursts_of(&events, role.id());
        assert_eq!(bursts.len(), ACTIVATIONS, "{kind}");
        assert_eq!(events.len(), 1 + ACTIVATIONS, "{kind}: {events:?}");
        for pair in bursts.windows(2) {
            assert!(pair[0].blocked <= pair[1].woke, "{kind}: {pair:?}");
        }
        let is_in_order = |b: &Burst| {
            b.woke <= b.first_ran && b.first_ran <= b.blocked && b.executed <= b.response()
        };
        assert!(bursts.iter().all(is_in_order), "{kind}: {bursts:?}");
        // By switches the way to the CPU and from it does not count, by the account it does. So
        // each works for a while.
        let executed: Span = bursts.iter().map(|b| b.executed).sum();
        assert!(
            executed * 4 >= account * 3,
            "{kind}: {executed} of {account}"
        );
        let told = tracer.executed(role.id());
        assert_eq!(told, Some(Span::from_ns(role.account_ns())), "{kind}");
    }
}

#[test]
fn five_hundred_threads_come_and_go_and_each_is_heard_by_each_tracer() {
    for mut tracer in tracers() {
        let mut role = Role::tracked_by(&mut tracer);
        role.dismiss_after(b't');
        let kind = tracer.kind();
        let events = heard_to_the_end(&mut tracer);
        let tasks = tracked(&events);
        assert_eq!(tasks.len(), 1 + THREADS, "{kind}");
        assert!(tasks.iter().all(|task| task.pid == role.pid()), "{kind}");
        assert_eq!(alive_after(&events), [], "{kind}");
        for task in tasks {
            assert!(!bursts_of(&events, task.id).is_empty(), "{kind}: {task:?}");
        }
        let lost = |event: &Event| matches!(event, Event::Lost { .. });
        assert!(!events.iter().any(lost), "{kind}");
    }
}

#[test]
fn children_are_followed_by_each_tracer_if_asked_and_only_then() {
    for follow in [Follow::Alone, Follow::Threads, Follow::Children] {
        for mut tracer in tracers() {
            let mut role = Role::start();
            tracer.track(role.pid(), follow).unwrap();
            role.dismiss_after(b'f');
            let kind = tracer.kind();
            let events = heard_to_the_end(&mut tracer);
            let others: Vec<Task> = tracked(&events)
                .into_iter()
                .filter(|task| task.pid != role.pid())
                .collect();
            assert_eq!(alive_after(&events), [], "{kind}");
            match follow {
                Follow::Alone | Follow::Threads => assert_eq!(others, [], "{kind}"),
                Follow::Children => {
                    assert_eq!(others.len(), 1, "{kind}: {others:?}");
                    assert!(!bursts_of(&events, others[0].id).is_empty(), "{kind}");
                }
            }
        }
    }
}

#[test]
fn a_name_and_an_exec_are_told_by_each_tracer_of_the_same_task() {
    for mut tracer in tracers() {
        let mut role = Role::tracked_by(&mut tracer);
        let id = role.id();
        role.ask(b'n');
        role.tell(b'x');
        role.ask(b'e');
        role.dismiss();
        let kind = tracer.kind();
        let events = heard_to_the_end(&mut tracer);
        let names = events.iter().filter_map(|event| match event {
            Event::Renamed { task, .. } => Some((task.id, task.comm.to_text())),
            _ => None,
        });
        let expected = ["renamed", "cat"].map(|name| (id, name.to_owned()));
        assert_eq!(names.collect::<Vec<_>>(), expected, "{kind}");
        assert_eq!(tracked(&events).len(), 1, "{kind}");
        assert_eq!(alive_after(&events), [], "{kind}");
    }
}

#[test]
fn a_thread_that_calls_exec_goes_on_under_the_leaders_number_for_each_tracer() {
    for mut tracer in tracers() {
        let mut role = Role::tracked_by(&mut tracer);
        let leader = role.id();
        role.tell(b'X');
        role.ask(b'e');
        role.ask(b'e');
        let kind = tracer.kind();
        let events = heard(&mut tracer);
        assert_eq!(alive_after(&events), [leader], "{kind}: {events:?}");
        role.ask(b'e');
        let after = heard(&mut tracer);
        assert_eq!(bursts_of(&after, leader).len(), 1, "{kind}: {after:?}");
        role.dismiss();
        let last = heard_to_the_end(&mut tracer);
        assert!(
            matches!(last.last(), Some(Event::Exited { task, .. }) if *task == leader),
            "{kind}: {last:?}"
        );
    }
}

#[test]
fn what_each_tracer_no_longer_tracks_is_heard_no_more_until_it_is_tracked_again() {
    for mut tracer in tracers() {
        let kind = tracer.kind();
        let mut role = Role::tracked_by(&mut tracer);
        role.ask(b'e');
        tracer.untrack(&[role.id()]).unwrap();
        role.ask(b'e');
        assert_eq!(heard(&mut tracer), [], "{kind}");

        tracer.track(role.pid(), Follow::Threads).unwrap();
        role.ask(b'e');
        let events = heard(&mut tracer);
        assert_eq!(tracked(&events).len(), 1, "{kind}");
        assert_eq!(bursts_of(&events, role.id()).len(), 1, "{kind}");
    }
}

#[test]
fn a_thread_that_is_gone_cannot_be_tracked_by_any_tracer() {
    for mut tracer in tracers() {
        let mut role = Role::start();
        role.dismiss();
        let error = tracer.track(role.pid(), Follow::Threads).unwrap_err();
        assert!(error.to_string().contains("ps -eL"), "{error}");
    }
}
