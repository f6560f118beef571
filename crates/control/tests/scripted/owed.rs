//! Reservations that cannot be given back yet, and are given back later.

use onbeat_control::{Settings, What, Why};
use onbeat_model::{Instant, Refusal, Reservation, Span, TaskId};

use crate::kernel::{Asked, Kernel};
use crate::pipelines::task;
use crate::world::{Ran, Script, at_ms, ms, play_asking};

fn not_permitted() -> Refusal {
    Refusal::NotPermitted {
        advice: "be root".to_owned(),
    }
}

/// How often thread 7 was asked for to be released.
fn releases(ran: &Ran) -> Vec<Instant> {
    let seven = Asked::Release(TaskId::recorded(7));
    let asked = ran.kernel.asked.iter();
    asked
        .filter(|(_, asked)| *asked == seven)
        .map(|(at, _)| *at)
        .collect()
}

/// Thread 7 is no longer wanted after ten seconds; the next releases are answered so.
fn let_go_with(answers: impl IntoIterator<Item = Refusal>) -> (Ran, usize) {
    let mut kernel = Kernel::with_cpus(2);
    kernel.release_answers.extend(answers);
    let (mut script, mut forgotten, mut listed) = (Script::default(), false, 0);
    script.tracked(7, "player", at_ms(0));
    script.periodic(7, ms(40), (at_ms(0), at_ms(10_000)), |_| ms(8));
    // Something else goes on, so that there are turns.
    script.periodic(8, ms(40), (at_ms(0), at_ms(120_000)), |_| ms(1));
    let ran = play_asking(script, kernel, Settings::default(), |loop_, now| {
        if now >= at_ms(10_100) && !std::mem::replace(&mut forgotten, true) {
            loop_.forget(TaskId::recorded(7), now);
        }
        listed = loop_.tasks().filter(|(task, _)| task.id.tid == 7).count();
    });
    (ran, listed)
}

#[test]
fn what_could_not_be_given_back_is_tried_again_ever_more_rarely_until_it_is() {
    let (ran, listed) = let_go_with(std::iter::repeat_n(not_permitted(), 4));
    let times = releases(&ran);
    let pauses: Vec<Span> = times.windows(2).map(|two| two[1].since(two[0])).collect();
    assert_eq!(pauses.len(), 4, "{times:?}");
    for (pause, seconds) in pauses.iter().zip([1, 2, 4, 8]) {
        assert!(pause.abs_diff(Span::from_secs(seconds)) < ms(100));
    }
    let said = ran
        .of(7)
        .into_iter()
        .filter(|entry| entry.at > at_ms(10_000));
    let said: Vec<_> = said
        .map(|e| (e.what, e.task.comm.to_text(), e.new))
        .collect();
    let player = || "player".to_owned();
    assert_eq!(
        said,
        [
            (What::Refused, player(), None),
            (What::Released, player(), None)
        ]
    );
    let last = *ran.of(7).last().unwrap();
    assert!(last.old.is_some() && last.why == Why::Untracked, "{last:?}");
    assert_eq!(listed, 0);
    assert!(!ran.kernel.held.contains_key(&TaskId::recorded(7)));
}

#[test]
fn who_is_owed_twice_is_not_asked_about_twice_as_often() {
    let mut kernel = Kernel::with_cpus(2);
    kernel
        .release_answers
        .extend(std::iter::repeat_n(not_permitted(), 5));
    let mut script = Script::default();
    script.tracked(7, "player", at_ms(0));
    script.periodic(7, ms(40), (at_ms(0), at_ms(10_000)), |_| ms(8));
    script.periodic(8, ms(40), (at_ms(0), at_ms(60_000)), |_| ms(1));
    let (seven, mut steps) = (TaskId::recorded(7), 0);
    let ran = play_asking(script, kernel, Settings::default(), |controller, now| {
        if now < at_ms(9000) + Span::from_ms(200) * steps {
            return;
        }
        steps += 1;
        match steps {
            1 => controller.forget(seven, now),
            2 => {
                let task = task(7, 7, "player");
                let asked_for = Reservation::implicit(ms(2), ms(20)).unwrap();
                controller.grant(task, asked_for, now).unwrap();
            }
            3 => controller.take_back(seven, now),
            _ => {}
        }
    });
    let times = releases(&ran);
    let pauses: Vec<Span> = times.windows(2).map(|two| two[1].since(two[0])).collect();
    assert!(
        pauses.iter().skip(1).all(|pause| *pause >= ms(900)),
        "{times:?}"
    );
}

#[test]
fn what_can_no_longer_be_given_back_for_the_thread_is_gone_stays_in_no_list() {
    let (ran, listed) = let_go_with([not_permitted(), not_permitted(), Refusal::Gone]);
    assert_eq!(releases(&ran).len(), 3);
    assert_eq!(listed, 0);
}

#[test]
fn what_somebody_else_took_over_meanwhile_is_owed_no_more() {
    let now = "SCHED_FIFO 10".to_owned();
    let (ran, listed) = let_go_with([not_permitted(), Refusal::TakenOver { now }]);
    assert_eq!(releases(&ran).len(), 2);
    assert_eq!(listed, 0);
}
