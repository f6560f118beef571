use onbeat_control::What;
use onbeat_model::{Event, Span, TaskId};

use crate::kernel::Kernel;
use crate::pipelines::{PLAYER, SERVER, answered, burst, number_of, plays, serves, settings};
use crate::world::{Noise, Script, at_ms, ms, play};

#[test]
fn a_stage_that_works_in_each_second_job_gets_a_budget_in_two_periods_of_the_path() {
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(20), (0, 6000));
    serves(&mut script, PLAYER, ms(40), (0, 6000));
    let ran = play(script, Kernel::with_cpus(2), settings());
    let (_, server) = *ran.reserves(SERVER).last().expect("the server is served");
    assert!(
        server.period().abs_diff(ms(40)) < Span::from_us(500),
        "{server:?}"
    );
    assert!((ms(4)..ms(6)).contains(&server.runtime()), "{server:?}");
    let why = ran.of(SERVER)[0].why.to_string();
    assert!(
        why.starts_with("it is stage 2 of player's 50 Hz pipeline in every second job: seen in"),
        "{why}"
    );
}

#[test]
fn a_stage_that_does_next_to_nothing_for_the_path_is_left_room_for_its_other_work() {
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(40), (0, 4000));
    for at in (0..4000).step_by(40) {
        script.event(burst(SERVER, at_ms(at + 5), Span::from_us(30), PLAYER));
        answered(&mut script, PLAYER, at_ms(at + 9), SERVER);
    }
    let ran = play(script, Kernel::with_cpus(2), settings());
    let (_, server) = *ran.reserves(SERVER).last().expect("the server is served");
    assert!(server.bandwidth().as_cpus() > 0.049, "{server:?}");
}

#[test]
fn a_stage_that_computes_all_the_time_is_let_go_however_often_it_wakes_the_player() {
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(40), (0, 12_000));
    serves(&mut script, PLAYER, ms(40), (0, 3000));
    let task = TaskId::recorded(SERVER);
    for at in (3000..12_000).step_by(40) {
        script.event(Event::Exhausted {
            at: at_ms(at + 5),
            task,
        });
        answered(&mut script, PLAYER, at_ms(at + 12), SERVER);
    }
    let ran = play(script, Kernel::with_cpus(2), settings());
    assert!(ran.unwatched.contains(&SERVER));
    assert_eq!(number_of(&ran, SERVER, What::Reserved), 1);
    let given_back = ran.first(SERVER, |e| e.what == What::Released);
    assert!(given_back.at < at_ms(4000));
}

#[test]
fn a_server_that_answers_late_for_it_starves_is_served_all_the_same() {
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(40), (0, 8000));
    let mut noise = Noise(11);
    for at in (0..8000).step_by(40) {
        script.event(burst(SERVER, at_ms(at + 5), ms(1), PLAYER));
        // One answer of four comes so late that the next job's comes in the same one.
        if noise.up_to(ms(4)) > ms(1) {
            let late = at_ms(at + 6) + noise.up_to(ms(33));
            answered(&mut script, PLAYER, late, SERVER);
        }
    }
    let ran = play(script, Kernel::with_cpus(2), settings());
    assert!(!ran.reserves(SERVER).is_empty());
}
