//! The three tasks of LFS++'s Table I: under the kernel's default scheduler, under LFS++ as the
//! paper has it, under onbeat, and under reservations set by hand, from known periods and execution
//! times. On this machine (`live`), or in virtual time (`guest`).

mod guest;
mod live;

use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::machine::{Machine, ThreadFigures};
use crate::plot::{Axis, Corner, Figure, Line, Look, distribution};
use crate::results::{Table, or_dash, percent};
use crate::rt_app::{Jobs, Log, RtAppTask};

const NAME: &str = "three-rt-apps";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where: on this machine, or on one CPU in virtual time
    #[arg(long = "in", value_enum, default_value_t)]
    place: RunPlace,
    /// The number of images of the guest, in virtual time
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=100))]
    images: u64,
    /// For how long the tasks run in each way
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,
    /// The begin that is left out of all figures: time to find the periods
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    leave_out: u64,
    /// CPU hogs in all; the paper had none [default: 4 on this machine, none in virtual time]
    #[arg(long, value_name = "N")]
    hogs: Option<usize>,
    /// When the hogs start on this machine: this time after the tasks, or before them if 0, which
    /// starves the tasks from their first job on
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    hogs_after: u64,
}

/// Where the tasks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum RunPlace {
    /// On this machine
    #[default]
    Live,
    /// In the virtual machine
    Vm,
}

/// By how much the reservations set by hand exceed the nominal execution times.
const HAND_SPREAD: f64 = 0.1;

/// LFS++, Table I: name, period and load.
const TABLE_ONE: [(&str, u64, f64); 3] = [
    ("short", 3505, 0.30),
    ("middle", 8220, 0.28),
    ("long", 100_000, 0.21),
];

/// The share of jobs in time in the paper (Fig. 6), of which run and task.
const PAPER_IN_TIME: [(&str, &str, f64); 2] = [
    ("default scheduler", "short", 0.57),
    ("LFS++", "short", 0.95),
];

#[derive(Debug, Serialize)]
struct Figures {
    run: &'static str,
    task: &'static str,
    period_us: u64,
    jobs: Jobs,
    missed_share: f64,
    /// The same for each image, in virtual time.
    missed_share_of_images: Vec<f64>,
    used: Option<f64>,
    reserved: Option<f64>,
    reserved_over_used: Option<f64>,
    changes: Option<u64>,
    exhaustions: Option<u64>,
}

impl Figures {
    /// Those of `task`, which used the share `used` of a CPU as far as that was seen.
    fn new(
        run: &'static str,
        task: &RtAppTask,
        jobs: Jobs,
        seen: Option<&ThreadFigures>,
        used: Option<f64>,
    ) -> Self {
        let by_hand = task
            .reserved_us
            .map(|runtime_us| runtime_us as f64 / task.period_us as f64);
        let reserved = seen.map(|t| t.bandwidth_reserved).or(by_hand);
        let used = seen.map(|t| t.bandwidth_used).or(used);
        Self {
            run,
            task: task.name,
            period_us: task.period_us,
            missed_share: jobs.miss_ratio(),
            missed_share_of_images: Vec::new(),
            jobs,
            used,
            reserved,
            reserved_over_used: reserved
                .zip(used)
                .map(|(reserved, used)| reserved / used.max(1e-9)),
            changes: seen.map(|t| t.changes),
            exhaustions: seen.and_then(|t| t.exhaustions),
        }
    }
}

/// A run's name, and the response times in ms of the shortest task's jobs.
type Responses = (&'static str, Vec<f64>);

fn responses_ms(log: &Log, leave_out_s: f64) -> Vec<f64> {
    let responses = log.responses(leave_out_s);
    responses.iter().map(|(_, ms)| *ms).collect()
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let (ran, figures, responses) = match args.place {
        RunPlace::Live => live::run(machine, args)?,
        RunPlace::Vm => guest::run(machine, args)?,
    };
    let name = match args.place {
        RunPlace::Live => NAME.to_owned(),
        RunPlace::Vm => format!("{NAME}-vm"),
    };
    draw(machine.out(), &name, responses)?;
    let paper = json!({
        "source": "LFS++, Table I and Fig. 6 (Core 2 Duo P9600, no hogs, 79% load)",
        "share_in_time": PAPER_IN_TIME,
        "share_below_1.5_ms_of_the_shortest": { "LFS++": 0.93 },
    });
    let table = table(&figures);
    machine.publish(&ran, &name, &table, &figures, paper)
}

fn tasks(by_hand: bool) -> Vec<RtAppTask> {
    TABLE_ONE
        .into_iter()
        .map(|(name, period_us, load)| {
            let run_us = period_us as f64 * load;
            let reserved_us = (run_us * (1.0 + HAND_SPREAD)).round() as u64;
            RtAppTask {
                name,
                period_us,
                run_us: run_us.round() as u64,
                reserved_us: by_hand.then_some(reserved_us),
            }
        })
        .collect()
}

fn table(figures: &[Figures]) -> Table {
    let share = |share| percent(share, 1);
    Table::of(figures, |f| {
        let paper = PAPER_IN_TIME
            .iter()
            .find(|(run, task, _)| (*run, *task) == (f.run, f.task));
        [
            ("run", f.run.to_owned()),
            ("task", f.task.to_owned()),
            ("period", format!("{:.3} ms", f.period_us as f64 / 1000.0)),
            ("jobs", f.jobs.jobs.to_string()),
            ("in time", in_time(f)),
            ("paper", or_dash(paper, |(_, _, share)| percent(*share, 0))),
            ("p50", format!("{:.2} ms", f.jobs.response_p50_ms)),
            ("p99", format!("{:.2} ms", f.jobs.response_p99_ms)),
            ("longest", format!("{:.2} ms", f.jobs.response_max_ms)),
            ("used", or_dash(f.used, share)),
            ("reserved", or_dash(f.reserved, share)),
            (
                "ratio",
                or_dash(f.reserved_over_used, |r| format!("{r:.2}")),
            ),
            ("changes", or_dash(f.changes, |n| n.to_string())),
        ]
    })
}

/// The share of jobs in time, with those of the worst and of the best image if they differ.
fn in_time(figures: &Figures) -> String {
    let share = |missed: f64| format!("{:.2}%", (1.0 - missed) * 100.0);
    let of_images = figures.missed_share_of_images.iter().copied();
    let (least, most) = of_images.fold((1.0_f64, 0.0_f64), |(least, most), missed| {
        (least.min(missed), most.max(missed))
    });
    let all = share(figures.missed_share);
    if share(least) == share(most) || least > most {
        all
    } else {
        format!("{all} ({} to {})", share(most), share(least))
    }
}

/// Fig. 6: how the shortest task's response times are distributed.
fn draw(out: &Path, name: &str, responses: Vec<Responses>) -> anyhow::Result<()> {
    let mut lines: Vec<Line> = responses
        .into_iter()
        .map(|(run, ms)| Line::new(run, Look::Steps, distribution(&ms)))
        .collect();
    let deadline_ms = TABLE_ONE[0].1 as f64 / 1000.0;
    let deadline = vec![(deadline_ms, 0.0), (deadline_ms, 1.0)];
    lines.push(Line::new("deadline", Look::Straight, deadline));
    let figure = Figure {
        title: "Response times of the task with the shortest period".into(),
        x: Axis::logarithmic("response time (ms)", 0.5..1000.0),
        y: Axis::linear("share of the jobs", 0.0..1.0),
        lines,
        names: Corner::LowerRight,
    };
    figure.draw(out, name)
}
