//! Fig. 8 and 9: what estimating a demand and scheduling cost, timed on this machine.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant as Clock;

use onbeat_model::{Demand, Instant, Span, TaskId};
use onbeat_sim::machine::Costs;
use onbeat_sim::policy::grace::{Grace, GraceClass, GraceSettings};
use onbeat_sim::stochastic::{Histogram, Schedule, schedule::Rounding};
use onbeat_sim::{Cpus, Machine};

use super::case::{athlon, workload};
use super::codecs::Codec;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::Table;
use crate::statistics::quantile;

const GROUPS: [usize; 6] = [5, 10, 15, 30, 60, 100];
const WINDOWS: [usize; 2] = [50, 100];
const TASKS: [usize; 6] = [1, 2, 4, 6, 8, 10];
const REPEATS: usize = 200;

/// Histogram, budget and speeds of one task.
pub(super) struct EstimationCost {
    window: usize,
    groups: usize,
    microseconds: f64,
}

/// One job of one of several copies of toast: released, queued, picked, charged, ended; with the
/// simulated machine around it.
pub(super) struct SchedulingCost {
    tasks: usize,
    nanoseconds_a_job: f64,
}

/// Fig. 8, on the jobs of mpgplay: the median of many.
pub(super) fn estimation(codecs: &[Codec]) -> Vec<EstimationCost> {
    let Some(mpgplay) = codecs.iter().find(|codec| codec.name == "mpgplay") else {
        return Vec::new();
    };
    let speeds = athlon();
    let mut all = Vec::new();
    for window in WINDOWS {
        let mut demand = Demand::new(window);
        mpgplay
            .jobs
            .iter()
            .take(window)
            .for_each(|job| demand.record(job.as_span()));
        for groups in GROUPS {
            let once = || {
                let began = Clock::now();
                if let Some(histogram) = Histogram::of(&demand, groups) {
                    let budget = histogram.budget(0.95);
                    let time = budget.demand.scale(1.5);
                    black_box(Schedule::stochastic(
                        &histogram,
                        &budget,
                        time,
                        &speeds,
                        Rounding::Up,
                    ));
                }
                began.elapsed().as_secs_f64() * 1e6
            };
            let times: Vec<f64> = (0..REPEATS).map(|_| once()).collect();
            all.push(EstimationCost {
                window,
                groups,
                microseconds: quantile(&times, 0.5),
            });
        }
    }
    all
}

/// Fig. 9.
pub(super) fn scheduling(codecs: &[Codec]) -> Vec<SchedulingCost> {
    let Some(toast) = codecs.iter().find(|codec| codec.name == "toast") else {
        return Vec::new();
    };
    let class = GraceClass::RealTime {
        period: toast.period,
        rho: None,
    };
    let once = |tasks: usize| {
        let policy = Grace::new(
            GraceSettings::default(),
            athlon(),
            1,
            (0..tasks).map(|_| (class, 0)),
        );
        let cpus = Cpus {
            count: 1,
            speeds: athlon(),
            limit: None,
            continuous: false,
            costs: Costs::default(),
        };
        let mut machine = Machine::new(&cpus, policy, ());
        for tid in (1..).take(tasks) {
            machine.add(TaskId::recorded(tid), workload(toast));
        }
        machine.run_until(Instant::ZERO + Span::from_secs(5));
        let (jobs, began) = (machine.jobs_done(), Clock::now());
        machine.run_until(Instant::ZERO + Span::from_secs(35));
        began.elapsed().as_secs_f64() * 1e9 / (machine.jobs_done() - jobs).max(1) as f64
    };
    let median = |tasks| quantile(&(0..9).map(|_| once(tasks)).collect::<Vec<f64>>(), 0.5);
    let of = |&tasks: &usize| SchedulingCost {
        tasks,
        nanoseconds_a_job: median(tasks),
    };
    TASKS.iter().map(of).collect()
}

pub(super) fn table(estimation: &[EstimationCost], scheduling: &[SchedulingCost]) -> Table {
    let of_fifty = estimation.iter().filter(|row| row.window == WINDOWS[0]);
    let estimation = of_fifty.map(|row| {
        let of = format!("the last {} jobs, {} groups", row.window, row.groups);
        ("estimation", of, format!("{:.0} us", row.microseconds))
    });
    let scheduling = scheduling.iter().map(|row| {
        let of = format!("{} copies of toast", row.tasks);
        let takes = format!("{:.0} ns a job", row.nanoseconds_a_job);
        ("scheduling and its simulation", of, takes)
    });
    Table::of(estimation.chain(scheduling), |(what, of, takes)| {
        [("what", what.to_owned()), ("of", of), ("takes", takes)]
    })
}

pub(super) fn draw(
    out: &Path,
    estimation: &[EstimationCost],
    scheduling: &[SchedulingCost],
) -> anyhow::Result<()> {
    let lines = WINDOWS.map(|window| {
        let of = estimation.iter().filter(|e| e.window == window);
        let points = of.map(|e| (e.groups as f64, e.microseconds)).collect();
        Line::new(&format!("the last {window} jobs"), Look::Marked, points)
    });
    let most = estimation
        .iter()
        .map(|e| e.microseconds)
        .fold(0.1, f64::max);
    let figure = Figure {
        title: "Cost of estimation".to_owned(),
        x: Axis::linear("groups", 0.0..100.0),
        y: Axis::linear("us", 0.0..most * 1.3),
        lines: lines.into(),
        names: Corner::UpperLeft,
    };
    figure.draw(out, "grace-os-estimation")?;
    let points: Vec<_> = scheduling
        .iter()
        .map(|s| (s.tasks as f64, s.nanoseconds_a_job))
        .collect();
    let most = points.iter().map(|p| p.1).fold(1.0, f64::max);
    let figure = Figure {
        title: "Cost of scheduling".to_owned(),
        x: Axis::linear("tasks", 0.0..10.0),
        y: Axis::linear("ns a job, with the simulation", 0.0..most * 1.3),
        lines: vec![Line::new("", Look::Marked, points)],
        names: Corner::UpperLeft,
    };
    figure.draw(out, "grace-os-scheduling")
}
