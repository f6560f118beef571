use onbeat_model::{Demand, Ladder, Speed};
use proptest::prelude::*;

use super::schedule::{Differences, Rounding, WorkGroup, groups, ideal};
use super::*;

fn us(us: u64) -> Span {
    Span::from_us(us)
}

fn window(jobs: &[u64]) -> Demand {
    let mut demand = Demand::new(jobs.len());
    jobs.iter().for_each(|&job| demand.record(us(job)));
    demand
}

fn athlon() -> Ladder {
    let mhz = [300, 500, 600, 700, 800, 1000];
    Ladder::new(
        mhz.into_iter()
            .filter_map(|mhz| Speed::from_khz(mhz * 1000)),
    )
    .unwrap()
}

impl Schedule {
    /// The speed of a job that has computed `done`, and how much it will have when that changes.
    pub(super) fn at(&self, done: Span) -> (Speed, Option<Span>) {
        let reached = self.points().take_while(|point| point.after <= done);
        let next = self.points().find(|point| point.after > done);
        let speed = reached.last().expect("the first is at zero").speed;
        (speed, next.map(|point| point.after))
    }

    /// How long a job that computes `demand` takes if it is never interrupted.
    pub(super) fn duration(&self, demand: Span, highest: Speed) -> Span {
        let ends = self.points().skip(1).map(|point| point.after);
        self.points()
            .zip(ends.chain([Span::MAX]))
            .map(|(point, end)| (end.min(demand) - point.after).scale(highest.ratio(point.speed)))
            .sum()
    }
}

#[test]
fn the_histogram_counts_the_jobs_within_each_boundary() {
    let histogram = Histogram::of(&window(&[10, 20, 30, 40, 50, 50, 50, 50, 50, 90]), 4).unwrap();
    // Boundaries 10, 30, 50, 70, 90.
    let budget = |rho| histogram.budget(rho);
    assert_eq!((budget(0.1).demand, budget(0.1).within), (us(10), 0.1));
    assert_eq!((budget(0.3).demand, budget(0.3).within), (us(30), 0.3));
    assert_eq!((budget(0.31).demand, budget(0.31).within), (us(50), 0.9));
    assert_eq!((budget(0.95).demand, budget(0.95).within), (us(90), 1.0));
    assert_eq!(histogram.worst().demand, us(90));
    assert_eq!(Histogram::of(&Demand::new(3), 4), None);
}

#[test]
fn all_times_together_are_the_whole_cpu() {
    let tasks = [(us(3_000), us(30_000)), (us(5_000), us(25_000))];
    let times = time_allocations(&tasks);
    // 0.1 and 0.2 of the CPU are needed: each task takes 10/3 of the budget.
    for (time, expected_ns) in times.iter().zip([10_000_000, 16_666_666]) {
        assert!(
            time.abs_diff(Span::from_ns(expected_ns)) <= Span::from_ns(1),
            "{time:?}"
        );
    }
    assert!((uniform_speed(&tasks) - 0.3).abs() < 1e-12);
    assert_eq!(time_allocations(&[(Span::ZERO, us(10))]), [Span::ZERO]);
}

#[test]
fn as_written_a_group_runs_at_the_speed_of_the_boundary_before_it() {
    // Boundaries 2, 4, 6 and 8 ms, which 40, 80, 90 and 100% of the jobs stay within.
    let jobs = [2, 2, 2, 2, 4, 4, 4, 4, 6, 8].map(|ms| ms * 1_000);
    let histogram = Histogram::of(&window(&jobs), 3).unwrap();
    // The sum of s (1 - F)^(1/3): 2 (0.6^(1/3) + 0.2^(1/3) + 0.1^(1/3)) = 3.785 ms. In 10 ms: 0.379
    // of the highest speed over 0.843, 0.585 and 0.464 at the first three boundaries, which is 449,
    // 647 and 816 MHz; rounded up 500, 700 and 1000.
    let budget = histogram.budget(0.9);
    assert_eq!(budget.demand, us(6_000));
    let schedule = Schedule::as_written(
        &histogram,
        &budget,
        us(10_000),
        &athlon(),
        Differences::default(),
    );
    let points = schedule
        .points()
        .map(|point| (point.after, point.speed.as_khz() / 1000));
    let expected = [(us(0), 500), (us(4_000), 700), (us(6_000), 1000)];
    assert_eq!(points.collect::<Vec<_>>(), expected);
    // 4 ms of work at half the speed and 2 ms at 0.7 of it, of 10 ms that there are: as written, a
    // job may be late within its budget.
    let takes = schedule.duration(us(6_000), athlon().highest());
    assert!(takes.abs_diff(us(10_857)) <= us(1), "{takes:?}");
    // With both differences it is in time.
    let both = Differences {
        own_speeds: true,
        bounded: true,
    };
    let schedule = Schedule::as_written(&histogram, &budget, us(10_000), &athlon(), both);
    assert!(schedule.duration(us(6_000), athlon().highest()) <= us(10_000));
    // So it is under the schedule of the product.
    let schedule = Schedule::stochastic(&histogram, &budget, us(10_000), &athlon(), Rounding::Up);
    assert!(schedule.duration(us(6_000), athlon().highest()) <= us(10_000));
}

/// Eq. 12 as written, for speeds without bounds.
fn equation_12(groups: &[WorkGroup], time: Span) -> Vec<f64> {
    let sum: f64 = groups
        .iter()
        .map(|group| group.size.as_ns() as f64 * group.beyond.cbrt())
        .sum();
    let speed = |group: &WorkGroup| sum / (time.as_ns() as f64 * group.beyond.cbrt());
    groups.iter().map(speed).collect()
}

/// The sum that eq. 8 minimises.
fn expected_energy(groups: &[WorkGroup], speeds: &[f64]) -> f64 {
    let each = groups.iter().zip(speeds);
    each.map(|(group, speed)| group.size.as_ns() as f64 * group.beyond * speed * speed)
        .sum()
}

fn taken(groups: &[WorkGroup], speeds: &[f64]) -> f64 {
    let each = groups.iter().zip(speeds);
    each.map(|(group, speed)| group.size.as_ns() as f64 / speed)
        .sum()
}

/// The least energy of all ways to give each group one of `speeds` within `time`: the slow twin.
fn brute_force(groups: &[WorkGroup], time: Span, speeds: &[f64]) -> Option<f64> {
    let mut best: Option<f64> = None;
    for way in 0..speeds.len().pow(groups.len() as u32) {
        let chosen: Vec<f64> = (0..groups.len() as u32)
            .map(|group| speeds[way / speeds.len().pow(group) % speeds.len()])
            .collect();
        if taken(groups, &chosen) <= time.as_ns() as f64 * (1.0 + 1e-9) {
            let energy = expected_energy(groups, &chosen);
            best = Some(best.map_or(energy, |best| best.min(energy)));
        }
    }
    best
}

/// A few jobs, how many groups, and by what factor there is more time than at full speed.
fn drawn() -> impl Strategy<Value = (Vec<u64>, usize, f64)> {
    let jobs = prop::collection::vec(100..10_000_u64, 3..40);
    (jobs, 1..3_usize, 1.0..4.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..crate::tests::same_cases() })]

    #[test]
    fn where_no_bound_is_reached_the_speeds_are_those_of_equation_12((jobs, count, room) in drawn()) {
        let histogram = Histogram::of(&window(&jobs), 4 * count).unwrap();
        let budget = histogram.budget(0.8);
        // A group that no job needs more than would be infinitely fast.
        let mut groups = groups(histogram.up_to(&budget));
        groups.retain(|group| group.beyond > 0.0);
        // So much time that the fastest group is not faster than the CPU.
        let fastest = equation_12(&groups, budget.demand).into_iter().fold(1.0, f64::max);
        let time = budget.demand.scale(fastest * room);
        let expected = equation_12(&groups, time);
        for (found, expected) in ideal(&groups, time, 1e-6).iter().zip(expected) {
            prop_assert!((found / expected - 1.0).abs() < 1e-6, "{found}, {expected}");
        }
    }

    /// No way to give each group one of twenty speeds is better, and the time suffices.
    #[test]
    fn no_other_speeds_within_the_time_take_less_energy((jobs, count, room) in drawn()) {
        let histogram = Histogram::of(&window(&jobs), count).unwrap();
        let budget = histogram.budget(0.9);
        let time = budget.demand.scale(room);
        let groups = groups(histogram.up_to(&budget));
        prop_assume!(groups.len() <= 3);
        let lowest = 0.2;
        let speeds: Vec<f64> = (0..20).map(|n| lowest + (1.0 - lowest) * f64::from(n) / 19.0).collect();
        let found = ideal(&groups, time, lowest);
        prop_assert!(taken(&groups, &found) <= time.as_ns() as f64 * (1.0 + 1e-9));
        let best = brute_force(&groups, time, &speeds).unwrap();
        prop_assert!(expected_energy(&groups, &found) <= best * (1.0 + 1e-6));
    }

    /// A schedule of real speeds meets the time, speeds up, and costs no less than the best of all
    /// choices; with two speeds in a group, no more than rounding up.
    #[test]
    fn a_schedule_of_real_speeds_keeps_its_time((jobs, count, room) in drawn()) {
        let histogram = Histogram::of(&window(&jobs), count).unwrap();
        let budget = histogram.budget(0.95);
        let time = budget.demand.scale(room);
        let speeds = athlon();
        let full = speeds.highest();
        let groups = groups(histogram.up_to(&budget));
        let ratios: Vec<f64> = speeds.speeds().map(|speed| speed.ratio(full)).collect();
        let best = brute_force(&groups, time, &ratios).unwrap();
        let energy_of = |schedule: &Schedule| {
            // In steps of a microsecond: slow, and like the definition.
            let at = |done: u64| {
                let group = groups.iter().find(|group| us(done) < group.from + group.size);
                let speed = schedule.at(us(done)).0.ratio(full);
                group.map_or(0.0, |group| 1e3 * group.beyond * speed * speed)
            };
            (0..budget.demand.as_ns() / 1000).map(at).sum::<f64>()
        };
        let [up, two] = [Rounding::Up, Rounding::Two]
            .map(|rounding| Schedule::stochastic(&histogram, &budget, time, &speeds, rounding));
        for schedule in [&up, &two] {
            let duration = schedule.duration(budget.demand, full);
            prop_assert!(duration <= time + us(1), "{duration}, {time}");
            let points: Vec<_> = schedule.points().collect();
            prop_assert!(points.windows(2).all(|p| p[0].after < p[1].after && p[0].speed < p[1].speed));
        }
        let slack = 1.0 + 1e-2;
        prop_assert!(energy_of(&up) * slack + 1e4 >= best);
        prop_assert!(energy_of(&two) <= energy_of(&up) * slack + 1e4);
    }
}
