//! The plans of `onbeat scheduler start grace`: budgets and speeds from what jobs demanded, as GRACE-OS has them.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use onbeat_act::cpufreq::Tree;
use onbeat_decide::stochastic::schedule::Rounding;
use onbeat_decide::stochastic::{Budget, Histogram, Schedule, time_allocations};
use onbeat_model::{Demand, Ladder, Span};
use onbeat_schedulers::Running;
use onbeat_schedulers::grace::{Plan, set_plan};

use crate::cli::PlanOption;

/// The probability with which a job stays within its budget (GRACE-OS, section 4.1).
const RHO: f64 = 0.95;
/// Of the histogram: no more groups than a schedule can have points.
const GROUPS: usize = 15;

/// Gives each thread its plan.
pub(super) fn give(running: &mut Running, options: &[PlanOption]) -> anyhow::Result<()> {
    if options.is_empty() {
        return Ok(());
    }
    let name = running.name();
    ensure!(
        name == "grace",
        "--plan: {name} takes no plans, the scheduler grace does"
    );
    let ladder = Tree::default().domain(0).ladder().context(
        "--plan: the CPUs have no speeds that can be set ('onbeat doctor' says what to do)",
    )?;
    let mut known = Vec::new();
    for option in options {
        let text = fs::read_to_string(&option.demands)
            .with_context(|| format!("cannot read {}", option.demands.display()))?;
        let demand = demands(&text, &option.demands)?;
        let histogram = Histogram::of(&demand, GROUPS).context("no demands")?;
        let budget = histogram.budget(RHO);
        known.push((option, histogram, budget));
    }
    let tasks: Vec<(Span, Span)> = known
        .iter()
        .map(|(option, _, budget)| (budget.demand, option.period))
        .collect();
    let times = time_allocations(&tasks);
    for ((number, (option, histogram, budget)), time) in (0..).zip(&known).zip(times) {
        let plan = plan(option.period, histogram, budget, time, &ladder);
        set_plan(running, number, option.tid, &plan)
            .with_context(|| format!("cannot plan for thread {}", option.tid))?;
        tell(option.tid, &plan);
    }
    Ok(())
}

fn tell(tid: u32, plan: &Plan) {
    let points = plan.points.iter();
    let points: Vec<String> = points
        .map(|(after, speed)| format!("{speed} after {after}"))
        .collect();
    eprintln!(
        "onbeat: thread {tid}: {} of work every {}; {}",
        plan.budget,
        plan.period,
        points.join(", ")
    );
}

fn plan(period: Span, histogram: &Histogram, budget: &Budget, time: Span, ladder: &Ladder) -> Plan {
    let schedule = Schedule::stochastic(histogram, budget, time, ladder, Rounding::Up);
    Plan {
        period,
        budget: budget.demand,
        points: schedule
            .points()
            .map(|point| (point.after, point.speed))
            .collect(),
        highest: ladder.highest(),
    }
}

/// One whole number of ns a line, in time at the highest speed; what does not begin with a digit is a heading.
fn demands(text: &str, file: &Path) -> anyhow::Result<Demand> {
    let lines = text.lines().map(str::trim).enumerate();
    let numbers = lines.filter(|(_, line)| line.starts_with(|c: char| c.is_ascii_digit()));
    let numbers: Vec<(usize, &str)> = numbers.collect();
    if numbers.is_empty() {
        bail!("{} holds no demands: a number of ns a line", file.display());
    }
    let mut demand = Demand::new(numbers.len());
    for (number, line) in numbers {
        let ns = line
            .parse()
            .with_context(|| format!("{}:{}: no whole number of ns", file.display(), number + 1))?;
        demand.record(Span::from_ns(ns));
    }
    Ok(demand)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::Speed;

    #[test]
    fn demands_are_numbers_below_their_headings() {
        let text = "# period_ns: 30000000\ndemand_ns\n300\n100\n200\n";
        let read = demands(text, Path::new("x")).unwrap();
        assert_eq!(read.max(), Some(Span::from_ns(300)));
        assert_eq!(read.len(), 3);
        let wrong = demands("1\n2.5\n", Path::new("x")).unwrap_err();
        assert_eq!(wrong.to_string(), "x:2: no whole number of ns");
        assert!(demands("demand_ns\n", Path::new("x")).is_err());
    }

    #[test]
    fn a_plan_begins_slowly_and_has_time_for_its_budget() {
        let mut demand = Demand::new(100);
        // 2 ms, and more the rarer, up to 10 ms.
        for job in 0..=100_u64 {
            demand.record(Span::from_us(2000 + job * job * job / 125));
        }
        let histogram = Histogram::of(&demand, GROUPS).unwrap();
        let budget = histogram.budget(RHO);
        let mhz = |mhz: u64| Speed::from_khz(mhz * 1000).unwrap();
        let ladder = Ladder::new([mhz(500), mhz(1000)]).unwrap();
        let period = Span::from_ms(16);
        let plan = plan(period, &histogram, &budget, period, &ladder);
        assert!(plan.budget >= Span::from_us(8859), "{}", plan.budget);
        let [(zero, slow), (after, fast)] = plan.points[..] else {
            panic!("{:?}", plan.points);
        };
        assert_eq!((zero, slow, fast), (Span::ZERO, mhz(500), mhz(1000)));
        // x of the budget at half the speed, and the rest at the whole, are done within the period.
        assert!(
            after > Span::ZERO && after <= period - plan.budget,
            "{after}"
        );
    }
}
