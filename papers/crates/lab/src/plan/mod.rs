//! `onbeat-lab plan`: the smallest reservations that would have served the threads of recordings.

mod cie;

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use onbeat_model::{Bandwidth, Capacity, Reservation, Span};
use onbeat_sim::comparison::{ComparedThread, Threads};
use onbeat_sim::least_budget::{least_budget, missed};
use serde::Serialize;

use crate::cli::PlanArgs;
use onbeat_command::output::warn;
use onbeat_command::table::TextTable;
use onbeat_top::Align;

/// One line of `plan --json`; `docs/formats.md` describes it.
#[derive(Serialize)]
struct PlanLine {
    file: String,
    tid: u32,
    comm: String,
    runtime_ns: Span,
    period_ns: Span,
    bandwidth: Bandwidth,
    jobs: usize,
    missed: usize,
    chrt: String,
    #[serde(skip)]
    reservation: Reservation,
    /// The command that was recorded, if this is its first thread.
    #[serde(skip)]
    command: Vec<String>,
}

pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let capacity = onbeat_act::kernel::capacity();
    let mut lines = Vec::new();
    for file in &args.files {
        let threads = Threads::read(file)?;
        warn(file, &threads.warnings);
        for thread in &threads.list {
            match plan(&threads, thread, file, args.misses.as_cpus(), &capacity) {
                Ok(line) => lines.push(line),
                Err(why) => eprintln!(
                    "onbeat-lab: {} ({}): {why}",
                    thread.task.id.tid, thread.task.comm
                ),
            }
        }
    }
    let mut output = BufWriter::new(io::stdout().lock());
    if let Some(path) = &args.cie {
        let template = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let (filled, notes) = cie::fill(&template, &lines);
        for note in notes {
            eprintln!("onbeat-lab: {}: {note}", path.display());
        }
        write!(output, "{filled}")?;
    } else if args.json {
        for line in &lines {
            writeln!(output, "{}", serde_json::to_string(line)?)?;
        }
    } else {
        write!(output, "{}", table(&lines))?;
        tell_the_rest(&mut output, &lines, &capacity)?;
    }
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The smallest reservation for `thread`, or why there is none.
fn plan(
    threads: &Threads,
    thread: &ComparedThread,
    file: &Path,
    may_miss: f64,
    capacity: &Capacity,
) -> Result<PlanLine, String> {
    let Some(rhythm) = thread.rhythm else {
        return Err("it has no period, so there is nothing to reserve for".into());
    };
    let all: Vec<Span> = thread.jobs.iter().map(|job| job.demand.as_span()).collect();
    let period = rhythm.period;
    let budget = |demands| least_budget(demands, may_miss).unwrap_or_default();
    // A program begins with more work than it has later, or loads what it needs.
    let halves = [&all[..], &all[all.len() / 2..]];
    let fits = halves.into_iter().find(|demands| budget(demands) <= period);
    let demands = fits.unwrap_or(&all);
    let runtime = budget(demands).max(capacity.shortest_runtime);
    if period < capacity.shortest_period || period > capacity.longest_period {
        return Err(format!(
            "its period of {period} is not one that the kernel takes: those are {} to {}",
            capacity.shortest_period, capacity.longest_period
        ));
    }
    let reservation = Reservation::implicit(runtime, period).map_err(|_| {
        format!(
            "it needs {runtime} in each {period}, more than one CPU has: let it miss more (--misses), make it do less, \
             or divide it into threads"
        )
    })?;
    let task = &thread.task;
    let is_first = task.id.tid == task.pid;
    Ok(PlanLine {
        file: file.display().to_string(),
        tid: task.id.tid,
        comm: task.comm.to_text(),
        runtime_ns: runtime,
        period_ns: period,
        bandwidth: reservation.bandwidth(),
        jobs: demands.len(),
        missed: missed(demands, runtime),
        chrt: chrt_for_thread(task.id.tid, &reservation),
        reservation,
        command: if is_first {
            threads.command.clone()
        } else {
            Vec::new()
        },
    })
}

fn table(lines: &[PlanLine]) -> TextTable {
    let mut table = TextTable::new(&[
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
fn tell_the_rest(
    output: &mut impl Write,
    lines: &[PlanLine],
    capacity: &Capacity,
) -> io::Result<()> {
    if lines.is_empty() {
        return writeln!(
            output,
            "no thread has a period, so there is nothing to reserve for: 'onbeat analyze' shows what was found"
        );
    }
    let all: Bandwidth = lines.iter().map(|line| line.bandwidth).sum();
    let room = capacity.admissible;
    let verdict = if all <= room { "fits" } else { "does not fit" };
    writeln!(
        output,
        "together {all}, which {verdict} this machine: its {} CPUs admit {room}",
        capacity.cpus
    )?;
    writeln!(output, "\nby chrt, while the threads run:")?;
    for line in lines {
        writeln!(output, "{}", line.chrt)?;
    }
    let commands: Vec<String> = lines.iter().filter_map(chrt_for_command).collect();
    if !commands.is_empty() {
        writeln!(
            output,
            "\nby chrt, from the program's start on (its first thread only):"
        )?;
        for command in commands {
            writeln!(output, "{command}")?;
        }
    }
    Ok(())
}

/// Without `--reset-on-fork` the kernel lets a thread with a reservation start no other one.
fn chrt(reservation: &Reservation) -> String {
    format!(
        "chrt --reset-on-fork --deadline --sched-runtime {} --sched-deadline {} --sched-period {}",
        reservation.runtime().as_ns(),
        reservation.deadline().as_ns(),
        reservation.period().as_ns()
    )
}

fn chrt_for_thread(tid: u32, reservation: &Reservation) -> String {
    format!("{} --pid 0 {tid}", chrt(reservation))
}

/// For the program that was recorded, if this is its first thread.
fn chrt_for_command(planned: &PlanLine) -> Option<String> {
    let words: Vec<String> = planned.command.iter().map(|word| quoted(word)).collect();
    (!words.is_empty()).then(|| format!("{} 0 {}", chrt(&planned.reservation), words.join(" ")))
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn line(tid: u32, comm: &str, runtime_ms: u64, period_ms: u64) -> PlanLine {
        let [runtime, period] = [runtime_ms, period_ms].map(Span::from_ms);
        PlanLine {
            file: "film.onbeat".to_owned(),
            tid,
            comm: comm.to_owned(),
            runtime_ns: runtime,
            period_ns: period,
            bandwidth: Bandwidth::ONE,
            jobs: 100,
            missed: 0,
            chrt: String::new(),
            reservation: Reservation::implicit(runtime, period).unwrap(),
            command: Vec::new(),
        }
    }

    #[test]
    fn a_command_is_quoted_where_a_shell_would_read_it_otherwise() {
        let mut planned = line(7, "mplayer", 5, 40);
        planned.command = ["mplayer", "-vo", "null", "it's a film.mkv", ""]
            .map(str::to_owned)
            .into();
        let line = chrt_for_command(&planned).unwrap();
        assert!(
            line.ends_with(" 0 mplayer -vo null 'it'\\''s a film.mkv' ''"),
            "{line}"
        );
        planned.command.clear();
        assert_eq!(chrt_for_command(&planned), None);
    }
}
