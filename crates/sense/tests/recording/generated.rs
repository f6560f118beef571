use std::fmt::Write;

use onbeat_model::{Burst, Instant, Span, TaskId};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::{bursts, check, read_bytes};

/// One burst: the sleep before it, the wait for the CPU, and its slices, each with the wait after
/// it.
type Made = (u64, u64, Vec<(u64, u64)>);

/// The events of one thread of its own CPU.
fn courses() -> impl Strategy<Value = Vec<Vec<Made>>> {
    let slices = prop::collection::vec((1..5_000_u64, 1..5_000_u64), 1..4);
    let course = prop::collection::vec((1..50_000_u64, 0..5_000_u64, slices), 1..12);
    prop::collection::vec(course, 1..5)
}

/// The bursts of a course, and its lines: time in us, the thread that ran, the event.
fn played(cpu: u32, course: &[Made]) -> (Vec<Burst>, Vec<(u64, u32, String)>) {
    let tid = 100 + cpu;
    let other = 900 + cpu;
    let at = |us: u64| Instant::from_ns(us * 1_000);
    let switch = |from: u32, state: &str, to: u32| {
        format!(
            "sched_switch: prev_comm=x prev_pid={from} prev_prio=120 prev_state={state} ==> \
             next_comm=x next_pid={to} next_prio=120"
        )
    };
    let (mut bursts, mut lines) = (Vec::new(), Vec::new());
    let mut now = 1_000_000;
    for (sleep, wait, slices) in course {
        now += sleep;
        let woke = now;
        let wakeup = format!("sched_wakeup: comm=x pid={tid} prio=120 target_cpu={cpu:03}");
        lines.push((now, other, wakeup));
        now += wait;
        let first_ran = now;
        let mut executed = 0;
        for (n, (runs, waits)) in slices.iter().enumerate() {
            lines.push((now, other, switch(other, "R", tid)));
            now += runs;
            executed += runs;
            let last = n + 1 == slices.len();
            let state = if last { "S" } else { "R+" };
            lines.push((now, tid, switch(tid, state, other)));
            if !last {
                now += waits;
            }
        }
        bursts.push(Burst {
            first_ran: at(first_ran),
            blocked: at(now),
            preempted: slices.len() as u32 - 1,
            ..Burst::alone(TaskId::recorded(tid), at(woke), Span::from_us(executed))
        });
    }
    (bursts, lines)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(2),
        ..ProptestConfig::default()
    })]

    #[test]
    fn bursts_of_a_known_schedule_are_rebuilt_exactly_from_either_text(courses in courses()) {
        let (mut expected, mut lines) = (Vec::new(), Vec::new());
        for (cpu, course) in (0..).zip(&courses) {
            let (bursts, of_cpu) = played(cpu, course);
            expected.extend(bursts);
            lines.extend(of_cpu.into_iter().map(|(us, who, event)| (us, cpu, who, event)));
        }
        expected.sort_by_key(|burst| (burst.blocked, burst.task));
        // Stable: the lines of one CPU keep their order.
        lines.sort_by_key(|line| line.0);
        let (mut ftrace, mut perf) = (String::from("# tracer: nop\n"), String::new());
        for (us, cpu, who, event) in lines {
            let (s, us) = (us / 1_000_000, us % 1_000_000);
            writeln!(ftrace, " x-{who} [{cpu:03}] d.h2. {s}.{us:06}: {event}").unwrap();
            writeln!(perf, " x {who} [{cpu:03}] {s}.{us:06}: sched:{event}").unwrap();
        }
        for text in [ftrace, perf] {
            let recording = read_bytes(text).unwrap();
            check(&recording);
            let mut got = bursts(&recording);
            got.sort_by_key(|burst| (burst.blocked, burst.task));
            prop_assert_eq!(&got, &expected);
        }
    }
}
