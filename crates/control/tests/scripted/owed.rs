use onbeat_control::{What, Why};
use onbeat_model::{Instant, Refusal, Span, TaskId};

use crate::kernel::{Asked, Kernel};
use crate::world::{Ran, Script, at_ms, ms, play_asking_at};

const SEVEN: TaskId = TaskId::recorded(7);

fn not_permitted() -> Refusal {
    Refusal::NotPermitted {
        advice: "be root".to_owned(),
    }
}

fn releases(ran: &Ran) -> Vec<Instant> {
    let asked = ran.kernel.asked.iter();
    let releases = asked.filter(|(_, asked)| *asked == Asked::Release(SEVEN));
    releases.map(|(at, _)| *at).collect()
}

/// Thread 7 is no longer wanted after ten seconds; the next releases are answered so.
fn let_go_with(answers: impl IntoIterator<Item = Refusal>) -> Ran {
    let mut kernel = Kernel::with_cpus(2);
    kernel.release_answers.extend(answers);
    let mut script = Script::default();
    script.tracked(7, "player", at_ms(0));
    script.periodic(7, ms(40), (at_ms(0), at_ms(10_000)), |_| ms(8));
    // Something else goes on, so that there are turns.
    script.periodic(8, ms(40), (at_ms(0), at_ms(120_000)), |_| ms(1));
    play_asking_at(
        script,
        kernel,
        &[
            (10_100, &|it, now| it.forget(SEVEN, now)),
            (119_900, &|it, _| {
                assert!(it.tasks().all(|(task, _)| task.id != SEVEN));
            }),
        ],
    )
}

#[test]
fn what_could_not_be_given_back_is_tried_again_ever_more_rarely_until_it_is() {
    let ran = let_go_with(std::iter::repeat_n(not_permitted(), 4));
    let times = releases(&ran);
    let pauses: Vec<Span> = times.windows(2).map(|two| two[1].since(two[0])).collect();
    assert_eq!(pauses.len(), 4, "{times:?}");
    for (pause, seconds) in pauses.iter().zip([1, 2, 4, 8]) {
        assert!(pause.abs_diff(Span::from_secs(seconds)) < ms(100));
    }
    let said = ran.of(7).into_iter();
    let said: Vec<_> = said.filter(|entry| entry.at > at_ms(10_000)).collect();
    let whats: Vec<What> = said.iter().map(|entry| entry.what).collect();
    assert_eq!(whats, [What::Refused, What::Released]);
    let last = *said.last().unwrap();
    assert!(last.old.is_some() && last.why == Why::Untracked, "{last:?}");
    assert_eq!(last.task.comm, "player".into());
    assert!(!ran.kernel.held.contains_key(&SEVEN));
}

#[test]
fn who_is_gone_or_somebody_elses_meanwhile_is_owed_no_more() {
    let now = "SCHED_FIFO 10".to_owned();
    for ends in [Refusal::Gone, Refusal::TakenOver { now }] {
        let ran = let_go_with([not_permitted(), not_permitted(), ends]);
        assert_eq!(releases(&ran).len(), 3);
    }
}
