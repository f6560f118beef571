//! `measure`: takes the tables again that are of other code, a step at a time, and keeps each in
//! `results.json`. The READMEs' tables, between `<!-- figures: NAME -->` and `<!-- end -->`, are
//! made from that file; the plots that they show are kept beside them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::machine::{Machine, was_interrupted};
use crate::results::Ran;
use crate::steps::{STEPS, Step, named};

const EXPERIMENTS: &str = env!("CARGO_MANIFEST_DIR");
const END: &str = "<!-- end -->";
/// What a table depends on.
const CODE: [&str; 7] = [
    "crates",
    "libonbeat",
    "papers",
    ":!*.md",
    ":!*.svg",
    ":!*/tests/*",
    ":!papers/experiments/results.json",
];
/// A night.
const NIGHT_MINUTES: u64 = 180;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these [default: all that are not of this code]
    #[arg(value_name = "NAME")]
    steps: Vec<String>,
    /// Show which commit each is of, and how long those take that are due
    #[arg(long)]
    list: bool,
    /// Begin none that would not end within this time by its estimate
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
}

/// A table, and how it was taken.
#[derive(Debug, Deserialize, Serialize)]
struct Taken {
    step: String,
    command: String,
    commit: String,
    date: String,
    #[serde(flatten)]
    ran: Ran,
    /// Of the whole step.
    seconds: u64,
    table: String,
}

type Results = BTreeMap<String, Taken>;

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let path = Path::new(EXPERIMENTS).join("results.json");
    let mut results: Results = match fs::read_to_string(&path) {
        Ok(text) => {
            serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?
        }
        Err(_) => Results::new(),
    };
    let commit = commit()?;
    let due: Vec<&Step> = match args.steps.is_empty() {
        true => STEPS
            .iter()
            .filter(|step| is_due(step, &results, &commit))
            .collect(),
        false => args
            .steps
            .iter()
            .map(|name| named(name))
            .collect::<anyhow::Result<_>>()?,
    };
    if args.list {
        list(&results, &commit);
        return Ok(());
    }
    let began = Instant::now();
    let mut failed = Vec::new();
    for step in due {
        let over = began.elapsed().as_secs() / 60;
        if args.minutes.is_some_and(|most| over + step.minutes > most) {
            continue;
        }
        println!("{}: about {} minutes", step.name, step.minutes);
        match take(machine, step, &commit, &mut results) {
            Err(error) if was_interrupted(&error) => return Err(error),
            Err(error) => {
                eprintln!("{}: {error:#}", step.name);
                failed.push(step.name);
            }
            Ok(since) => {
                let unfinished = path.with_extension("json.new");
                fs::write(&unfinished, serde_json::to_string_pretty(&results)? + "\n")?;
                fs::rename(&unfinished, &path)?;
                write_readmes(&results, machine.out(), since)?;
            }
        }
    }
    if !failed.is_empty() {
        bail!("failed, and still due: {}", failed.join(", "));
    }
    Ok(())
}

fn is_due(step: &Step, results: &Results, commit: &str) -> bool {
    let mut of = results.values().filter(|taken| taken.step == step.name);
    of.clone().next().is_none() || of.any(|taken| taken.commit != commit)
}

fn list(results: &Results, commit: &str) {
    println!("the code is of {commit}");
    let mut minutes = 0;
    for step in STEPS {
        let of = results.values().find(|taken| taken.step == step.name);
        let told = of.map_or_else(
            || "never taken".to_owned(),
            |taken| format!("{}, {}", taken.commit, taken.date),
        );
        let is_due = is_due(step, results, commit);
        let night = match is_due {
            true => {
                minutes += step.minutes;
                format!("due, night {}", minutes.div_ceil(NIGHT_MINUTES))
            }
            false => String::new(),
        };
        println!(
            "{:24} {:>4} min  {told:36} {night}",
            step.name, step.minutes
        );
    }
    println!("due: {} h {} min", minutes / 60, minutes % 60);
}

/// Runs the step, and puts its tables in place of its former ones. Tells when it began.
fn take(
    machine: &Machine,
    step: &Step,
    commit: &str,
    results: &mut Results,
) -> anyhow::Result<SystemTime> {
    let (since, began, date) = (
        SystemTime::now(),
        Instant::now(),
        output("date", &["-u", "+%F"])?,
    );
    step.run(machine)?;
    results.retain(|_, taken| taken.step != step.name);
    for (name, table, ran) in machine.take_tables() {
        let taken = Taken {
            step: step.name.to_owned(),
            command: step.command(),
            commit: commit.to_owned(),
            date: date.clone(),
            ran,
            seconds: began.elapsed().as_secs(),
            table,
        };
        results.insert(name, taken);
    }
    Ok(since)
}

/// The last commit that changed code, and whether something of it is changed now.
pub(crate) fn commit() -> anyhow::Result<String> {
    let last = ["log", "-1", "--format=%h", "--abbrev=8", "--"];
    let last = output("git", &[&last[..], &CODE].concat())?;
    let changes = ["status", "--porcelain", "--"];
    let changes = output("git", &[&changes[..], &CODE].concat())?;
    Ok(match changes.is_empty() {
        true => last,
        false => format!("{last} with changes"),
    })
}

fn output(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let checkout = Path::new(EXPERIMENTS).join("../..");
    let ran = Command::new(program)
        .args(args)
        .current_dir(checkout)
        .output()?;
    if !ran.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&ran.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

/// Makes the tables of all READMEs, and keeps the plots that they show of those drawn since
/// `since`.
fn write_readmes(results: &Results, out: &Path, since: SystemTime) -> anyhow::Result<()> {
    for folder in fs::read_dir(EXPERIMENTS).context("cannot list the experiments")? {
        let readme = folder?.path().join("README.md");
        let Ok(text) = fs::read_to_string(&readme) else {
            continue;
        };
        for plot in plots(&text) {
            let drawn = out.join(plot);
            let modified = fs::metadata(&drawn).and_then(|found| found.modified());
            if modified.is_ok_and(|modified| modified >= since) {
                fs::copy(&drawn, readme.with_file_name(plot))
                    .with_context(|| format!("cannot keep {}", drawn.display()))?;
            }
        }
        let made =
            with_tables(&text, results).with_context(|| format!("in {}", readme.display()))?;
        if made != text {
            fs::write(&readme, made)
                .with_context(|| format!("cannot write {}", readme.display()))?;
        }
    }
    Ok(())
}

fn plots(text: &str) -> impl Iterator<Item = &str> {
    let shown = text.split("![").skip(1);
    shown.filter_map(|shown| shown.split_once("](")?.1.split(')').next())
}

/// The text with each table of the results between its markers.
fn with_tables(text: &str, results: &Results) -> anyhow::Result<String> {
    let mut made = text.to_owned();
    for (name, taken) in results {
        let marker = format!("<!-- figures: {name} -->\n");
        let Some((before, rest)) = made.split_once(&marker) else {
            continue;
        };
        let Some((_, after)) = rest.split_once(END) else {
            bail!("no {END} follows {}", marker.trim_end());
        };
        let Taken {
            table,
            commit,
            date,
            ran,
            ..
        } = taken;
        let how = match ran.how.as_str() {
            "" => String::new(),
            how => format!("{how}; "),
        };
        made = format!(
            "{before}{marker}{table}\nCommit {commit}, {date}; {how}Linux {}, {}.\n{END}{after}",
            ran.kernel, ran.cpu
        );
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let text = fs::read_to_string(Path::new(EXPERIMENTS).join("results.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_table_replaces_what_stood_between_its_markers_and_nothing_else() {
        let mut results = results();
        results.retain(|name, _| name == "lock-time");
        let taken = &results["lock-time"];
        let text = "a\n<!-- figures: lock-time -->\nold\n<!-- end -->\n<!-- figures: x -->\n";
        let made = with_tables(text, &results).unwrap();
        let block = format!("{}\nCommit {}, ", taken.table, taken.commit);
        assert!(made.contains(&block), "{made}");
        assert!(!made.contains("old"), "{made}");
        assert!(
            made.ends_with("<!-- end -->\n<!-- figures: x -->\n"),
            "{made}"
        );
        assert_eq!(with_tables(&made, &results).unwrap(), made);
        assert!(with_tables("<!-- figures: lock-time -->\n", &results).is_err());
    }

    #[test]
    fn a_step_is_due_if_one_of_its_tables_is_of_other_code_or_there_is_none() {
        let (step, mut results) = (named("lock-time").unwrap(), results());
        let commit = results["lock-time"].commit.clone();
        assert!(!is_due(step, &results, &commit) && is_due(step, &results, "other"));
        results.clear();
        assert!(is_due(step, &results, &commit));
    }

    #[test]
    fn the_tables_of_the_readmes_are_those_of_the_results_and_each_table_has_its_step() {
        let results = results();
        for (name, taken) in &results {
            assert!(named(&taken.step).is_ok(), "{name}");
        }
        for folder in fs::read_dir(EXPERIMENTS).unwrap() {
            let readme = folder.unwrap().path().join("README.md");
            if let Ok(text) = fs::read_to_string(&readme) {
                assert_eq!(with_tables(&text, &results).unwrap(), text, "{readme:?}");
            }
        }
    }

    #[test]
    fn the_plots_that_a_readme_shows_are_found_by_their_files() {
        let text = "![Fig. 1](one.svg)\n\n| ![a (b)](two.svg) | [no plot](three.md) |\n";
        assert!(plots(text).eq(["one.svg", "two.svg"]));
    }
}
