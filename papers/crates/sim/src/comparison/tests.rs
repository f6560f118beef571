use std::fs;

use onbeat_decide::predictor::{Parameters, Percentile};
use onbeat_model::{Instant, Span};
use proptest::prelude::*;

use super::*;
use crate::policy::linux::Class;
use crate::scenario::{LoopSettings, Outputs, Power, ScenarioFigures, ScenarioRun};

/// Each task: name, period and demand in microseconds; each tenth job demands twice as much.
fn csv(tasks: &[(&str, u64, u64)]) -> String {
    let mut text = "task,release_ns,demand_ns\n".to_owned();
    for &(name, period, demand) in tasks {
        for job in 0..2_000_000 / period {
            let demand = if job % 10 == 9 { 2 * demand } else { demand };
            let (release_ns, demand_ns) = (job * period * 1000, demand * 1000);
            text += &format!("{name},{release_ns},{demand_ns}\n");
        }
    }
    text
}

fn threads(tasks: &[(&str, u64, u64)]) -> Threads {
    read(&csv(tasks)).unwrap()
}

fn read(text: &str) -> Result<Threads, Unusable> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.csv");
    fs::write(&path, text).unwrap();
    Threads::read(&path)
}

fn rules() -> BudgetRules {
    BudgetRules {
        may_miss: 0.001,
        rho: 0.85,
        overrun: OverrunRule::Hard,
        onbeat: LoopSettings {
            predictor: Percentile::build,
            parameters: Parameters::default(),
            sets_speed: false,
            is_hard: false,
        },
    }
}

fn machine(cpus: usize, speed: f64) -> ComparedMachine {
    ComparedMachine {
        cpus,
        speed,
        hogs: 0,
        power: Power::default(),
    }
}

fn run(threads: &Threads, way: ComparedPolicy, machine: &ComparedMachine) -> ScenarioFigures {
    let scenario = scenario(threads, way, machine, &rules());
    ScenarioRun::new(&scenario)
        .run(Outputs::default(), |_| {})
        .unwrap()
}

#[test]
fn alone_on_the_same_machine_a_thread_fares_as_it_was_recorded() {
    let threads = threads(&[("player", 40_000, 9_000)]);
    let [player] = &threads.list[..] else {
        panic!("one thread: {threads:?}");
    };
    let period = player.rhythm.unwrap().period;
    assert!(
        period.abs_diff(Span::from_ms(40)) < Span::from_us(10),
        "{period}"
    );
    let figures = run(&threads, ComparedPolicy::Fair, &machine(1, 1.0));
    let simulated = &figures.tasks[0];
    assert_eq!((simulated.jobs, simulated.missed), (50, 0));
    assert_eq!(simulated.executed_ns, player.seen.executed);
    let (seen, now) = (
        player.seen.response_time.unwrap(),
        simulated.response_time.unwrap(),
    );
    assert!(
        now.max_ns.abs_diff(seen.max_ns) < Span::from_us(10),
        "{seen:?}, {now:?}"
    );
}

#[test]
fn half_the_speed_takes_twice_the_time_and_a_quarter_of_the_energy() {
    let threads = threads(&[("player", 40_000, 9_000)]);
    let full = run(&threads, ComparedPolicy::Fair, &machine(1, 1.0));
    let half = run(&threads, ComparedPolicy::Fair, &machine(1, 0.5));
    assert_eq!(half.tasks[0].executed_ns, full.tasks[0].executed_ns * 2);
    assert!(
        (half.energy / full.energy - 0.25).abs() < 1e-6,
        "{} of {}",
        half.energy,
        full.energy
    );
    assert_eq!(half.tasks[0].missed, 0);
    let tenth = run(&threads, ComparedPolicy::Fair, &machine(1, 0.1));
    assert_eq!(
        tenth.tasks[0].missed, tenth.tasks[0].jobs,
        "9 ms take 90 ms there"
    );
}

#[test]
fn on_fewer_cpus_the_shorter_period_keeps_its_deadlines_under_fifo_only() {
    let threads = threads(&[("long", 100_000, 55_000), ("short", 10_000, 3_000)]);
    for way in [
        ComparedPolicy::Fair,
        ComparedPolicy::Fifo,
        ComparedPolicy::Rr,
    ] {
        let both = run(&threads, way, &machine(2, 1.0));
        assert_eq!(both.tasks[1].missed, 0, "{way:?}");
    }
    let fifo = run(&threads, ComparedPolicy::Fifo, &machine(1, 1.0));
    assert_eq!(fifo.tasks[1].missed, 0);
    let turns = run(&threads, ComparedPolicy::Rr, &machine(1, 1.0));
    assert!(
        turns.tasks[1].missed * 2 > turns.tasks[1].jobs,
        "{:?}",
        turns.tasks
    );
}

#[test]
fn a_planned_thread_keeps_its_deadlines_beside_hogs() {
    let threads = threads(&[("player", 40_000, 9_000)]);
    let beside = ComparedMachine {
        hogs: 5,
        ..machine(1, 1.0)
    };
    let fair = run(&threads, ComparedPolicy::Fair, &beside);
    assert!(
        fair.tasks[0].missed * 2 > fair.tasks[0].jobs,
        "{:?}",
        fair.tasks
    );
    for (way, most) in [(ComparedPolicy::Plan, 0), (ComparedPolicy::Onbeat, 20)] {
        let figures = run(&threads, way, &beside);
        assert!(
            figures.tasks[0].missed <= most,
            "{way:?}: {:?}",
            figures.tasks
        );
    }
}

#[test]
fn a_budget_without_slack_never_lets_a_thread_catch_up_unless_it_is_soft() {
    let threads = threads(&[("player", 40_000, 9_000)]);
    let beside = ComparedMachine {
        hogs: 5,
        ..machine(1, 1.0)
    };
    for (overrun, few) in [(OverrunRule::Hard, false), (OverrunRule::Soft, true)] {
        let rules = BudgetRules { overrun, ..rules() };
        let scenario = scenario(&threads, ComparedPolicy::Statistical, &beside, &rules);
        let figures = ScenarioRun::new(&scenario)
            .run(Outputs::default(), |_| {})
            .unwrap();
        let player = &figures.tasks[0];
        assert_eq!(player.jobs, 50);
        assert_eq!(player.missed <= 5, few, "{overrun:?}: {player:?}");
    }
}

#[test]
fn budgets_are_the_rules_and_longer_on_a_slower_machine() {
    let threads = threads(&[("player", 40_000, 9_000)]);
    let runtime = |way, speed| {
        let asked = reservations(&threads, way, speed, &rules());
        asked[0].map(|asked| asked.runtime())
    };
    assert_eq!(runtime(ComparedPolicy::Plan, 1.0), Some(Span::from_ms(18)));
    assert_eq!(runtime(ComparedPolicy::Plan, 0.5), Some(Span::from_ms(36)));
    assert_eq!(runtime(ComparedPolicy::Plan, 0.4), None, "45 ms in 40 ms");
    assert_eq!(
        runtime(ComparedPolicy::Statistical, 1.0),
        Some(Span::from_ms(9))
    );
    assert_eq!(runtime(ComparedPolicy::Fair, 1.0), None);
}

#[test]
fn what_the_kernel_would_refuse_runs_as_any_other_thread() {
    let threads = threads(&[("a", 40_000, 12_000), ("b", 50_000, 12_500)]);
    let classes = |cpus| {
        let scenario = scenario(
            &threads,
            ComparedPolicy::Plan,
            &machine(cpus, 1.0),
            &rules(),
        );
        let groups = scenario.groups.into_iter();
        groups
            .map(|group| matches!(group.class, Class::Deadline(_)))
            .collect::<Vec<_>>()
    };
    assert_eq!(classes(2), [true, true]);
    assert_eq!(classes(1), [true, false], "60% and 50%");
}

#[test]
fn a_thread_without_rhythm_has_jobs_and_no_deadlines() {
    let mut text = "task,release_ns,demand_ns\n".to_owned();
    let mut at: u64 = 0;
    for n in 0..200_u64 {
        at += 1_000_000 + n.wrapping_mul(n) * 7_919_000 % 37_000_000;
        text += &format!("random,{at},500000\n");
    }
    let threads = read(&text).unwrap();
    assert!(threads.list[0].rhythm.is_none());
    let figures = run(&threads, ComparedPolicy::Plan, &machine(1, 1.0));
    assert_eq!((figures.tasks[0].jobs, figures.tasks[0].missed), (200, 0));
}

#[test]
fn an_overdue_job_waits_for_the_one_before_it_and_for_nothing_else() {
    // The fifth job takes 65 ms, so the next two begin late: with time to spare they would not
    // have.
    let mut text = "release_ns,demand_ns\n".to_owned();
    for job in 0..50_u64 {
        let (beat, demand) = (
            job * 40_000_000,
            if job == 5 { 65_000_000 } else { 9_000_000 },
        );
        let release = if job == 6 {
            5 * 40_000_000 + 65_000_000
        } else {
            beat
        };
        text += &format!("{release},{demand}\n");
    }
    let threads = read(&text).unwrap();
    assert_eq!(threads.list[0].seen.missed, 1);
    let sixth = threads.list[0].jobs[6];
    assert_eq!(sixth.ready, sixth.release);
    assert!(sixth.release.since(Instant::ZERO) < Span::from_us(240_010));
}

proptest! {
    #![proptest_config(crate::tests::same_cases())]

    /// A damaged recording may say anything: jobs in as many bursts as they had, and a reservation
    /// that is one.
    #[test]
    fn any_times_make_threads_that_can_be_planned_for(
        rows in prop::collection::vec((0..4_u8, any::<u64>(), any::<u64>()), 1..40),
        period in 1..50_000_000_u64,
    ) {
        let mut text = "task,release_ns,demand_ns\n".to_owned();
        for (task, release, demand) in &rows {
            text += &format!("{task},{release},{demand}\n");
        }
        for beat in 0..20 {
            text += &format!("beat,{},{}\n", beat * period, period / 4 + 1);
        }
        let threads = read(&text).unwrap();
        for way in [ComparedPolicy::Fifo, ComparedPolicy::Plan, ComparedPolicy::Statistical] {
            let scenario = scenario(&threads, way, &machine(2, 0.3), &rules());
            prop_assert_eq!(scenario.groups.len(), threads.list.len());
        }
    }
}
