//! Crowds of threads, too many to fit, are settled in rounds.

use onbeat_control::{AllocationSettings, Settings, What};
use onbeat_model::{Bandwidth, Event, Instant, Name, Reservation, Span, Task, TaskId};

use crate::kernel::{Asked, Kernel};
use crate::world::{Ran, Script, at_ms, ms, play, play_asking};

const THREADS: u32 = 120;
const PERIOD: Span = Span::from_ms(20);

/// Threads of 200 to 300 us in 20 ms, of which what each needs drifts at its own time; the last 90
/// end at the given time.
fn crowd(most_end: Instant) -> Script {
    let mut script = Script::default();
    for tid in 1..=THREADS {
        let began = at_ms(u64::from(tid) * 3);
        let ends = if tid > 30 { most_end } else { at_ms(8000) };
        script.periodic(tid, PERIOD, (began, ends.min(at_ms(8000))), |job| {
            Span::from_us(200 + (job + u64::from(tid) * 7) % 100)
        });
        if ends < at_ms(8000) {
            script.event(Event::Exited {
                at: ends + ms(30),
                task: TaskId::recorded(tid),
            });
        }
    }
    script
}

fn played(script: Script) -> Ran {
    let ran = play(script, Kernel::with_cpus(1), Settings::default());
    assert!(ran.kernel.most_held <= Bandwidth::from_cpus(0.85));
    ran
}

#[test]
fn hardly_anybodys_budget_changes_for_anothers() {
    let ran = played(crowd(at_ms(9000)));
    let late = ran.kernel.asked.iter().filter(|(at, asked)| {
        *at > at_ms(4000) && *at < at_ms(7900) && matches!(asked, Asked::Reserve(..))
    });
    let changes = late.count();
    assert!(changes < THREADS as usize, "{changes}");
    assert_eq!(ran.report.threads.len(), THREADS as usize);
}

#[test]
fn whose_budget_runs_out_gets_its_share_at_once() {
    let mut script = crowd(at_ms(9000));
    let (own, runs_out) = (200, at_ms(6007));
    script.periodic(own, PERIOD, (at_ms(0), at_ms(8000)), |_| Span::from_us(50));
    script.exhausted(own, runs_out);
    let ran = played(script);
    let entries = ran.of(own);
    let raised = entries.iter().find(|entry| entry.at == runs_out);
    let raised = raised.expect("it is answered in the same turn");
    assert_eq!(raised.what, What::Changed);
    assert_eq!(raised.why.to_string(), "a job ran out of budget");
    let (old, new) = (raised.old.unwrap(), raised.new.unwrap());
    assert!(
        new.runtime() >= old.runtime() + old.runtime() / 2,
        "{old} {new}"
    );
}

#[test]
fn when_most_of_them_have_ended_the_others_get_all_that_they_want_in_the_next_round() {
    let ran = played(crowd(at_ms(5000)));
    for tid in 1..=30 {
        let before = |(at, _): &&(Instant, _)| *at < at_ms(5000);
        let reserves = ran.reserves(tid);
        let (_, last) = reserves.iter().rfind(before).unwrap();
        assert!(last.runtime() < Span::from_us(200), "{tid} {last}");
        let soon = reserves.iter().find(|(at, reservation)| {
            *at <= at_ms(5000 + 30 + 600) && reservation.runtime() > Span::from_us(300)
        });
        assert!(soon.is_some(), "{tid} {reserves:?}");
    }
}

#[test]
fn what_was_asked_for_is_had_whole_in_a_crowd_too() {
    // With the least for each, a hundred and twenty times 0.29%, more than a round hands out.
    let wanted = Reservation::implicit(ms(25), ms(50)).unwrap();
    let asks = Task {
        id: TaskId::recorded(200),
        pid: 200,
        comm: Name::from("asks"),
    };
    let mut granted = false;
    let ran = play_asking(
        crowd(at_ms(9000)),
        Kernel::with_cpus(1),
        Settings {
            allocation: AllocationSettings {
                minimum: Bandwidth::from_cpus(0.0029),
                ..AllocationSettings::default()
            },
            ..Settings::default()
        },
        |loop_, now| {
            if now >= at_ms(4000) && !granted {
                loop_.grant(asks, wanted, now).unwrap();
                granted = true;
            }
        },
    );
    assert_eq!(ran.reserves(200).len(), 1, "{:?}", ran.reserves(200));
    assert_eq!(ran.reserves(200)[0].1, wanted);
    assert!(ran.kernel.most_held <= Bandwidth::from_cpus(0.85));
}

/// `threads` threads of 30 us in 20 ms, which all fit.
fn roomy(threads: u32) -> Script {
    let mut script = Script::default();
    let from = |tid: u32| at_ms(u64::from(tid) * 3 % 20);
    for tid in 1..=threads {
        script.periodic(tid, PERIOD, (from(tid), at_ms(8000)), |_| Span::from_us(30));
    }
    script
}

#[test]
fn of_a_crowd_nothing_is_lost_that_was_put_by() {
    let ran = play(roomy(150), Kernel::with_cpus(1), Settings::default());
    assert_eq!(ran.report.threads.len(), 150);
    for thread in &ran.report.threads {
        assert_eq!(thread.executed, Span::from_us(30 * 400));
        assert!(thread.jobs > 380, "{}", thread.jobs);
    }
}

/// How many bursts of a thread are heard together, after all have settled.
fn most_bursts_heard_in_a_turn(threads: u32) -> u64 {
    let (mut heard, mut most) = (0, 0);
    play_asking(
        roomy(threads),
        Kernel::with_cpus(1),
        Settings::default(),
        |loop_, now| {
            let view = loop_
                .view()
                .find(|view| view.task.id == TaskId::recorded(5));
            let bursts = view.map_or(0, |view| view.bursts);
            if now > at_ms(3000) && now < at_ms(7900) {
                most = most.max(bursts - heard);
            }
            heard = bursts;
        },
    );
    most
}

#[test]
fn few_threads_are_heard_at_each_turn_and_those_of_a_crowd_now_and_then() {
    assert!(most_bursts_heard_in_a_turn(99) <= 2);
    let of_crowd = most_bursts_heard_in_a_turn(150);
    assert!((5..=10).contains(&of_crowd), "{of_crowd}");
}

#[test]
fn who_asks_how_things_stand_in_a_crowd_is_told_all() {
    let mut asked = 0;
    play_asking(
        roomy(150),
        Kernel::with_cpus(1),
        Settings::default(),
        |loop_, now| {
            if now < at_ms(3000) || now > at_ms(7900) {
                return;
            }
            loop_.hear_all(now);
            for view in loop_.view() {
                let first = at_ms(u64::from(view.task.id.tid) * 3 % 20);
                let woken = now.since(first).as_ns() / PERIOD.as_ns() + 1;
                assert!(view.bursts >= woken - 1 && view.bursts <= woken);
                asked += 1;
            }
        },
    );
    assert!(asked > 150 * 100, "{asked}");
}

#[test]
fn whose_budget_runs_out_in_a_crowd_that_fits_is_answered_in_the_same_turn_each_time() {
    let mut script = roomy(150);
    let (own, times) = (200, [at_ms(6007), at_ms(6027)]);
    script.periodic(own, PERIOD, (at_ms(0), at_ms(8000)), |_| Span::from_us(50));
    for at in times {
        script.exhausted(own, at);
    }
    let ran = play(script, Kernel::with_cpus(1), Settings::default());
    for at in times {
        let entries = ran.of(own);
        let raised = entries.iter().find(|entry| entry.at == at);
        let raised = raised.expect("it is answered in the same turn");
        assert!(raised.new.unwrap().runtime() > raised.old.unwrap().runtime());
    }
}
