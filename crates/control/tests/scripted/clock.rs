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
            if ends {
                script.exits(tid, at + ms(440));
            }
        }
        of_film(script).reserves(DECODER).len()
    };
    assert_eq!(shell(true), 0);
    assert_eq!(shell(false), 0);
}
