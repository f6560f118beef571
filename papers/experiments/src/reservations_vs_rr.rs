//! AQuoSA's experiment 1: a 10 ms and a 400 ms task that share a CPU, under SCHED_RR at one
//! priority, under reservations set by hand, and under onbeat, which is told nothing.

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Table, or_dash};
use crate::rt_app::Log;
use crate::vm::Guest;

const NAME: &str = "reservations-vs-rr";

const SECONDS: u64 = 20;
/// Time to find the periods.
const LEAVE_OUT_S: f64 = 3.0;
const HOGS: u64 = 4;

/// Each way: the guest's folder, its name, and the longest of the paper's response times for the
/// short task and the long one, in ms.
const WAYS: [(&str, &str, [Option<f64>; 2]); 3] = [
    ("rr", "SCHED_RR", [Some(75.470), Some(100.961)]),
    ("reserved", "reserved by hand", [Some(4.480), Some(126.346)]),
    ("onbeat", "onbeat", [None; 2]),
];

/// Each task and its period in ms.
const TASKS: [(&str, f64); 2] = [("short", 10.0), ("long", 400.0)];

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let guest = Guest::new(NAME)
        .set("RUN_SECONDS", SECONDS)
        .set("HOGS", HOGS)
        .boot(machine)?;
    let mut rows = Vec::new();
    for (folder, run, paper) in WAYS {
        for (task, paper) in TASKS.into_iter().zip(paper) {
            rows.push((
                run,
                task,
                paper,
                Log::read(&guest.folder.join(folder), task.0)?,
            ));
        }
    }
    let table = Table::of(&rows, |(run, (_, period_ms), paper, log)| {
        let ms = |ms: f64| format!("{ms:.2} ms");
        let jobs = log.jobs(LEAVE_OUT_S);
        [
            ("run", (*run).to_owned()),
            ("task", format!("{period_ms} ms")),
            ("jobs", jobs.jobs.to_string()),
            ("late", jobs.missed.to_string()),
            ("mean", ms(jobs.response_mean_ms)),
            ("p99", ms(jobs.response_p99_ms)),
            ("longest", ms(jobs.response_max_ms)),
            ("paper's longest", or_dash(*paper, ms)),
        ]
    });
    let short = rows.iter().filter(|(_, task, ..)| *task == TASKS[0]);
    draw(
        machine,
        &short.map(|(run, .., log)| (*run, log)).collect::<Vec<_>>(),
    )?;
    machine.publish(&guest.ran(machine), NAME, &table);
    Ok(())
}

/// Response times of the short task over time, and their distribution after the begin.
fn draw(machine: &Machine, logs: &[(&str, &Log)]) -> anyhow::Result<()> {
    let period_ms = TASKS[0].1;
    let (mut traces, mut distributions, mut end_s) = (Vec::new(), Vec::new(), 1.0_f64);
    for (run, log) in logs {
        let (responses, counted) = (log.responses(0.0), log.responses(LEAVE_OUT_S));
        end_s = responses.iter().fold(end_s, |end, (at, _)| end.max(*at));
        let values: Vec<f64> = counted.iter().map(|(_, ms)| *ms).collect();
        traces.push(Line::new(run, Look::Points, responses));
        distributions.push(Line::new(run, Look::Steps, distribution(&values)));
    }
    let deadline = |points| Line::new("period", Look::Straight, points);
    traces.push(deadline(vec![(0.0, period_ms), (end_s, period_ms)]));
    distributions.push(deadline(vec![(period_ms, 0.0), (period_ms, 1.0)]));
    let trace = Figure {
        title: "Response times of the 10 ms task beside the 400 ms task".into(),
        x: Axis::linear("time (s)", 0.0..end_s),
        y: Axis::logarithmic("response time (ms)", 1.0..1000.0),
        lines: traces,
        names: Corner::UpperRight,
    };
    trace.draw(machine.out(), NAME)?;
    let cdf = Figure {
        title: "Response times of the 10 ms task: distribution".into(),
        x: Axis::logarithmic("response time (ms)", 1.0..1000.0),
        y: Axis::linear("share of the jobs", 0.0..1.0),
        lines: distributions,
        names: Corner::LowerRight,
    };
    cdf.draw(machine.out(), "reservations-vs-rr-cdf")
}
