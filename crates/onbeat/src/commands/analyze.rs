//! `onbeat analyze`: the periods in a recording, as a table or as JSON lines.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use onbeat_model::{Instant, TaskId};
use onbeat_sense::recording::{self, Recording};

use crate::analysis::{self, AnalysisLine, FEWEST_WAKEUPS, Finding};
use crate::cli::AnalyzeArgs;
use crate::commands::keep::write_report;
use crate::history::RunHistory;
use crate::watch_table::confidence;
use onbeat_command::output::{Output, warn};
use onbeat_command::table::TextTable;
use onbeat_top::Align;

pub(crate) fn run(args: &AnalyzeArgs) -> anyhow::Result<ExitCode> {
    let recording = recording::read(&args.file)?;
    warn(&args.file, &recording.warnings);
    if args.files.report.is_some() || args.files.perfetto.is_some() {
        write_history(&recording, args)?;
    }
    let findings = analysis::findings(&recording, args.window);
    let mut output = BufWriter::new(io::stdout().lock());
    if args.json {
        for finding in findings {
            writeln!(
                output,
                "{}",
                serde_json::to_string(&AnalysisLine::from(&finding))?
            )?;
        }
    } else {
        let findings: Vec<Finding> = findings.collect();
        write!(
            output,
            "{}",
            table(&findings, recording.began, args.window.is_some())
        )?;
        output.flush()?;
        tell_the_rest(&recording, &findings);
    }
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The bursts and jobs of the recording's threads, as `run --report` and `--perfetto` write them.
fn write_history(recording: &Recording, args: &AnalyzeArgs) -> anyhow::Result<()> {
    let history = RunHistory::of(recording);
    if let Some(output) = Output::of(args.files.report.as_deref())? {
        let elapsed_ns = recording.ended.since(recording.began);
        write_report(output, &history.report(elapsed_ns, recording.lost))?;
    }
    if let Some(output) = Output::of(args.files.perfetto.as_deref())? {
        output.write(|file| history.write_timeline(file))?;
    }
    Ok(())
}

fn table(findings: &[Finding], began: Instant, in_windows: bool) -> TextTable {
    let mut columns = vec![
        ("from", Align::Right),
        ("thread", Align::Right),
        ("name", Align::Left),
        ("period", Align::Right),
        ("second", Align::Right),
        ("jitter", Align::Right),
        ("confidence", Align::Right),
        ("jobs", Align::Right),
        ("wakeups", Align::Right),
    ];
    if !in_windows {
        columns.remove(0);
    }
    let mut table = TextTable::new(&columns);
    for finding in findings {
        let mut cells = Vec::new();
        if in_windows {
            let partial = if finding.complete { "" } else { "~" };
            let from = finding.from.since(began).as_secs_f64();
            cells.push(format!("{partial}{from:.3} s"));
        }
        cells.push(finding.task.id.to_string());
        cells.push(finding.task.comm.to_text());
        match finding.rhythms.first() {
            Some(rhythm) => cells.extend([
                rhythm.period.to_string(),
                finding
                    .rhythms
                    .get(1)
                    .map_or_else(|| "-".to_owned(), |second| second.period.to_string()),
                rhythm.jitter.to_string(),
                confidence(rhythm.confidence),
                finding.jobs.to_string(),
            ]),
            None => cells.extend(["none", "-", "-", "-", "-"].map(str::to_owned)),
        }
        cells.push(finding.wakeups.to_string());
        table.row(cells);
    }
    table
}

/// Which threads the table leaves out, and what `~` means.
fn tell_the_rest(recording: &Recording, findings: &[Finding]) {
    let shown: HashSet<TaskId> = findings.iter().map(|finding| finding.task.id).collect();
    let quiet = recording.tasks.len().saturating_sub(shown.len());
    if quiet > 0 {
        eprintln!(
            "{quiet} more with fewer than {FEWEST_WAKEUPS} wakeups, too few to find a period"
        );
    }
    if findings.iter().any(|finding| !finding.complete) {
        eprintln!("~ the recording ends within this window");
    }
}
