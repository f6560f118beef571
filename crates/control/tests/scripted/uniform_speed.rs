use std::rc::Rc;

use crate::kernel::Kernel;
use crate::processor::{Processor, mhz};
use crate::world::{Ran, Script, at_ms, ms, play, with};
use onbeat_control::{PowerSettings, Settings, SpeedRule, SpeedWhat, Why};
use onbeat_decide::predictor::statistical;
use onbeat_model::{Instant, Reservation, Span, Speed};

/// As `--power grace` sets them.
fn settings(best_effort: f64) -> Settings {
    with(|it| {
        it.estimation.predictor = statistical;
        it.estimation.parameters.window = 100;
        it.estimation.parameters.overruns = 0.05;
        it.power = Some(PowerSettings {
            rule: SpeedRule::Uniform { best_effort },
            ..PowerSettings::default()
        });
    })
}

/// On the paper's laptop, all of which a hog uses besides.
fn play_on_the_laptop(script: Script, settings: Settings) -> (Ran, Rc<Processor>) {
    let mut processor = Processor::new(&[300, 500, 600, 700, 800, 1000]);
    processor.used = vec![(at_ms(0), 1.0)];
    let (kernel, processor) = Kernel::on(processor);
    (play(script, kernel, settings), processor)
}

fn speed_at(processor: &Processor, at: Instant) -> Speed {
    let history = processor.history();
    let before = history.iter().rev().find(|(set, _)| *set <= at);
    before.expect("it was set").1
}

fn film(demand: impl Fn(u64) -> Span + 'static) -> Script {
    let mut script = Script::default();
    script.periodic(7, ms(100), (at_ms(0), at_ms(40_000)), demand);
    script
}

#[test]
fn it_is_the_lowest_at_which_the_budget_fits_though_a_hog_wants_everything() {
    let (ran, processor) = play_on_the_laptop(film(|_| ms(16)), settings(0.0));
    assert_eq!(processor.history()[0].1, mhz(1000), "until more is known");
    assert_eq!(speed_at(&processor, at_ms(30_000)), mhz(300));
    for (at, speed) in processor.history().into_iter().skip(1) {
        let announced = ran.speeds.iter().rev().find(|entry| {
            entry.at < at && entry.what == SpeedWhat::Announced && entry.new == Some(speed)
        });
        let announced = announced.expect("it was announced").at;
        assert!(at >= announced + ms(99), "a period after it, at the least");
        let mut budgets = ran.of(7).into_iter();
        let budget = budgets.rfind(|entry| entry.at <= at);
        let budget = budget.and_then(|entry| entry.new).expect("it has one");
        let job = ms(16).scale(mhz(1000).ratio(speed));
        assert!(budget.runtime() >= job, "{budget} at {speed}");
    }
}

#[test]
fn best_effort_programs_keep_the_share_that_they_are_promised() {
    let (_, processor) = play_on_the_laptop(film(|_| ms(16)), settings(0.5));
    // 16 ms in 100 and half of 1000 MHz: 660 MHz.
    assert_eq!(speed_at(&processor, at_ms(30_000)), mhz(700));
}

#[test]
fn it_rises_for_a_new_budget_before_that_is_in_force() {
    let mut script = film(|_| ms(16));
    script.periodic(8, ms(50), (at_ms(20_000), at_ms(40_000)), |_| ms(25));
    let (ran, processor) = play_on_the_laptop(script, settings(0.0));
    assert_eq!(speed_at(&processor, at_ms(19_900)), mhz(300));
    let rose = ran.speeds.iter().find(|entry| {
        entry.at > at_ms(20_000) && entry.what == SpeedWhat::Set && entry.new > entry.old
    });
    let rose = rose.expect("it rose").at;
    let entries = ran.of(8);
    let first = entries.first().expect("it was reserved");
    assert!(rose <= first.at, "{rose:?} {first:?}");
    assert!(speed_at(&processor, at_ms(39_000)) >= mhz(800));
}

#[test]
fn a_job_that_overruns_raises_its_budget_and_not_the_speed() {
    let mut script = film(|_| ms(16));
    for s in 0..5 {
        script.exhausted(7, at_ms(30_000 + 1000 * s + 70));
    }
    let (ran, processor) = play_on_the_laptop(script, settings(0.0));
    let raised = ran.of(7).into_iter().filter(|entry| {
        let runtime = |reservation: Option<Reservation>| reservation.map(|r| r.runtime());
        entry.why == Why::Exhausted && runtime(entry.new) > runtime(entry.old)
    });
    assert!(raised.count() >= 2);
    let later = processor.history().into_iter();
    let later: Vec<_> = later.filter(|(at, _)| *at > at_ms(30_000)).collect();
    assert_eq!(later, []);
    assert_eq!(speed_at(&processor, at_ms(39_000)), mhz(300));
}
