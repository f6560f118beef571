//! LFS++'s Fig. 10: a periodic task when the load beside it ends and the frequency falls, with the
//! power manager in the loop and with one that knows nothing of the task; for both ways of asking
//! for a frequency.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, anyhow};
use serde::Serialize;

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::{Table, yes_no};
use crate::vm::{Ended, Guest};

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

const PREDICTORS: [(&str, &str); 2] = [("percentile", "onbeat's"), ("rate", "the paper's")];

const WAYS: [(&str, &str); 2] = [("alone", "without"), ("protocol", "with")];

#[derive(Clone, Copy, Debug)]
struct LoggedJob {
    number: u64,
    released_us: u64,
    ended_us: u64,
    used_us: u64,
    khz: u64,
}

#[derive(Debug, Serialize)]
struct Figures {
    governor: &'static str,
    predictor: &'static str,
    mode_change_protocol: bool,
    /// The first job that began at the lower frequency.
    fell_at_job: u64,
    jobs: usize,
    /// Those that ended after the release of the next.
    overruns: usize,
    /// From the fall to the last of them, in jobs.
    last_overrun: u64,
    longest_ms: f64,
    /// A job's demand before the fall, and after it.
    used_before_ms: f64,
    used_after_ms: f64,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let guest = Guest::new(NAME)
        .set("JOBS", JOBS)
        .set("LOADED_JOBS", LOADED_JOBS)
        .boot(machine)?;
    let mut figures = Vec::new();
    for (governor, asked) in GOVERNORS {
        for (predictor, whose) in PREDICTORS {
            let mut lines = Vec::new();
            for (way, how) in WAYS {
                let jobs = read_jobs(&guest, governor, predictor, way)?;
                let of_run = figures_of(&jobs, asked, whose, way == "protocol")?;
                lines.push(line(&jobs, of_run.fell_at_job, how));
                figures.push(of_run);
            }
            draw(machine, lines, (governor, predictor, whose))?;
        }
    }
    machine.publish(&guest.ran(machine), NAME, &table(&figures), &figures)
}

fn read_jobs(
    guest: &Ended,
    governor: &str,
    predictor: &str,
    way: &str,
) -> anyhow::Result<Vec<LoggedJob>> {
    let folder = guest.folder.join(format!("{governor}-{predictor}-{way}"));
    read_log(&folder.join("jobs"))
}

fn read_log(path: &Path) -> anyhow::Result<Vec<LoggedJob>> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("the task wrote no log to {}", path.display()))?;
    let jobs: Option<Vec<LoggedJob>> = text.lines().map(parse_job).collect();
    jobs.ok_or_else(|| anyhow!("{} is no log of the task", path.display()))
}

/// `number release start end used kHz work began`, times in us, but `began` in ns.
fn parse_job(line: &str) -> Option<LoggedJob> {
    let fields: Option<Vec<u64>> = line.split(' ').map(|field| field.parse().ok()).collect();
    let &[number, released_us, _, ended_us, used_us, khz, _, _] = fields?.as_slice() else {
        return None;
    };
    Some(LoggedJob {
        number,
        released_us,
        ended_us,
        used_us,
        khz,
    })
}

impl LoggedJob {
    fn response_ms(&self) -> f64 {
        self.ended_us.saturating_sub(self.released_us) as f64 / 1000.0
    }
}

fn figures_of(
    jobs: &[LoggedJob],
    governor: &'static str,
    predictor: &'static str,
    mode_change_protocol: bool,
) -> anyhow::Result<Figures> {
    let highest = jobs.iter().map(|job| job.khz).max().unwrap_or(0);
    // It may be lower before the load begins; while that lasts it is the highest.
    let highest_until = jobs.iter().rposition(|job| job.khz == highest);
    let fell = highest_until
        .map(|last| last + 1)
        .filter(|&next| next < jobs.len())
        .ok_or_else(|| anyhow!("the frequency never fell: give the run more jobs"))?;
    let from = fell.saturating_sub(1);
    let (before, after) = jobs.split_at(from);
    let late = || after.iter().filter(|job| job.response_ms() > PERIOD_MS);
    let fell_at_job = jobs.get(fell).map_or(0, |job| job.number);
    let last = late().next_back().map_or(fell_at_job, |job| job.number);
    let used = |job: Option<&LoggedJob>| job.map_or(0.0, |job| job.used_us as f64 / 1000.0);
    Ok(Figures {
        governor,
        predictor,
        mode_change_protocol,
        fell_at_job,
        jobs: after.len(),
        overruns: late().count(),
        last_overrun: last.saturating_sub(fell_at_job),
        longest_ms: after.iter().map(LoggedJob::response_ms).fold(0.0, f64::max),
        used_before_ms: used(before.last()),
        used_after_ms: used(after.last()),
    })
}

fn table(figures: &[Figures]) -> Table {
    let ms = |ms: f64| format!("{ms:.1} ms");
    Table::of(figures, |f| {
        [
            ("governor", f.governor.to_owned()),
            ("controller", f.predictor.to_owned()),
            ("protocol", yes_no(f.mode_change_protocol)),
            ("jobs", f.jobs.to_string()),
            ("overruns", f.overruns.to_string()),
            (
                "last after",
                if f.overruns == 0 {
                    "-".to_owned()
                } else {
                    format!("{} jobs", f.last_overrun)
                },
            ),
            ("longest", ms(f.longest_ms)),
            ("a job took", ms(f.used_before_ms)),
            ("and takes", ms(f.used_after_ms)),
            (
                "paper",
                if f.mode_change_protocol {
                    "no overrun"
                } else {
                    "until 29 jobs after"
                }
                .to_owned(),
            ),
        ]
    })
}

/// Completion times, with the fall at job 0.
fn line(jobs: &[LoggedJob], fell_at_job: u64, how: &str) -> Line {
    let points = jobs
        .iter()
        .map(|job| (job.number as f64 - fell_at_job as f64, job.response_ms()))
        .filter(|(job, _)| SHOWN.contains(job))
        .collect();
    Line::new(&format!("{how} the protocol"), Look::Marked, points)
}

fn draw(
    machine: &Machine,
    mut lines: Vec<Line>,
    (governor, predictor, whose): (&str, &str, &str),
) -> anyhow::Result<()> {
    let period = vec![(SHOWN.start, PERIOD_MS), (SHOWN.end, PERIOD_MS)];
    lines.push(Line::new("period", Look::Straight, period));
    let figure = Figure {
        title: format!("A fall from 2.4 to 1.5 GHz, {whose} controller, {governor}"),
        x: Axis::linear("job after the fall", SHOWN),
        y: Axis::linear("completion time (ms)", 0.0..140.0),
        lines,
        names: Corner::UpperRight,
    };
    figure.draw(machine.out(), &format!("{NAME}-{governor}-{predictor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overruns_are_counted_from_the_job_before_the_fall() {
        let log = "0 0 10 130000 30000 1500000 13000 1000\n\
                   1 100000 130010 143000 13000 2400000 13000 101000\n\
                   2 200000 200010 305000 20000 2400000 13000 201000\n\
                   3 300000 305010 326000 21000 1500000 13000 301000\n\
                   4 400000 400010 501000 21000 1500000 13000 401000\n";
        let jobs: Vec<LoggedJob> = log.lines().map(|line| parse_job(line).unwrap()).collect();
        let figures = figures_of(&jobs, "userspace", "rate", false).unwrap();
        assert_eq!((figures.fell_at_job, figures.jobs), (3, 3));
        assert_eq!((figures.overruns, figures.last_overrun), (2, 1));
        assert_eq!(figures.longest_ms, 105.0);
        assert_eq!(
            (figures.used_before_ms, figures.used_after_ms),
            (13.0, 21.0)
        );
        assert!(figures_of(&jobs[..3], "userspace", "rate", false).is_err());
    }

    #[test]
    fn a_line_cut_short_is_no_job() {
        assert!(parse_job("1 2 3 4 5 6 7").is_none());
        assert!(parse_job("1 2 3 4 5 6 7 x").is_none());
        assert!(parse_job("").is_none());
    }
}
