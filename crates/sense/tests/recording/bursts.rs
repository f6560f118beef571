//! How bursts are built from raw events: each case with the few lines that make it.

use onbeat_model::{Burst, Event, Instant, Span, TaskId};
use onbeat_sense::recording::Recording;

use crate::{bursts, check, read_bytes};

/// Reads ftrace lines; each begins with `CPU us`, and the thread that ran there is given by its
/// number.
fn ftrace(lines: &str) -> Recording {
    let mut text = String::from("# tracer: nop\n");
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with("CPU:") {
            text.push_str(line);
        } else {
            let mut words = line.splitn(4, ' ');
            let (current, cpu) = (words.next().unwrap(), words.next().unwrap());
            let (us, event) = (words.next().unwrap(), words.next().unwrap());
            let flags = if current == "0" { "dNh4." } else { "d..2." };
            text.push_str(&format!(
                "  t-{current} [00{cpu}] {flags} 1.{us:0>6}: {event}"
            ));
        }
        text.push('\n');
    }
    let recording = read_bytes(text).unwrap();
    check(&recording);
    recording
}

fn wakeup(tid: u32) -> String {
    format!("sched_wakeup: comm=t{tid} pid={tid} prio=120 target_cpu=000")
}

fn waking(tid: u32) -> String {
    format!("sched_waking: comm=t{tid} pid={tid} prio=120 target_cpu=000")
}

fn switch(from: u32, state: &str, to: u32) -> String {
    format!(
        "sched_switch: prev_comm=t{from} prev_pid={from} prev_prio=120 prev_state={state} ==> \
         next_comm=t{to} next_pid={to} next_prio=120"
    )
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
fn a_burst_runs_from_wakeup_to_block_and_counts_only_the_time_on_a_cpu() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n0 0 110 {}\n7 0 150 {}\n8 0 200 {}\n7 0 230 {}",
        wakeup(7),
        switch(0, "R", 7),
        switch(7, "R+", 8),
        switch(8, "S", 7),
        switch(7, "S", 0),
    ));
    let expected = Burst {
        preempted: 1,
        ..burst(7, 100, 110, 230, 40 + 30)
    };
    assert_eq!(bursts(&recording), [expected]);
}

#[test]
fn a_waking_and_its_wakeup_are_one_and_the_waker_is_who_wrote_it() {
    let recording = ftrace(&format!(
        "9 1 100 {}\n0 0 103 {}\n0 0 110 {}\n7 0 150 {}",
        waking(7),
        wakeup(7),
        switch(0, "R", 7),
        switch(7, "D", 0),
    ));
    let expected = Burst {
        waker: 9,
        ..burst(7, 100, 110, 150, 40)
    };
    assert_eq!(bursts(&recording), [expected]);
}

#[test]
fn without_switches_each_wakeup_is_a_burst_of_no_length() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n0 0 101 {}\n0 0 200 {}\n0 0 201 {}\n0 0 300 {}",
        waking(7),
        wakeup(7),
        waking(7),
        wakeup(7),
        waking(7),
    ));
    let expected = [100, 200, 300].map(|at| burst(7, at, at, at, 0));
    assert_eq!(bursts(&recording), expected);
}

#[test]
fn a_switch_without_a_wakeup_begins_a_burst_once_the_thread_was_seen_to_sleep() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n7 0 150 {}\n0 0 200 {}\n7 0 260 {}",
        switch(0, "R", 7),
        switch(7, "S", 0),
        switch(0, "R", 7),
        switch(7, "S", 0),
    ));
    assert_eq!(bursts(&recording), [burst(7, 200, 200, 260, 60)]);
}

#[test]
fn a_thread_woken_twice_before_it_ran_had_a_burst_that_nobody_saw() {
    let recording = ftrace(&format!(
        "5 0 100 {}\n5 0 200 {}\n5 0 210 {}\n7 0 250 {}",
        wakeup(7),
        wakeup(7),
        switch(5, "R", 7),
        switch(7, "S", 5),
    ));
    let told: Vec<_> = bursts(&recording)
        .into_iter()
        .map(|b| Burst { waker: 0, ..b })
        .collect();
    assert_eq!(
        told,
        [burst(7, 100, 100, 100, 0), burst(7, 200, 210, 250, 40)]
    );
}

#[test]
fn a_thread_that_an_idle_cpu_woke_has_run_since_then_if_its_switch_in_is_hidden() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n7 0 150 {}",
        wakeup(7),
        switch(7, "S", 0)
    ));
    assert_eq!(bursts(&recording), [burst(7, 100, 100, 150, 50)]);
}

#[test]
fn a_thread_that_writes_an_event_has_run_since_then_if_its_switch_in_is_hidden() {
    let recording = ftrace(&format!(
        "0 1 100 {}\n7 0 130 sys_enter: NR 1 (2, 3, 4, 5, 6, 7)\n7 0 150 {}",
        wakeup(7),
        switch(7, "S", 0)
    ));
    assert_eq!(bursts(&recording), [burst(7, 100, 130, 150, 20)]);
}

#[test]
fn a_thread_woken_on_its_cpu_by_another_had_blocked_at_the_last_sign_of_it() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n0 0 110 {}\n7 0 140 sys_enter: NR 1 (2, 3)\n0 0 300 {}\n0 0 310 {}\n7 0 350 {}",
        wakeup(7),
        switch(0, "R", 7),
        wakeup(7),
        switch(0, "R", 7),
        switch(7, "S", 0),
    ));
    let expected = [burst(7, 100, 110, 140, 30), burst(7, 300, 310, 350, 40)];
    assert_eq!(bursts(&recording), expected);
}

#[test]
fn a_thread_whose_cpu_shows_another_one_has_left_it_unseen() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n0 0 110 {}\n5 0 200 {}\n0 1 300 {}\n0 1 310 {}\n7 1 350 {}",
        wakeup(7),
        switch(0, "R", 7),
        switch(5, "S", 0),
        wakeup(7),
        switch(0, "R", 7),
        switch(7, "S", 0),
    ));
    let expected = [burst(7, 100, 110, 110, 0), burst(7, 300, 310, 350, 40)];
    assert_eq!(bursts(&recording), expected);
}

#[test]
fn a_wakeup_of_a_thread_that_is_running_is_no_burst_of_its_own() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n0 0 110 {}\n5 1 130 {}\n7 0 150 {}",
        wakeup(7),
        switch(0, "R", 7),
        wakeup(7),
        switch(7, "S", 0),
    ));
    assert_eq!(bursts(&recording), [burst(7, 100, 110, 150, 40)]);
}

#[test]
fn lost_events_are_counted_and_the_bursts_around_the_gap_are_left_out() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n0 0 110 {}\nCPU:0 [LOST 12 EVENTS]\n7 0 150 {}\n0 0 200 {}\n0 0 210 {}\n7 0 250 {}",
        wakeup(7),
        switch(0, "R", 7),
        switch(7, "S", 0),
        wakeup(7),
        switch(0, "R", 7),
        switch(7, "S", 0),
    ));
    assert_eq!(bursts(&recording), [burst(7, 200, 210, 250, 40)]);
    assert_eq!(recording.lost, 12);
    assert!(
        recording.warnings[0].contains("lost 12 events"),
        "{:?}",
        recording.warnings
    );
    let lost = Event::Lost {
        at: us(110),
        count: 12,
    };
    assert!(recording.events.contains(&lost));
}

#[test]
fn an_exit_ends_the_burst_also_of_a_thread_that_another_was_seen_in_place_of() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n0 0 110 {}\n8 0 130 {}\n7 1 140 sched_process_exit: comm=t7 pid=7 prio=120",
        wakeup(7),
        switch(0, "R", 7),
        switch(8, "S", 0),
    ));
    let told = bursts(&recording);
    let told: Vec<_> = told.into_iter().filter(|b| b.task.tid == 7).collect();
    assert_eq!(told, [burst(7, 100, 110, 110, 0)]);
}

#[test]
fn an_exit_ends_the_burst_and_a_new_thread_may_have_the_same_number() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n0 0 110 {}\n7 0 140 sched_process_exit: comm=t7 pid=7 prio=120\n7 0 150 {}\n\
         5 1 200 sched_process_fork: comm=t5 pid=5 child_comm=t5 child_pid=7\n\
         5 1 201 sched_wakeup_new: comm=t5 pid=7 prio=120 target_cpu=001\n5 1 220 {}\n7 1 260 {}",
        wakeup(7),
        switch(0, "R", 7),
        switch(7, "X", 0),
        switch(5, "S", 7),
        switch(7, "S", 0),
    ));
    let kinds: Vec<_> = (recording.events.iter())
        .filter(|event| event.task() == Some(TaskId::recorded(7)))
        .map(|event| match event {
            Event::Tracked { .. } => "tracked",
            Event::Renamed { .. } => "renamed",
            Event::Burst(_) => "burst",
            Event::Exited { .. } => "exited",
            _ => "other",
        })
        .collect();
    assert_eq!(
        kinds,
        ["tracked", "burst", "exited", "tracked", "renamed", "burst"]
    );
    let told: Vec<_> = bursts(&recording)
        .into_iter()
        .map(|b| Burst { waker: 0, ..b })
        .collect();
    assert_eq!(
        told,
        [burst(7, 100, 110, 140, 30), burst(7, 201, 220, 260, 40)]
    );
}

#[test]
fn times_that_run_backwards_are_sorted() {
    let forward = format!(
        "0 0 100 {}\n0 0 110 {}\n7 0 150 {}",
        wakeup(7),
        switch(0, "R", 7),
        switch(7, "S", 0)
    );
    let backward: Vec<_> = forward.lines().rev().collect();
    assert_eq!(
        bursts(&ftrace(&forward)),
        bursts(&ftrace(&backward.join("\n")))
    );
}

#[test]
fn a_task_that_was_only_seen_beside_the_recorded_ones_is_left_out() {
    let recording = ftrace(&format!(
        "0 0 100 {}\n5 0 110 {}\n7 0 150 {}\n5 0 180 {}",
        wakeup(7),
        switch(5, "R", 7),
        switch(7, "S", 5),
        switch(5, "S", 0),
    ));
    let tids: Vec<_> = recording.tasks.iter().map(|task| task.id.tid).collect();
    assert_eq!(tids, [7]);
}
