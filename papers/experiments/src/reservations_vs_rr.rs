//! AQuoSA's experiment 1: a 10 ms and a 400 ms task that share a CPU, under SCHED_RR at one
//! priority, under reservations set by hand, and under onbeat, which is told nothing.

use serde::Serialize;

use crate::machine::{Machine, OnbeatReport};
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Table, or_dash};
use crate::rt_app::{Jobs, Log};
use crate::vm::{Ended, Guest};

const NAME: &str = "reservations-vs-rr";

const SECONDS: u64 = 20;
/// Time to find the periods.
const LEAVE_OUT_S: f64 = 3.0;
const HOGS: u64 = 4;

/// Each way: the guest's folder, its name, and the longest of the paper's response times for the
/// short task and the long one, in ms.
const WAYS: [(&str, &str, Option<[f64; 2]>); 3] = [
    ("rr", "SCHED_RR", Some([75.470, 100.961])),
    ("reserved", "reserved by hand", Some([4.480, 126.346])),
    ("onbeat", "onbeat", None),
];

/// Each task and its period in ms.
const TASKS: [(&str, f64); 2] = [("short", 10.0), ("long", 400.0)];

#[derive(Debug, Serialize)]
struct Figures {
    run: &'static str,
    task: &'static str,
    period_ms: f64,
    jobs: Jobs,
    paper_max_ms: Option<f64>,
    used: Option<f64>,
    reserved: Option<f64>,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let guest = Guest::new(NAME)
        .set("RUN_SECONDS", SECONDS)
        .set("HOGS", HOGS)
        .boot(machine)?;
    let figures = figures(&guest)?;
    draw(machine, &guest)?;
    machine.publish(&guest.ran(machine), NAME, &table(&figures), &figures)
}

fn figures(guest: &Ended) -> anyhow::Result<Vec<Figures>> {
    let report = OnbeatReport::read(&guest.folder.join("onbeat/report.json"))?;
    let mut figures = Vec::new();
    for (folder, run, paper) in WAYS {
        for (n, (task, period_ms)) in TASKS.into_iter().enumerate() {
            let seen = report
                .iter()
                .find(|thread| folder == "onbeat" && thread.comm.starts_with(task));
            figures.push(Figures {
                run,
                task,
                period_ms,
                jobs: Log::read(&guest.folder.join(folder), task)?.jobs(LEAVE_OUT_S),
                paper_max_ms: paper.and_then(|of_tasks| of_tasks.get(n).copied()),
                used: seen.map(|thread| thread.bandwidth_used),
                reserved: seen.map(|thread| thread.bandwidth_reserved),
            });
        }
    }
    Ok(figures)
}

fn table(figures: &[Figures]) -> Table {
    let ms = |ms: f64| format!("{ms:.2} ms");
    Table::of(figures, |f| {
        [
            ("run", f.run.to_owned()),
            ("task", format!("{} ms", f.period_ms)),
            ("jobs", f.jobs.jobs.to_string()),
            ("late", f.jobs.missed.to_string()),
            ("mean", ms(f.jobs.response_mean_ms)),
            ("p99", ms(f.jobs.response_p99_ms)),
            ("longest", ms(f.jobs.response_max_ms)),
            ("paper's longest", or_dash(f.paper_max_ms, ms)),
        ]
    })
}

/// Response times of the short task over time, and their distribution after the begin.
fn draw(machine: &Machine, guest: &Ended) -> anyhow::Result<()> {
    let (short, period_ms) = TASKS[0];
    let (mut traces, mut distributions, mut end_s) = (Vec::new(), Vec::new(), 1.0_f64);
    for (folder, run, _) in WAYS {
        let log = Log::read(&guest.folder.join(folder), short)?;
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
    trace.draw(machine.out(), "reservations-vs-rr")?;
    let cdf = Figure {
        title: "Response times of the 10 ms task: distribution".into(),
        x: Axis::logarithmic("response time (ms)", 1.0..1000.0),
        y: Axis::linear("share of the jobs", 0.0..1.0),
        lines: distributions,
        names: Corner::LowerRight,
    };
    cdf.draw(machine.out(), "reservations-vs-rr-cdf")
}
