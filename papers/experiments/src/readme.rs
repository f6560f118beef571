//! The tables of the READMEs, written by the command that makes them: between
//! `<!-- figures: NAME -->` and `<!-- end -->`, with where they were taken, and the figures as
//! NAME.json beside; and the plots that a README shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::machine::MachineFacts;

const EXPERIMENTS: &str = env!("CARGO_MANIFEST_DIR");
const END: &str = "<!-- end -->";

/// Where a table is taken: to be asked before, as nothing may change meanwhile that counts.
pub(crate) fn taken(facts: &MachineFacts) -> String {
    format!(
        "Commit {}, {}; Linux {}, {}.",
        commit(),
        or_unknown("date", &["-u", "+%F"]),
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
        let Ok(text) = fs::read_to_string(&readme) else {
            continue;
        };
        for plot in plots(&text) {
            let drawn = out.join(plot);
            if is_new(&drawn, since) {
                fs::copy(&drawn, readme.with_file_name(plot))
                    .with_context(|| format!("cannot keep {}", drawn.display()))?;
            }
        }
        for name in names(&text) {
            let published = out.join(format!("{name}.json"));
            if is_new(&published, since) {
                let block = keep(
                    &published,
                    &readme.with_file_name(format!("{name}.json")),
                    taken,
                )?;
                // The table before has changed the file.
                let text = fs::read_to_string(&readme)?;
                let text = with_block(&text, &format!("figures: {name}"), &block)
                    .with_context(|| format!("in {}", readme.display()))?;
                fs::write(&readme, text)
                    .with_context(|| format!("cannot write {}", readme.display()))?;
                println!("table: {name} in {}", readme.display());
            }
        }
    }
    Ok(())
}

/// The commit that is checked out, and whether something was changed since.
fn commit() -> String {
    let head = or_unknown("git", &["rev-parse", "--short", "HEAD"]);
    let changes = or_unknown(
        "git",
        &["status", "--porcelain", "--", "*.rs", "*.c", "*.h"],
    );
    if changes.is_empty() {
        head
    } else {
        format!("{head} with changes")
    }
}

/// A command's output; "unknown" if it cannot be run.
fn or_unknown(program: &str, args: &[&str]) -> String {
    output(program, args).unwrap_or_else(|_| "unknown".to_owned())
}

fn output(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let ran = Command::new(program)
        .args(args)
        .current_dir(EXPERIMENTS)
        .output()?;
    if !ran.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&ran.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

fn is_new(file: &Path, since: SystemTime) -> bool {
    let modified = fs::metadata(file).and_then(|found| found.modified());
    modified.is_ok_and(|modified| modified >= since)
}

fn plots(text: &str) -> Vec<&str> {
    let shown = text.split("![").skip(1);
    shown
        .filter_map(|shown| shown.split_once("](")?.1.split(')').next())
        .collect()
}

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
    let figures: Value = serde_json::from_str(&text)?;
    let Some(table) = figures.get("table").and_then(Value::as_str) else {
        bail!("{} has no table", published.display());
    };
    fs::copy(published, kept).with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(format!("{table}\n{taken}\n"))
}

/// The text with `block` between the marker `name` and the next [`END`].
pub(crate) fn with_block(text: &str, name: &str, block: &str) -> anyhow::Result<String> {
    let marker = format!("<!-- {name} -->\n");
    let Some((before, rest)) = text.split_once(&marker) else {
        bail!("there is no {}", marker.trim_end());
    };
    let Some((_, after)) = rest.split_once(END) else {
        bail!("no {END} follows {}", marker.trim_end());
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
        let new = with_block(text, "figures: one", "| x |\n").unwrap();
        assert_eq!(new, text.replace("old\n", "| x |\n"));
        assert!(with_block(text, "figures: three", "").is_err());
        assert!(with_block("<!-- figures: one -->\n", "figures: one", "").is_err());
    }

    #[test]
    fn the_plots_that_a_readme_shows_are_found_by_their_files() {
        let text = "![Fig. 1](one.svg)\n\n| ![a (b)](two.png) | [no plot](three.md) |\n";
        assert_eq!(plots(text), ["one.svg", "two.png"]);
    }
}
