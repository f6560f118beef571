//! The worth of missed deadline notifications under linux24, BEST and BeRate, and their lack of
//! worth to a liar: section 4 of the paper, as bounds. experiments/mdn-* has the figures.

use onbeat_model::{Instant, Span, TaskId};
use onbeat_policies::{Berate, Best, Linux24, Rules, Structures};
use onbeat_sim::observe::Completion;
use onbeat_sim::policy::ruled::Ruled;
use onbeat_sim::workload::{Arrival, Demand, Film, Notifies};
use onbeat_sim::{Cpus, Machine, Observer, Work, Workload};

#[derive(Default)]
struct Missed(Vec<(u64, u64)>);

impl Observer for Missed {
    fn job(&mut self, job: &Completion) {
        self.0[job.task].0 += 1;
        self.0[job.task].1 += u64::from(job.missed());
    }
}

/// A decoder of 25 frames a second that needs `permille` of the CPU.
fn decoder(permille: u64, seed: u64) -> Workload {
    let arrival = Arrival::Paced {
        period: Span::from_ms(40),
        next: Instant::from_ns(400_000 * (seed * 37 % 100)),
        timer: Span::ZERO,
    };
    let mean = Span::from_us(40 * permille);
    Workload::new(
        arrival,
        Demand::Decoder(mean, Film::of_seed(seed).varied(1400)),
    )
}

fn hog() -> Workload {
    Workload::new(Arrival::Always, Demand::constant(Span::from_ms(10)))
}

const SECONDS: u64 = 60;
/// A cheater begins here, and is judged from `SETTLED` on.
const CHANGE: u64 = 20;
const SETTLED: u64 = 30;

/// The part of its jobs that each program misses, and of the CPU that it has from `SETTLED` on, in
/// permille.
fn run<S: Structures>(rules: Rules<S>, programs: &[Workload]) -> Vec<(u64, u64)> {
    run_from_to(rules, programs, SETTLED, SECONDS)
}

fn run_from_to<S: Structures>(
    rules: Rules<S>,
    programs: &[Workload],
    from: u64,
    to: u64,
) -> Vec<(u64, u64)> {
    let policy = Ruled::new(rules, 1, vec![0; programs.len()]);
    let cpu = Cpus::of_one_speed(1);
    let missed = Missed(vec![(0, 0); programs.len()]);
    let mut machine = Machine::new(&cpu, policy, missed);
    for (tid, workload) in (1..).zip(programs) {
        machine.add(TaskId::recorded(tid), workload.clone());
    }
    machine.run_until(Instant::ZERO + Span::from_secs(from));
    let before: Vec<Span> = (0..programs.len()).map(|n| machine.executed(n)).collect();
    machine.run_until(Instant::ZERO + Span::from_secs(to));
    let parts: Vec<u64> = (0..programs.len())
        .map(|n| (machine.executed(n) - before[n]).as_ns() / 1_000_000 / (to - from))
        .collect();
    let (_, Missed(jobs)) = machine.finish();
    let missed = jobs.iter().map(|(all, missed)| 1000 * missed / all.max(&1));
    missed.zip(parts).collect()
}

/// The misses of a decoder beside one CPU-bound program, in permille, without and with
/// notifications: in the mean of a few films.
fn missed<S: Structures>(rules: impl Fn() -> Rules<S>, permille: u64) -> (u64, u64) {
    const FILMS: u64 = 4;
    let with = |notifies| {
        let films = (1..=FILMS).map(|seed| {
            let decoder = decoder(permille, seed).notifying(notifies);
            run(rules(), &[decoder, hog()])[0].0
        });
        films.sum::<u64>() / FILMS
    };
    (with(Notifies::Never), with(Notifies::WhenLate))
}

#[test]
fn under_linux24_a_decoder_that_needs_its_half_misses_almost_nothing_once_it_notifies() {
    // The paper: 7.9% and less than 0.1%.
    let (without, with) = missed(Linux24::default, 500);
    assert!((40..150).contains(&without), "{without}");
    assert!(with <= 5, "{with}");
}

#[test]
fn under_berate_a_decoder_that_needs_a_bit_too_much_misses_a_third_less_once_it_notifies() {
    // The paper: 10.9% and 5.5%.
    let (without, with) = missed(Berate::default, 600);
    assert!((80..200).contains(&without), "{without} {with}");
    assert!(with * 3 < without * 2 && with * 5 > without, "{with}");
}

#[test]
fn under_best_periodic_programs_are_in_time_without_a_word() {
    for permille in [333, 500] {
        let (without, with) = missed(Best::default, permille);
        assert!(without <= 3 && with <= 3, "{without} {with}");
    }
}

/// The misses of a decoder of an eighth of the CPU beside `hogs` programs that only compute, and
/// the part of the CPU that it has; and the least part of one of these.
fn beside_many<S: Structures>(rules: Rules<S>, hogs: usize) -> (u64, u64, u64) {
    let mut programs = vec![decoder(125, 1)];
    programs.extend(vec![hog(); hogs]);
    let outcomes = run(rules, &programs);
    let (missed, part) = outcomes[0];
    let least = outcomes[1..].iter().map(|(_, part)| *part).min();
    (missed, part, least.unwrap_or(0))
}

#[test]
fn under_best_periodic_programs_are_in_time_beside_however_many_compute_without_a_pause() {
    for hogs in [5, 9, 12, 20, 40] {
        let (missed, _, least) = beside_many(Best::default(), hogs);
        assert!(missed <= 10, "{hogs}: {missed}");
        // A program that only computes is served, too.
        let fair = 875 / hogs as u64;
        assert!(least >= fair * 3 / 4, "{hogs}: {least} of {fair}");
    }
}

#[test]
fn under_berate_periodic_programs_have_their_fair_share_beside_many_that_compute_without_a_pause() {
    for hogs in [12, 20, 30] {
        let (_, part, least) = beside_many(Berate::default(), hogs);
        let fair = 1000 / (hogs as u64 + 1);
        assert!(part >= fair * 9 / 10, "{hogs}: {part} of {fair}");
        assert!(least >= fair * 3 / 4, "{hogs}: {least} of {fair}");
    }
}

/// The part of the CPU in permille that a cheater has, without its notifications and with them.
fn gain<S: Structures>(
    rules: impl Fn() -> Rules<S>,
    cheater: impl Fn(Notifies, Notifies) -> Workload,
    cheaters: usize,
    honest: usize,
) -> (u64, u64) {
    let part = |late, cries| {
        let mut programs = vec![cheater(late, cries); cheaters];
        programs.extend(vec![hog(); honest]);
        let outcomes = run(rules(), &programs);
        let sum: u64 = outcomes.iter().take(cheaters).map(|(_, part)| part).sum();
        sum / cheaters as u64
    };
    let every = |us| Notifies::Every(Work::at_full_speed(Span::from_us(us)));
    (
        part(Notifies::Never, Notifies::Never),
        part(Notifies::WhenLate, every(100)),
    )
}

fn change() -> Instant {
    Instant::ZERO + Span::from_secs(CHANGE)
}

/// The cheater of Fig. 7 (b): 40%, then CPU-bound.
fn turns_cpu_bound(late: Notifies, cries: Notifies) -> Workload {
    decoder(400, 1)
        .notifying(late)
        .then(change(), hog().notifying(cries))
}

fn nobody_gains<S: Structures>(rules: impl Fn() -> Rules<S> + Copy) {
    for (name, (silent, lying)) in [
        ("Fig. 7 (b)", gain(rules, turns_cpu_bound, 1, 2)),
        ("many of Fig. 7 (b)", gain(rules, turns_cpu_bound, 3, 2)),
        (
            "without a period",
            gain(rules, |_, cries| hog().notifying(cries), 1, 2),
        ),
    ] {
        assert!(lying <= silent + 10, "{name}: {silent} {lying}");
    }
}

#[test]
fn who_turns_cpu_bound_gains_nothing_by_notifying_under_any_policy() {
    nobody_gains(Linux24::default);
    nobody_gains(Best::default);
    nobody_gains(Berate::default);
}

#[test]
fn a_flood_of_a_million_a_second_is_worth_as_much_as_silence_under_any_policy() {
    fn flood<S: Structures>(rules: impl Fn() -> Rules<S>) {
        let part = |notifies| {
            let flood = hog().notifying(notifies);
            run_from_to(rules(), &[flood, hog()], 1, 3)[0].1
        };
        let every = Notifies::Every(Work::at_full_speed(Span::from_us(1)));
        assert_eq!(part(every), part(Notifies::Never));
    }
    flood(Linux24::default);
    flood(Best::default);
    flood(Berate::default);
}
