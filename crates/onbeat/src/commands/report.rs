//! `onbeat report`: a page of a run.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::cli::ReportArgs;
use crate::page::{self, PageRun};

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let run = read(&args.file)?;
    let title = args.file.file_stem().unwrap_or_default().to_string_lossy();
    std::fs::write(&args.output, page::of(&run, &title))
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn read(path: &Path) -> anyhow::Result<PageRun> {
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
    serde_json::from_str(&text).with_context(|| {
        format!("{file} is not a report: write one with --report of onbeat run, attach or analyze")
    })
}
