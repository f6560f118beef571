//! `onbeat plan`: the smallest reservations that would have served the threads of recordings.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use onbeat_decide::least_budget::{least_budget, missed};
use onbeat_infer::jobs::Separator;
use onbeat_model::{Bandwidth, Event, Reservation, Rhythm, Span, TaskId};
use onbeat_sense::replay::{self, Recording};
use serde::Serialize;

use crate::analysis;
use crate::cli::{Method, PlanArgs};
use crate::table::{Align, Table};

/// What the kernel admits of each CPU.
const ADMISSIBLE: f64 = 0.95;
/// The shortest runtime that it takes.
const SHORTEST: Span = Span::from_ns(1024);

/// One line of `plan --json`; `docs/formats.md` describes it.
#[derive(Serialize)]
struct Line {
    file: String,
    tid: u32,
    comm: String,
    runtime_ns: Span,
    period_ns: Span,
    bandwidth: Bandwidth,
    jobs: usize,
    missed: usize,
}

/// Reads, plans, prints.
pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let mut lines = Vec::new();
    for file in &args.files {
        let recording = replay::read(file)?;
        for warning in &recording.warnings {
            eprintln!("onbeat: {}: {warning}", file.display());
        }
        lines.extend(plan(&recording, file, args.misses.as_cpus()));
    }
    let mut output = BufWriter::new(io::stdout().lock());
    if args.json {
        for line in &lines {
            writeln!(output, "{}", serde_json::to_string(line)?)?;
        }
    } else {
        write!(output, "{}", table(&lines))?;
        tell_the_rest(&mut output, &lines)?;
    }
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn plan(recording: &Recording, file: &Path, may_miss: f64) -> Vec<Line> {
    analysis::findings(recording, None, Method::Default)
        .filter_map(|finding| {
            let rhythm = *finding.rhythms.first()?;
            let demands = demands(recording, finding.task.id, rhythm);
            let budget = least_budget(&demands, may_miss)?.max(SHORTEST);
            // A thread that needs more than its period cannot be served by a reservation.
            let reservation = Reservation::implicit(budget, rhythm.period).ok()?;
            Some(Line {
                file: file.display().to_string(),
                tid: finding.task.id.tid,
                comm: finding.task.comm.to_text(),
                runtime_ns: budget,
                period_ns: rhythm.period,
                bandwidth: reservation.bandwidth(),
                jobs: demands.len(),
                missed: missed(&demands, budget),
            })
        })
        .collect()
}

/// What each job of the thread took.
fn demands(recording: &Recording, task: TaskId, rhythm: Rhythm) -> Vec<Span> {
    let mut separator = Separator::new(rhythm);
    let bursts = recording.events.iter().filter_map(|event| match event {
        Event::Burst(burst) if burst.task == task => Some(burst),
        _ => None,
    });
    let mut jobs: Vec<_> = bursts.filter_map(|burst| separator.hear(burst)).collect();
    jobs.extend(separator.finish());
    jobs.iter().map(|job| job.executed).collect()
}

fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&[
        ("thread", Align::Right),
        ("name", Align::Left),
        ("runtime", Align::Right),
        ("period", Align::Right),
        ("CPU", Align::Right),
        ("jobs", Align::Right),
        ("missed", Align::Right),
    ]);
    for line in lines {
        table.row([
            line.tid.to_string(),
            line.comm.clone(),
            line.runtime_ns.to_string(),
            line.period_ns.to_string(),
            line.bandwidth.to_string(),
            line.jobs.to_string(),
            line.missed.to_string(),
        ]);
    }
    table
}

/// Whether all fit on this machine, and how to use them without onbeat.
fn tell_the_rest(output: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    if lines.is_empty() {
        return writeln!(
            output,
            "no thread with a rhythm: there is nothing to reserve for"
        );
    }
    let all: Bandwidth = lines.iter().map(|line| line.bandwidth).sum();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let room = Bandwidth::from_cpus(ADMISSIBLE * cpus as f64);
    let verdict = if all <= room { "fits" } else { "does not fit" };
    writeln!(
        output,
        "together {all}, which {verdict} this machine: {cpus} CPUs admit {room}\n"
    )?;
    for line in lines {
        let (runtime, period) = (line.runtime_ns.as_ns(), line.period_ns.as_ns());
        writeln!(
            output,
            "chrt --deadline --sched-runtime {runtime} --sched-deadline {period} \
             --sched-period {period} --pid 0 {}",
            line.tid
        )?;
    }
    Ok(())
}
