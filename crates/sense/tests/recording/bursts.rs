use onbeat_model::{Burst, Event, Instant, Span, TaskId};
use onbeat_sense::recording::Recording;

use crate::{bursts, check, read_bytes};

/// Reads ftrace lines that are written short: who runs, the CPU, the time in us, and `wakeup TID`,
/// `waking TID`, `switch FROM STATE TO` or another event.
fn ftrace(lines: &str) -> Recording {
    let mut text = String::from("# tracer: nop\n");
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [current, cpu, us, event] = words[..] else {
            panic!("{line}");
        };
        if current.starts_with("CPU:") {
            text += &format!("{line}\n");
            continue;
        }
        let event = match event.split(' ').collect::<Vec<_>>()[..] {
            [kind @ ("wakeup" | "waking"), tid] => {
                format!("sched_{kind}: comm=t{tid} pid={tid} prio=120 target_cpu=000")
            }
            ["switch", from, state, to] => format!(
                "sched_switch: prev_comm=t{from} prev_pid={from} prev_prio=120 prev_state={state} \
                 ==> next_comm=t{to} next_pid={to} next_prio=120"
            ),
            _ => event.to_owned(),
        };
        let flags = if current == "0" { "dNh4." } else { "d..2." };
        text += &format!("  t-{current} [00{cpu}] {flags} 1.{us:0>6}: {event}\n");
    }
    let recording = read_bytes(text).unwrap();
    check(&recording);
    recording
}

fn us(us: u64) -> Instant {
    Instant::from_ns(1_000_000_000 + us * 1_000)
}

fn burst(tid: u32, woke: u64, first_ran: u64, blocked: u64, executed: u64) -> Burst {
    Burst {
        first_ran: us(first_ran),
        blocked: us(blocked),
        ..Burst::alone(TaskId::recorded(tid), us(woke), Span::from_us(executed))
    }
}

#[test]
fn bursts_are_built_of_wakeups_and_switches_also_where_some_are_hidden() {
    let by_9 = Burst {
        waker: 9,
        ..burst(7, 100, 110, 150, 40)
    };
    let by_5 = [(100, 100, 100, 0), (200, 210, 250, 40)].map(|(woke, ran, blocked, executed)| {
        let waker = 5;
        Burst {
            waker,
            ..burst(7, woke, ran, blocked, executed)
        }
    });
    let cases: [(&str, &str, &[Burst]); 10] = [
        (
            "a waking and its wakeup are one, and the waker is who wrote it",
            "9 1 100 waking 7
             0 0 103 wakeup 7
             0 0 110 switch 0 R 7
             7 0 150 switch 7 D 0",
            &[by_9],
        ),
        (
            "without switches each wakeup is a burst of no length",
            "0 0 100 waking 7
             0 0 101 wakeup 7
             0 0 200 waking 7
             0 0 201 wakeup 7
             0 0 300 waking 7",
            &[100, 200, 300].map(|at| burst(7, at, at, at, 0)),
        ),
        (
            "a switch without a wakeup begins one once the thread was seen to sleep",
            "0 0 100 switch 0 R 7
             7 0 150 switch 7 S 0
             0 0 200 switch 0 R 7
             7 0 260 switch 7 S 0",
            &[burst(7, 200, 200, 260, 60)],
        ),
        (
            "a thread woken twice before it ran had one that nobody saw",
            "5 0 100 wakeup 7
             5 0 200 wakeup 7
             5 0 210 switch 5 R 7
             7 0 250 switch 7 S 5",
            &by_5,
        ),
        (
            "a thread that an idle CPU woke has run since then if its switch in is hidden",
            "0 0 100 wakeup 7
             7 0 150 switch 7 S 0",
            &[burst(7, 100, 100, 150, 50)],
        ),
        (
            "a thread that writes an event has run since then if its switch in is hidden",
            "0 1 100 wakeup 7
             7 0 130 sys_enter: NR 1 (2, 3, 4, 5, 6, 7)
             7 0 150 switch 7 S 0",
            &[burst(7, 100, 130, 150, 20)],
        ),
        (
            "a thread woken on its CPU by another had blocked at the last sign of it",
            "0 0 100 wakeup 7
             0 0 110 switch 0 R 7
             7 0 140 sys_enter: NR 1 (2, 3)
             0 0 300 wakeup 7
             0 0 310 switch 0 R 7
             7 0 350 switch 7 S 0",
            &[burst(7, 100, 110, 140, 30), burst(7, 300, 310, 350, 40)],
        ),
        (
            "a thread whose CPU shows another one has left it unseen",
            "0 0 100 wakeup 7
             0 0 110 switch 0 R 7
             5 0 200 switch 5 S 0
             0 1 300 wakeup 7
             0 1 310 switch 0 R 7
             7 1 350 switch 7 S 0",
            &[burst(7, 100, 110, 110, 0), burst(7, 300, 310, 350, 40)],
        ),
        (
            "a wakeup of a thread that is running is none of its own",
            "0 0 100 wakeup 7
             0 0 110 switch 0 R 7
             5 1 130 wakeup 7
             7 0 150 switch 7 S 0",
            &[burst(7, 100, 110, 150, 40)],
        ),
        (
            "times that run backwards are sorted",
            "7 0 150 switch 7 S 0
             0 0 110 switch 0 R 7
             0 0 100 wakeup 7",
            &[burst(7, 100, 110, 150, 40)],
        ),
    ];
    for (what, lines, expected) in cases {
        let recording = ftrace(lines);
        assert_eq!(bursts(&recording), expected, "{what}");
        // One that was only seen beside it is left out.
        assert!(
            recording.tasks.iter().all(|task| task.id.tid == 7),
            "{what}"
        );
    }
}

#[test]
fn a_thread_that_is_preempted_is_told_so_by_the_number_of_its_state() {
    const PREEMPTED: [u32; 4] = [0, 256, 4096, 4097];
    for state in PREEMPTED.into_iter().chain([1, 64, 1026]) {
        let recording = ftrace(&format!(
            "0 0 100 wakeup 7
             0 0 110 switch 0 0 7
             7 0 150 switch 7 {state} 8
             8 0 250 switch 8 1 7
             7 0 260 switch 7 1 8"
        ));
        let first = bursts(&recording)[0];
        let preempted = u32::from(PREEMPTED.contains(&state));
        let executed = Span::from_us([40, 50][preempted as usize]);
        assert_eq!((first.preempted, first.executed), (preempted, executed));
    }
}

#[test]
fn lost_events_are_counted_and_the_bursts_around_the_gap_are_left_out() {
    let recording = ftrace(
        "0 0 100 wakeup 7
         0 0 110 switch 0 R 7
         CPU:0 [LOST 12 EVENTS]
         7 0 150 switch 7 S 0
         0 0 200 wakeup 7
         0 0 210 switch 0 R 7
         7 0 250 switch 7 S 0",
    );
    assert_eq!(bursts(&recording), [burst(7, 200, 210, 250, 40)]);
    assert_eq!(recording.lost, 12);
    let warning = &recording.warnings[0];
    assert!(warning.contains("lost 12 events"), "{warning}");
    let (at, count) = (us(110), 12);
    assert!(recording.events.contains(&Event::Lost { at, count }));
}

#[test]
fn an_exit_ends_the_burst_and_a_new_thread_may_have_the_same_number() {
    let recording = ftrace(
        "0 0 100 wakeup 7
         0 0 110 switch 0 R 7
         7 0 140 sched_process_exit: comm=t7 pid=7 prio=120
         7 0 150 switch 7 X 0
         5 1 200 sched_process_fork: comm=t5 pid=5 child_comm=t5 child_pid=7
         5 1 201 sched_wakeup_new: comm=t5 pid=7 prio=120 target_cpu=001
         5 1 220 switch 5 S 7
         7 1 260 switch 7 S 0",
    );
    let of_7 = recording
        .events
        .iter()
        .filter(|event| event.task() == Some(TaskId::recorded(7)));
    let kinds: Vec<_> = of_7
        .map(|event| match event {
            Event::Tracked { .. } => "tracked",
            Event::Renamed { .. } => "renamed",
            Event::Burst(_) => "burst",
            Event::Exited { .. } => "exited",
            _ => "other",
        })
        .collect();
    let expected = ["tracked", "burst", "exited", "tracked", "renamed", "burst"];
    assert_eq!(kinds, expected);
    let by_5 = Burst {
        waker: 5,
        ..burst(7, 201, 220, 260, 40)
    };
    assert_eq!(bursts(&recording), [burst(7, 100, 110, 140, 30), by_5]);
}
