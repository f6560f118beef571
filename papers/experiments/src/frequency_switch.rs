//! LFS++'s Fig. 10: a periodic task when the load beside it ends and the frequency falls, with the
//! power manager in the loop and with one that knows nothing of the task; for both ways of asking
//! for a frequency.

use std::ops::Range;

use anyhow::Context;

use crate::log::numbers;
use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::Table;
use crate::vm::Guest;

const NAME: &str = "frequency-switch";

const PERIOD_MS: f64 = 100.0;

/// The jobs in the plots, counted from the fall.
const SHOWN: Range<f64> = -10.0..70.0;

/// Of the task in each run; after how many of them the load beside it ends.
const JOBS: u64 = 140;
const LOADED_JOBS: u64 = 50;

/// cpufreq's governor, and how onbeat asks it for a frequency.
const GOVERNORS: [(&str, &str); 2] = [
    ("userspace", "userspace (setspeed)"),
    ("schedutil", "schedutil (limits)"),
];

/// The guest's folder; how its line is called; `protocol` in the table, and the paper's overruns.
const WAYS: [(&str, &str, &str, &str); 2] = [
    ("alone", "without the protocol", "no", "until 29 jobs after"),
    ("protocol", "with the protocol", "yes", "no overrun"),
];

/// One run of the task.
struct Switch {
    labels: [&'static str; 3],
    /// Of each job its place after the first one at the lower frequency, its completion time and
    /// its execution time, in ms.
    jobs: Vec<[f64; 3]>,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let guest = Guest::new(NAME)
        .set("JOBS", JOBS)
        .set("LOADED_JOBS", LOADED_JOBS)
        .boot(machine)?;
    let mut all = Vec::new();
    for (governor, asked) in GOVERNORS {
        let period = vec![(SHOWN.start, PERIOD_MS), (SHOWN.end, PERIOD_MS)];
        let mut lines = Vec::new();
        for (way, line, protocol, paper) in WAYS {
            let folder = guest.folder.join(format!("{governor}-{way}"));
            let jobs = since_the_fall(&numbers(&folder.join("jobs"))?)?;
            let shown = jobs.iter().filter(|[at, ..]| SHOWN.contains(at));
            let points = shown.map(|&[at, ms, _]| (at, ms)).collect();
            lines.push(Line::new(line, Look::Marked, points));
            let labels = [asked, protocol, paper];
            all.push(Switch { labels, jobs });
        }
        lines.push(Line::new("period", Look::Straight, period));
        let figure = Figure {
            title: format!("A fall from 2.4 to 1.5 GHz, {governor}"),
            x: Axis::linear("job after the fall", SHOWN),
            y: Axis::linear("completion time (ms)", 0.0..140.0),
            lines,
            names: Corner::UpperRight,
        };
        figure.draw(machine.out(), &format!("{NAME}-{governor}"))?;
    }
    machine.publish(&guest.ran(machine), NAME, &table(&all));
    Ok(())
}

/// Of `number release start end used kHz work began`, times in us.
fn since_the_fall(log: &[[f64; 8]]) -> anyhow::Result<Vec<[f64; 3]>> {
    let khz = |job: &[f64; 8]| job[5];
    let highest = log.iter().map(khz).fold(0.0, f64::max);
    // It may be lower before the load begins; while that lasts it is the highest.
    let last = log.iter().rposition(|job| khz(job) == highest);
    let fell = last.and_then(|last| log.get(last + 1));
    let [fell, ..] = fell.context("the frequency never fell: give the run more jobs")?;
    let job = |[number, released, _, ended, used, ..]: &[f64; 8]| {
        [number - fell, (ended - released) / 1000.0, used / 1000.0]
    };
    Ok(log.iter().map(job).collect())
}

fn table(all: &[Switch]) -> Table {
    let ms = |ms: f64| format!("{ms:.1} ms");
    Table::of(all, |Switch { labels, jobs }| {
        let [asked, protocol, paper] = labels.map(str::to_owned);
        // The job before the fall may end after it.
        let (before, after) = jobs.split_at(jobs.partition_point(|[at, ..]| *at < -1.0));
        let used = |job: Option<&[f64; 3]>| ms(job.map_or(0.0, |job| job[2]));
        let late = || after.iter().filter(|job| job[1] > PERIOD_MS);
        let last = late()
            .next_back()
            .map_or("-".to_owned(), |[at, ..]| format!("{} jobs", at.max(0.0)));
        let longest = after.iter().map(|job| job[1]).fold(0.0, f64::max);
        [
            ("governor", asked),
            ("protocol", protocol),
            ("jobs", after.len().to_string()),
            ("overruns", late().count().to_string()),
            ("last after", last),
            ("longest", ms(longest)),
            ("a job took", used(before.last())),
            ("and takes", used(after.last())),
            ("paper", paper),
        ]
    })
}
