//! The tables of the READMEs, written by the command that makes them: between
//! `<!-- figures: NAME -->` and `<!-- end -->`, with where they were taken, and the figures as
//! NAME.json beside. `scripts/tables.sh` holds one against the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::machine::Facts;

/// The folder with a folder for each experiment.
const EXPERIMENTS: &str = env!("CARGO_MANIFEST_DIR");
const END: &str = "<!-- end -->";

/// Where a table is taken: to be asked before, as nothing may change meanwhile that counts.
pub(crate) fn taken(facts: &Facts) -> String {
    format!(
        "Commit {}, {}; Linux {}, {}.",
        commit(),
        output("date", &["-u", "+%F"]),
        facts.kernel(),
        facts.cpu()
    )
}

/// Writes each table that was published to the folder `out` since `since`, and `taken` as told,
/// into the README that has its markers.
pub(crate) fn write(out: &Path, since: SystemTime, taken: &str) -> anyhow::Result<()> {
    let folders = fs::read_dir(EXPERIMENTS).context("cannot list the experiments")?;
    for folder in folders {
        let readme = folder?.path().join("README.md");
        let Ok(mut text) = fs::read_to_string(&readme) else {
            continue;
        };
        for name in names(&text) {
            let published = out.join(format!("{name}.json"));
            let is_new = fs::metadata(&published)
                .and_then(|found| found.modified())
                .is_ok_and(|modified| modified >= since);
            if is_new {
                let block = keep(
                    &published,
                    &readme.with_file_name(format!("{name}.json")),
                    taken,
                )?;
                text = with_block(&text, &name, &block)
                    .with_context(|| format!("in {}", readme.display()))?;
                fs::write(&readme, &text)
                    .with_context(|| format!("cannot write {}", readme.display()))?;
                println!("table: {} in {}", name, readme.display());
            }
        }
    }
    Ok(())
}

/// The commit that is checked out, and whether something was changed since.
fn commit() -> String {
    let head = output("git", &["rev-parse", "--short", "HEAD"]);
    let changes = output(
        "git",
        &["status", "--porcelain", "--", "*.rs", "*.c", "*.h"],
    );
    if changes.is_empty() {
        head
    } else {
        format!("{head} with changes")
    }
}

/// What a command prints; "unknown" if it cannot be run.
fn output(program: &str, args: &[&str]) -> String {
    let ran = Command::new(program)
        .args(args)
        .current_dir(EXPERIMENTS)
        .output();
    let printed = ran.ok().filter(|ran| ran.status.success());
    printed.map_or_else(
        || "unknown".to_owned(),
        |ran| String::from_utf8_lossy(&ran.stdout).trim().to_owned(),
    )
}

/// The names of the tables that a README has a place for.
fn names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        Some(
            line.strip_prefix("<!-- figures: ")?
                .strip_suffix(" -->")?
                .to_owned(),
        )
    };
    text.lines().filter_map(name).collect()
}

/// Keeps the published figures beside the README, and gives what is to stand in it.
fn keep(published: &Path, kept: &PathBuf, taken: &str) -> anyhow::Result<String> {
    let text = fs::read_to_string(published)
        .with_context(|| format!("cannot read {}", published.display()))?;
    let mut figures: Value = serde_json::from_str(&text)?;
    let Some(table) = figures.get("table").and_then(Value::as_str) else {
        bail!("{} has no table", published.display());
    };
    let block = format!("{table}\n{taken}\n");
    figures["block"] = json!(block);
    let text = serde_json::to_string_pretty(&figures)?;
    fs::write(kept, text + "\n").with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(block)
}

/// The text with `block` between the markers of `name`.
fn with_block(text: &str, name: &str, block: &str) -> anyhow::Result<String> {
    let marker = format!("<!-- figures: {name} -->\n");
    let Some((before, rest)) = text.split_once(&marker) else {
        bail!("there is no place for the table {name}");
    };
    let Some((_, after)) = rest.split_once(END) else {
        bail!("the table {name} has no {END}");
    };
    Ok(format!("{before}{marker}{block}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_what_stood_between_its_markers_and_nothing_else() {
        let text =
            "a\n<!-- figures: one -->\nold\n<!-- end -->\nb\n<!-- figures: two -->\n<!-- end -->\n";
        assert_eq!(names(text), ["one", "two"]);
        let new = with_block(text, "one", "| x |\n").unwrap();
        assert_eq!(new, text.replace("old\n", "| x |\n"));
        assert!(with_block(text, "three", "").is_err());
        assert!(with_block("<!-- figures: one -->\n", "one", "").is_err());
    }
}
