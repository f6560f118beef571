//! The worth of each of onbeat's additions to LFS++: one after the other, from the paper's
//! controller to onbeat as it comes.

use onbeat_decide::predictor::{Parameters, PredictorKind};
use onbeat_lfspp::written::{Additions, LfsPlusPlus, WrittenController as Written};
use serde::Serialize;

use super::beds::Bed;
use super::curve::Interval;
use super::outcomes;
use super::run::{Method, OnbeatVariant};
use crate::machine::Machine;
use crate::results::Table;

/// One addition, with all before it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Step {
    addition: &'static str,
    beds: Vec<OnBed>,
}

#[derive(Clone, Debug, Serialize)]
struct OnBed {
    bed: &'static str,
    late: Interval,
    reserved_over_needed: Interval,
}

/// The spread of the papers' that is used throughout.
const SPREAD: f64 = 0.2;

fn steps() -> Vec<(&'static str, Method)> {
    let papers = Parameters {
        spread: SPREAD,
        ..Parameters::default()
    };
    let written = |additions| {
        Method::Written(Written::LfsPlusPlus(LfsPlusPlus {
            parameters: papers,
            additions,
            ..LfsPlusPlus::default()
        }))
    };
    let first_budget = Additions {
        first_budget: true,
        ..Additions::default()
    };
    let raise = Additions {
        raise: true,
        ..first_budget
    };
    let hysteresis = Additions {
        hysteresis: true,
        ..raise
    };
    let tracking = Additions {
        tracking: true,
        ..hysteresis
    };
    // In the loop an analysis comes as soon as there is something to hear, and tests a lock.
    let in_loop = OnbeatVariant {
        papers_analyser: true,
        predictor: PredictorKind::Rate,
        parameters: Parameters {
            rate_boost: papers.boost,
            ..papers
        },
        probation: false,
        ..OnbeatVariant::default()
    };
    let analyser = OnbeatVariant {
        papers_analyser: false,
        ..in_loop
    };
    let jobs = OnbeatVariant {
        predictor: PredictorKind::Percentile,
        // No more spread than the papers': nothing is learnt.
        parameters: Parameters {
            widest_spread: SPREAD,
            ..papers
        },
        ..analyser
    };
    let learnt = OnbeatVariant {
        parameters: OnbeatVariant::default().parameters,
        ..jobs
    };
    let probation = OnbeatVariant {
        probation: true,
        ..learnt
    };
    let soft = OnbeatVariant {
        hard: false,
        ..probation
    };
    vec![
        ("LFS++ as written, x = 0.2", written(Additions::default())),
        ("+ a first budget from the jobs seen", written(first_budget)),
        ("+ an exhausted budget is raised", written(raise)),
        ("+ hysteresis", written(hysteresis)),
        ("+ tracking between analyses", written(tracking)),
        (
            "+ onbeat's loop: locks that are tested",
            Method::Onbeat(in_loop),
        ),
        ("+ onbeat's analyser", Method::Onbeat(analyser)),
        ("+ jobs in place of samples", Method::Onbeat(jobs)),
        ("+ a learnt spread, rho = 99%", Method::Onbeat(learnt)),
        (
            "+ probation of starved threads, nice -20",
            Method::Onbeat(probation),
        ),
        ("+ soft reservations: onbeat", Method::Onbeat(soft)),
    ]
}

pub(super) fn run(machine: &Machine, runs: u64) -> anyhow::Result<Vec<Step>> {
    let mut done = Vec::new();
    for (addition, method) in steps() {
        machine.go_on()?;
        eprintln!("{addition}");
        let on = |bed: Bed| {
            let outcomes = outcomes(bed, &method, 0.0, runs);
            let late: Vec<f64> = outcomes.iter().map(|outcome| outcome.late).collect();
            let reserved: Vec<f64> = outcomes.iter().filter_map(|o| o.reserved).collect();
            OnBed {
                bed: bed.name(),
                late: Interval::of(&late),
                reserved_over_needed: Interval::of(&reserved),
            }
        };
        done.push(Step {
            addition,
            beds: Bed::ALL.map(on).to_vec(),
        });
    }
    Ok(done)
}

/// Late jobs, and what is reserved over what is needed, on each bed.
pub(super) fn table(steps: &[Step]) -> Table {
    Table::of(steps, |step| {
        let late = |n: usize| {
            step.beds
                .get(n)
                .map_or(String::new(), |on| on.late.percent())
        };
        let reserved = |n: usize| {
            let on = step.beds.get(n);
            on.map_or(String::new(), |on| {
                format!("{:.2}", on.reserved_over_needed.mean)
            })
        };
        [
            ("with", step.addition.to_owned()),
            ("film: late", late(0)),
            ("reserved", reserved(0)),
            ("rt-apps: late", late(1)),
            ("reserved", reserved(1)),
            ("encoder: late", late(2)),
            ("reserved", reserved(2)),
            ("frequency: late", late(3)),
            ("reserved", reserved(3)),
        ]
    })
}
