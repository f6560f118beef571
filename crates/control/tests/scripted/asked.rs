//! Requests to the loop from outside, while it keeps others on the beat.

use onbeat_control::{Settings, What, Why};
use onbeat_model::{Bandwidth, Instant, Name, Refusal, Reservation, Task, TaskId};

use crate::kernel::{Asked, Kernel};
use crate::world::{Ran, Script, at_ms, ms, play_asking};

fn of(runtime_ms: u64, period_ms: u64) -> Reservation {
    Reservation::implicit(ms(runtime_ms), ms(period_ms)).unwrap()
}

fn task(tid: u32) -> Task {
    Task {
        id: TaskId::recorded(tid),
        pid: tid,
        comm: Name::from("asks"),
    }
}

/// Thread 7 works for 16 ms of each 40 ms, for ten seconds.
fn film() -> Script {
    let mut script = Script::default();
    script.tracked(7, "player", Instant::ZERO);
    script.periodic(7, ms(40), (Instant::ZERO, at_ms(10_000)), |_| ms(16));
    script
}

/// Does `what` once, in the first turn at or after `at`.
fn once(at: Instant, now: Instant, done: &mut bool) -> bool {
    let due = now >= at && !*done;
    *done |= due;
    due
}

fn held_at(ran: &Ran, tid: u32, at: Instant) -> Option<Reservation> {
    let entries = ran.of(tid);
    let mut changes = entries
        .iter()
        .filter(|e| e.at <= at && e.what != What::Refused);
    changes.next_back().and_then(|entry| entry.new)
}

#[test]
fn what_was_asked_for_is_given_whole_and_those_with_a_rhythm_make_room() {
    let (mut granted, mut taken) = (false, false);
    let ran = play_asking(
        film(),
        Kernel::with_cpus(1),
        Settings::default(),
        |loop_, now| {
            if once(at_ms(4000), now, &mut granted) {
                loop_.grant(task(9), of(6, 10), now).unwrap();
            }
            if once(at_ms(7000), now, &mut taken) {
                loop_.take_back(TaskId::recorded(9), now);
            }
        },
    );
    let before = held_at(&ran, 7, at_ms(3900)).unwrap();
    assert!(before.bandwidth() > Bandwidth::from_cpus(0.4), "{before}");
    assert_eq!(held_at(&ran, 9, at_ms(6900)), Some(of(6, 10)));
    let squeezed = held_at(&ran, 7, at_ms(6900)).unwrap();
    assert!(
        squeezed.bandwidth() <= Bandwidth::from_cpus(0.25),
        "{squeezed}"
    );
    assert_eq!(held_at(&ran, 9, at_ms(9900)), None);
    let after = held_at(&ran, 7, at_ms(9900)).unwrap();
    assert!(after.bandwidth() > Bandwidth::from_cpus(0.4), "{after}");
    assert!(ran.kernel.most_held <= Bandwidth::from_cpus(0.85));
}

#[test]
fn what_does_not_fit_beside_the_rest_is_refused_and_changes_nothing() {
    let mut asked = false;
    let ran = play_asking(
        film(),
        Kernel::with_cpus(1),
        Settings::default(),
        |loop_, now| {
            if once(at_ms(4000), now, &mut asked) {
                loop_.grant(task(8), of(3, 10), now).unwrap();
                let refusal = loop_.grant(task(9), of(6, 10), now).unwrap_err();
                assert!(matches!(refusal, Refusal::NoRoom { .. }), "{refusal}");
                assert!(loop_.tasks().all(|(task, _)| task.id.tid != 9));
                let refusal = loop_.grant(task(8), of(9, 10), now).unwrap_err();
                assert!(matches!(refusal, Refusal::NoRoom { .. }), "{refusal}");
            }
        },
    );
    assert_eq!(held_at(&ran, 8, at_ms(9900)), Some(of(3, 10)));
    assert!(ran.of(9).is_empty());
}

#[test]
fn a_thread_that_asked_keeps_that_whatever_its_rhythm_and_gets_its_rhythms_share_afterwards() {
    let (mut granted, mut taken) = (false, false);
    let ran = play_asking(
        film(),
        Kernel::with_cpus(2),
        Settings::default(),
        |loop_, now| {
            if once(at_ms(3000), now, &mut granted) {
                let seven = Task { pid: 1, ..task(7) };
                loop_.grant(seven, of(1, 10), now).unwrap();
            }
            if once(at_ms(6000), now, &mut taken) {
                loop_.take_back(TaskId::recorded(7), now);
            }
        },
    );
    for at in [3100, 4000, 5900] {
        assert_eq!(held_at(&ran, 7, at_ms(at)), Some(of(1, 10)), "{at}");
    }
    let after = held_at(&ran, 7, at_ms(6100)).unwrap();
    assert!(after.bandwidth() > Bandwidth::from_cpus(0.4), "{after}");
}

#[test]
fn a_thread_that_is_forgotten_gets_back_what_it_had_and_is_heard_of_no_more() {
    let mut forgotten = false;
    let mut script = film();
    // Something else goes on, so that there are turns.
    script.periodic(8, ms(40), (Instant::ZERO, at_ms(11_000)), |_| ms(1));
    let ran = play_asking(
        script,
        Kernel::with_cpus(2),
        Settings::default(),
        |loop_, now| {
            if once(at_ms(10_100), now, &mut forgotten) {
                loop_.forget(TaskId::recorded(7), now);
                assert!(loop_.tasks().all(|(task, _)| task.id.tid != 7));
            }
        },
    );
    let last = ran.of(7).last().copied().unwrap();
    assert_eq!(last.what, What::Released);
    assert!(
        last.why.to_string().contains("no client tracks it"),
        "{}",
        last.why
    );
    assert!(ran.kernel.held.is_empty());
}

#[test]
fn one_that_cannot_be_given_back_yet_is_forgotten_when_it_can() {
    let mut kernel = Kernel::with_cpus(2);
    kernel.release_answers.push_back(Refusal::Settling {
        until: at_ms(10_500),
    });
    let mut forgotten = false;
    let mut script = film();
    // Something else goes on, so that there are turns.
    script.periodic(8, ms(40), (Instant::ZERO, at_ms(11_000)), |_| ms(1));
    let ran = play_asking(script, kernel, Settings::default(), |loop_, now| {
        if once(at_ms(10_100), now, &mut forgotten) {
            loop_.forget(TaskId::recorded(7), now);
            assert!(loop_.held().any(|(task, _)| task.id.tid == 7));
        }
    });
    let released = ran
        .of(7)
        .into_iter()
        .find(|entry| entry.what == What::Released);
    assert!(
        released.is_some_and(|entry| entry.at >= at_ms(10_500)),
        "{released:?}"
    );
}

#[test]
fn a_thread_whose_owner_may_not_have_more_gets_that_much_and_nobody_else_less() {
    let mut script = film();
    script.tracked(8, "other", Instant::ZERO);
    script.periodic(8, ms(30), (Instant::ZERO, at_ms(10_000)), |_| ms(9));
    let mut kernel = Kernel::with_cpus(2);
    let over = || Refusal::OverQuota {
        left: Bandwidth::from_cpus(0.2),
        advice: "user 7 may reserve 20%".to_owned(),
    };
    let every_other = (0..40).map(|_| over());
    kernel.answers.insert(7, every_other.take(1).collect());
    let mut worst = None;
    let ran = play_asking(script, kernel, Settings::default(), |loop_, _| {
        let held = loop_.held().find(|(task, _)| task.id.tid == 7);
        worst = worst.or(held.map(|(_, held)| held));
    });
    let first = worst.unwrap();
    assert!(first.bandwidth() <= Bandwidth::from_cpus(0.2), "{first}");
    assert!(first.bandwidth() > Bandwidth::from_cpus(0.15), "{first}");
    let refused = ran
        .of(7)
        .into_iter()
        .filter(|entry| entry.what == What::Refused);
    assert_eq!(refused.count(), 1);
    assert!(ran.of(8).iter().all(|entry| entry.what != What::Refused));
    let other = held_at(&ran, 8, at_ms(9900)).unwrap();
    assert!(other.bandwidth() > Bandwidth::from_cpus(0.3), "{other}");
    let after = held_at(&ran, 7, at_ms(9900)).unwrap();
    assert!(
        after.bandwidth() > Bandwidth::from_cpus(0.4),
        "asked again: {after}"
    );
}

#[test]
fn a_thread_that_is_to_go_without_has_its_reservation_again_when_the_actuator_gives_it() {
    let until = at_ms(6000);
    let mut told = false;
    let ran = play_asking(
        film(),
        Kernel::with_cpus(2),
        Settings::default(),
        |loop_, now| {
            if once(at_ms(5000), now, &mut told) {
                let settling = Refusal::Settling { until };
                loop_.actuator().answers.insert(7, [settling].into());
                loop_.go_without(TaskId::recorded(7), Why::OverQuota, now);
            }
        },
    );
    let before = held_at(&ran, 7, at_ms(4900)).unwrap();
    assert_eq!(held_at(&ran, 7, at_ms(5900)), None);
    let after = held_at(&ran, 7, until + ms(60)).unwrap();
    assert!(after.bandwidth() >= before.bandwidth().min(Bandwidth::from_cpus(0.4)));
    let entries = ran.of(7).into_iter();
    let without = entries.filter(|entry| entry.why == Why::OverQuota);
    assert_eq!(without.count(), 1);
}

#[test]
fn nobody_gives_way_to_a_wish_beyond_its_owners_quota() {
    let mut script = film();
    script.tracked(8, "other", Instant::ZERO);
    script.periodic(8, ms(30), (Instant::ZERO, at_ms(10_000)), |_| ms(13));
    // Both fit beside each other only as long as the film has no more than its owner may have.
    let mut kernel = Kernel::with_cpus(1);
    kernel.quotas.insert(7, Bandwidth::from_cpus(0.2));
    let ran = play_asking(script, kernel, Settings::default(), |_, _| {});
    let film = held_at(&ran, 7, at_ms(9900)).unwrap();
    assert!((0.15..=0.2).contains(&film.bandwidth().as_cpus()), "{film}");
    let gave_way = ran.of(8).into_iter();
    let gave_way: Vec<_> = gave_way
        .filter(|entry| matches!(entry.why, Why::GaveWay { .. }))
        .collect();
    assert!(gave_way.is_empty(), "{gave_way:?}");
    let other = held_at(&ran, 8, at_ms(9900)).unwrap();
    assert!(other.bandwidth() > Bandwidth::from_cpus(0.45), "{other}");
}

#[test]
fn a_back_off_ends_at_its_own_time_and_not_at_that_of_an_earlier_one() {
    let refuse = |kernel: &mut Kernel| {
        let answers = kernel.answers.entry(7).or_default();
        answers.push_back(Refusal::Other("not now".to_owned()));
    };
    let mut kernel = Kernel::with_cpus(2);
    refuse(&mut kernel);
    let (mut granted, mut taken_back) = (false, false);
    let ran = play_asking(film(), kernel, Settings::default(), |loop_, now| {
        let first = loop_.actuator().asked.first().copied();
        let Some((refused_at, Asked::Reserve(..))) = first else {
            return;
        };
        if once(refused_at + ms(200), now, &mut granted) {
            assert_eq!(loop_.grant(task(7), of(4, 40), now), Ok(()));
        }
        if once(refused_at + ms(400), now, &mut taken_back) {
            refuse(loop_.actuator());
            loop_.take_back(TaskId::recorded(7), now);
        }
    });
    let at: Vec<Instant> = ran.reserves(7).iter().map(|&(at, _)| at).collect();
    assert!(at[2].since(at[0]) < ms(500), "{at:?}");
    assert!(at[3].since(at[2]) >= ms(1000), "{at:?}");
}

#[test]
fn one_that_cannot_be_given_back_before_the_end_is_left_to_the_actuator_and_not_called_ended() {
    let mut kernel = Kernel::with_cpus(2);
    let beyond = Refusal::Settling {
        until: at_ms(60_000),
    };
    kernel.release_answers.extend([beyond.clone(), beyond]);
    let mut forgotten = false;
    let mut script = film();
    script.periodic(8, ms(40), (Instant::ZERO, at_ms(11_000)), |_| ms(1));
    let ran = play_asking(script, kernel, Settings::default(), |loop_, now| {
        if once(at_ms(10_100), now, &mut forgotten) {
            loop_.forget(TaskId::recorded(7), now);
        }
    });
    let seven = TaskId::recorded(7);
    assert!(ran.kernel.release_answers.is_empty());
    assert!(ran.kernel.held.contains_key(&seven));
    let ended = |(_, asked): &(Instant, Asked)| *asked == Asked::Ended(seven);
    assert!(!ran.kernel.asked.iter().any(ended));
}
