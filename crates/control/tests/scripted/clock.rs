//! Whether a clock is behind what looks periodic, and which threads are on probation, and for how
//! long, while no clock is heard.

use onbeat_control::{What, Why};
use onbeat_model::{Event, Instant, Span, TaskId};

use crate::beat::of_film;
use crate::pipelines::burst;
use crate::world::{Script, at_ms, ms};

const DECODER: u32 = 7;
const ENCODER: u32 = 8;

/// Two threads of one process wake each other each 20 ms, as the threads of a transcoder do;
/// `clock` wakes the decoder instead of the encoder, once in this number of periods.
fn ring(clock: Option<u64>) -> Script {
    let mut script = Script::default();
    script.tracked(DECODER, "transcoder", at_ms(0));
    script.tracked(ENCODER, "transcoder", at_ms(0));
    for job in 0..200 {
        let at = at_ms(20 * job);
        let by_clock = clock.is_some_and(|every| job % every == 0);
        let waker = if by_clock { 0 } else { ENCODER };
        script.event(burst(DECODER, at, ms(6), waker));
        script.event(burst(ENCODER, at + ms(9), ms(6), DECODER));
    }
    script
}

#[test]
fn threads_that_only_wake_each_other_are_left_alone_however_regularly_they_do() {
    let ran = of_film(ring(None));
    assert_eq!(ran.reserves(DECODER), []);
    assert_eq!(ran.reserves(ENCODER), []);
    assert_eq!(ran.report.left_alone, 2);
}

#[test]
fn a_thread_is_reserved_for_if_a_clock_is_behind_who_wakes_it() {
    for every in [1, 2] {
        let ran = of_film(ring(Some(every)));
        assert!(!ran.reserves(DECODER).is_empty(), "{every}");
        assert!(!ran.reserves(ENCODER).is_empty(), "{every}");
    }
    let rarely = of_film(ring(Some(10)));
    assert_eq!(rarely.reserves(ENCODER), []);
}

#[test]
fn a_shell_that_starts_one_command_after_the_other_has_no_clock() {
    let shell = |ends: bool| {
        let mut script = Script::default();
        script.tracked(DECODER, "sh", at_ms(0));
        for command in 0..80 {
            let (tid, at) = (100 + command, at_ms(440 * u64::from(command)));
            script.tracked(tid, "cc1plus", at);
            script.event(burst(DECODER, at + ms(440), ms(2), tid));
            let task = TaskId::recorded(tid);
            if ends {
                let at = at + ms(440);
                script.event(Event::Exited { at, task });
            }
        }
        of_film(script).reserves(DECODER).len()
    };
    assert_eq!(shell(true), 0);
    assert_eq!(shell(false), 0);
}

/// When each of the threads was on probation, from its first reservation to its release.
fn probations(script: Script, tids: [u32; 2]) -> Vec<(Instant, Instant)> {
    let ran = of_film(script);
    let mut probations = Vec::new();
    for tid in tids {
        let mut began = None;
        for entry in ran.of(tid) {
            match (entry.what, &entry.why) {
                (What::Reserved, _) => began = Some(entry.at),
                (What::Released, Why::ProbationOver) => {
                    probations.extend(began.take().map(|at| (at, entry.at)));
                }
                _ => {}
            }
        }
    }
    probations.sort();
    probations
}

#[test]
fn starving_threads_without_a_clock_are_tried_one_at_a_time_and_ever_more_rarely() {
    let mut script = Script::default();
    script.tracked(DECODER, "transcoder", at_ms(0));
    script.tracked(ENCODER, "transcoder", at_ms(0));
    script.starved_by(DECODER, ENCODER, (at_ms(0), at_ms(60_000)));
    script.starved_by(ENCODER, DECODER, (at_ms(0), at_ms(60_000)));
    let probations = probations(script, [DECODER, ENCODER]);
    assert!(probations.len() >= 2, "{probations:?}");
    for pair in probations.windows(2) {
        let pause = pair[1].0.since(pair[0].1);
        assert!(pause >= ms(5000), "{probations:?}");
    }
    let tried: Span = probations.iter().map(|&(from, to)| to.since(from)).sum();
    assert!(tried <= ms(15_000), "{probations:?}");
}

#[test]
fn starving_threads_of_a_process_with_a_clock_are_tried_together() {
    let mut script = Script::default();
    script.tracked(DECODER, "player", at_ms(0));
    script.tracked(ENCODER, "player", at_ms(0));
    script.starved_by(DECODER, 0, (at_ms(0), at_ms(4000)));
    script.starved_by(ENCODER, DECODER, (at_ms(0), at_ms(4000)));
    let probations = probations(script, [DECODER, ENCODER]);
    assert!(probations.len() >= 2, "{probations:?}");
    assert!(probations[1].0 < probations[0].1, "{probations:?}");
}

#[test]
fn a_thread_that_a_process_on_probation_begins_is_on_probation_from_its_first_instruction() {
    let mut script = Script::default();
    script.tracked(DECODER, "player", at_ms(0));
    script.starved_by(DECODER, 0, (at_ms(0), at_ms(4000)));
    script.tracked(ENCODER, "player", at_ms(900));
    let ran = of_film(script);
    assert_eq!(ran.of(ENCODER)[0].why, Why::JoinsProbation);
    assert!(ran.of(ENCODER)[0].at <= at_ms(920));
    let mut alone = Script::default();
    alone.tracked(DECODER, "transcoder", at_ms(0));
    alone.tracked(9, "transcoder", at_ms(0));
    alone.starved_by(DECODER, 9, (at_ms(0), at_ms(4000)));
    alone.tracked(ENCODER, "transcoder", at_ms(900));
    assert!(of_film(alone).of(ENCODER).is_empty());
}
