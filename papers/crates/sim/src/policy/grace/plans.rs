//! From what is known of every task's demand to its budget and speeds: what the paper does at user
//! level when a job ends (sections 2.2 to 2.4).

use crate::stochastic::{Budget, Histogram, Schedule, time_allocations, uniform_speed};
use onbeat_model::{Demand, Ladder, Span};
use onbeat_policies::grace::{POINTS, Plan, Point};

use super::GraceSettings;
use super::scheme::SchemeSpeeds;
use crate::TaskIndex;

#[derive(Debug)]
pub(super) struct KnownDemand {
    task: TaskIndex,
    period: Span,
    histogram: Histogram,
    budget: Budget,
}

impl KnownDemand {
    /// As its last jobs demanded; none without a job.
    pub(super) fn of(
        task: TaskIndex,
        demand: &Demand,
        period: Span,
        rho: f64,
        settings: &GraceSettings,
    ) -> Option<Self> {
        // Each group is a point of the schedule.
        let histogram = Histogram::of(demand, settings.groups.min(POINTS - 1))?;
        let budget = if settings.scheme.allocates_worst() {
            histogram.worst()
        } else {
            histogram.budget(rho)
        };
        Some(Self {
            task,
            period,
            histogram,
            budget,
        })
    }
}

/// The share of best effort is as good as a task with this period (eq. 4 looks at the ratio alone).
const SECOND: Span = Span::from_ms(1000);

fn budgets(known: &[KnownDemand], settings: &GraceSettings) -> Vec<(Span, Span)> {
    let kept = (SECOND.scale(settings.best_effort), SECOND);
    let tasks = known.iter().map(|task| (task.budget.demand, task.period));
    tasks.chain([kept]).collect()
}

fn uniform_khz(known: &[KnownDemand], settings: &GraceSettings, speeds: &Ladder) -> u64 {
    let ratio = uniform_speed(&budgets(known, settings)).min(1.0);
    // A hundredth of a kHz above a speed that there is must not cost the next one.
    let khz = (ratio * speeds.highest().as_khz() as f64 - 0.01).ceil() as u64;
    khz.max(speeds.lowest().as_khz())
}

pub(super) fn of(
    known: &[KnownDemand],
    settings: &GraceSettings,
    speeds: &Ladder,
) -> Vec<(TaskIndex, Plan)> {
    let highest = speeds.highest().as_khz();
    let uniform = uniform_khz(known, settings, speeds);
    let always = |speed| vec![Point { after: 0, speed }];
    let times = time_allocations(&budgets(known, settings));
    known
        .iter()
        .zip(times)
        .map(|(known, time)| {
            let points = match settings.scheme.speeds() {
                SchemeSpeeds::Highest => always(highest),
                SchemeSpeeds::Uniform => always(uniform),
                SchemeSpeeds::Reclaiming | SchemeSpeeds::InUse => Vec::new(),
                SchemeSpeeds::Stochastic => points(&Schedule::stochastic(
                    &known.histogram,
                    &known.budget,
                    time,
                    speeds,
                    settings.rounding,
                )),
                SchemeSpeeds::AsWritten(differences) => points(&Schedule::as_written(
                    &known.histogram,
                    &known.budget,
                    time,
                    speeds,
                    differences,
                )),
            };
            let budget = known.budget.demand.as_ns();
            (known.task, Plan::new(known.period.as_ns(), budget, points))
        })
        .collect()
}

fn points(schedule: &Schedule) -> Vec<Point> {
    schedule
        .points()
        .map(|point| Point {
            after: point.after.as_ns(),
            speed: point.speed.as_khz(),
        })
        .collect()
}
