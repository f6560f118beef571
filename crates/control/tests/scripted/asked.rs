use onbeat_control::{Settings, What, Why};
use onbeat_model::{Bandwidth, Instant, Refusal, Reservation, Task, TaskId};

use crate::kernel::{Asked, Kernel};
use crate::pipelines::task;
use crate::world::{Ran, Script, at_ms, ms, play, play_asking, play_asking_at};

const SEVEN: TaskId = TaskId::recorded(7);
const NINE: TaskId = TaskId::recorded(9);

fn of(runtime_ms: u64, period_ms: u64) -> Reservation {
    Reservation::implicit(ms(runtime_ms), ms(period_ms)).unwrap()
}

fn asks(tid: u32) -> Task {
    task(tid, tid, "asks")
}

fn film() -> Script {
    let mut script = Script::default();
    script.tracked(7, "player", Instant::ZERO);
    script.periodic(7, ms(40), (Instant::ZERO, at_ms(10_000)), |_| ms(16));
    script
}

/// The same, and something else that goes on, so that there are turns.
fn film_and_more() -> Script {
    let mut script = film();
    script.periodic(8, ms(40), (Instant::ZERO, at_ms(11_000)), |_| ms(1));
    script
}

fn held_at(ran: &Ran, tid: u32, at: Instant) -> Option<Reservation> {
    let entries = ran.of(tid).into_iter();
    let mut changes = entries.filter(|e| e.at <= at && e.what != What::Refused);
    changes.next_back().and_then(|entry| entry.new)
}

fn share_at(ran: &Ran, tid: u32, at: Instant) -> f64 {
    held_at(ran, tid, at).map_or(0.0, |held| held.bandwidth().as_cpus())
}

const END: Instant = Instant::from_ns(9_900_000_000);

#[test]
fn what_was_asked_for_is_given_whole_and_those_with_a_rhythm_make_room() {
    let ran = play_asking_at(
        film(),
        Kernel::with_cpus(1),
        &[
            (4000, &|it, now| {
                it.grant(asks(9), of(6, 10), now).unwrap();
            }),
            (7000, &|it, now| it.take_back(NINE, now)),
        ],
    );
    assert!(share_at(&ran, 7, at_ms(3900)) > 0.4);
    assert_eq!(held_at(&ran, 9, at_ms(6900)), Some(of(6, 10)));
    assert!(share_at(&ran, 7, at_ms(6900)) <= 0.25);
    assert_eq!(held_at(&ran, 9, END), None);
    assert!(share_at(&ran, 7, END) > 0.4);
    assert!(ran.kernel.most_held <= Bandwidth::from_cpus(0.85));
}

#[test]
fn a_thread_that_asked_keeps_that_whatever_its_rhythm_and_gets_its_rhythms_share_afterwards() {
    let ran = play_asking_at(
        film(),
        Kernel::with_cpus(2),
        &[
            (3000, &|it, now| {
                it.grant(task(7, 1, "asks"), of(1, 10), now).unwrap();
            }),
            (6000, &|it, now| it.take_back(SEVEN, now)),
        ],
    );
    for at in [3100, 4000, 5900] {
        assert_eq!(held_at(&ran, 7, at_ms(at)), Some(of(1, 10)), "{at}");
    }
    assert!(share_at(&ran, 7, at_ms(6100)) > 0.4);
}

#[test]
fn a_thread_whose_owner_may_not_have_more_gets_that_much_and_nobody_else_less() {
    let mut script = film();
    script.tracked(8, "other", Instant::ZERO);
    script.periodic(8, ms(30), (Instant::ZERO, at_ms(10_000)), |_| ms(9));
    let mut kernel = Kernel::with_cpus(2);
    let over = Refusal::OverQuota {
        left: Bandwidth::from_cpus(0.2),
        advice: "user 7 may reserve 20%".to_owned(),
    };
    kernel.answers.insert(7, [over].into());
    let mut first = None;
    let ran = play_asking(script, kernel, Settings::default(), |loop_, _| {
        let held = loop_.held().find(|(task, _)| task.id.tid == 7);
        first = first.or(held.map(|(_, held)| held.bandwidth().as_cpus()));
    });
    assert!((0.15..=0.2).contains(&first.unwrap()), "{first:?}");
    let refused = |tid| {
        let entries = ran.of(tid).into_iter();
        entries.filter(|entry| entry.what == What::Refused).count()
    };
    assert_eq!((refused(7), refused(8)), (1, 0));
    assert!(share_at(&ran, 8, END) > 0.3);
    assert!(share_at(&ran, 7, END) > 0.4, "asked again");
}

#[test]
fn a_thread_that_is_to_go_without_has_its_reservation_again_when_the_actuator_gives_it() {
    let until = at_ms(6000);
    let ran = play_asking_at(
        film(),
        Kernel::with_cpus(2),
        &[(5000, &|it, now| {
            let settling = Refusal::Settling { until };
            it.actuator().answers.insert(7, [settling].into());
            it.go_without(SEVEN, Why::OverQuota, now);
        })],
    );
    let before = share_at(&ran, 7, at_ms(4900));
    assert_eq!(held_at(&ran, 7, at_ms(5900)), None);
    assert!(share_at(&ran, 7, until + ms(60)) >= before.min(0.4));
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
    let ran = play(script, kernel, Settings::default());
    assert!((0.15..=0.2).contains(&share_at(&ran, 7, END)));
    let mut of_other = ran.of(8).into_iter();
    assert!(!of_other.any(|entry| matches!(entry.why, Why::GaveWay { .. })));
    assert!(share_at(&ran, 8, END) > 0.45);
}

#[test]
fn one_that_cannot_be_given_back_before_the_end_is_left_to_the_actuator_and_not_called_ended() {
    let mut kernel = Kernel::with_cpus(2);
    let beyond = Refusal::Settling {
        until: at_ms(60_000),
    };
    kernel.release_answers.extend([beyond.clone(), beyond]);
    let ran = play_asking_at(
        film_and_more(),
        kernel,
        &[(10_100, &|it, now| it.forget(SEVEN, now))],
    );
    assert!(ran.kernel.release_answers.is_empty());
    assert!(ran.kernel.held.contains_key(&SEVEN));
    let ended = |(_, asked): &(Instant, Asked)| *asked == Asked::Ended(SEVEN);
    assert!(!ran.kernel.asked.iter().any(ended));
}
