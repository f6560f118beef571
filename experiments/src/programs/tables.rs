//! The tables and pictures, from the cells that were kept.

use std::path::Path;

use super::program::TestedProgram;
use super::situation::Situation;
use super::{CellOutcome, Done, KeptRun};
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::quantile;

/// All runs of one cell.
struct Runs<'a> {
    done: Vec<&'a Done>,
    why_not: Option<&'a str>,
}

fn runs<'a>(
    kept: &'a [KeptRun],
    situation: Situation,
    program: TestedProgram,
    way: &str,
) -> Runs<'a> {
    let mut runs = Runs {
        done: Vec::new(),
        why_not: None,
    };
    let of_cell =
        |kept: &&KeptRun| (kept.situation, kept.program) == (situation, program) && kept.way == way;
    for kept in kept.iter().filter(of_cell) {
        match &kept.outcome {
            CellOutcome::Done(done) => runs.done.push(done),
            CellOutcome::Failed(why) => runs.why_not = Some(why),
        }
    }
    runs
}

impl Runs<'_> {
    fn figures(&self, figure: impl Fn(&Done) -> Option<f64>) -> Vec<f64> {
        self.done.iter().filter_map(|done| figure(done)).collect()
    }

    fn median(&self, figure: impl Fn(&Done) -> Option<f64>) -> Option<f64> {
        let figures = self.figures(figure);
        (!figures.is_empty()).then(|| quantile(&figures, 0.5))
    }

    /// The median, and from the least to the greatest.
    fn told(&self, figure: impl Fn(&Done) -> Option<f64>, digits: usize) -> String {
        let figures = self.figures(figure);
        let [least, median, most] = [0.0, 0.5, 1.0].map(|p| quantile(&figures, p));
        match figures.len() {
            0 => "-".to_owned(),
            1 => format!("{median:.digits$}"),
            _ => format!("{median:.digits$} ({least:.digits$} to {most:.digits$})"),
        }
    }
}

/// One table for each figure of the situation.
pub(super) fn of(
    kept: &[KeptRun],
    situation: Situation,
    programs: &[TestedProgram],
    ways: &[&str],
) -> String {
    let mut text = String::new();
    let mut missing: Vec<String> = Vec::new();
    let (batch, timely): (Vec<TestedProgram>, Vec<TestedProgram>) =
        programs.iter().partition(|p| p.is_batch());
    type Pick = fn(&Done) -> Option<f64>;
    let figures: [(&str, Pick, usize); 5] = [
        ("frames, cycles or jobs in time", |d| Some(d.count), 0),
        ("the same from the third second on", |d| d.steady, 0),
        ("first frame after, s", |d| d.first_s, 2),
        (
            "99th percentile, ms",
            |d| d.apart_ms.map(|[_, _, p99, _]| p99),
            1,
        ),
        (
            "longest, ms",
            |d| d.apart_ms.map(|[.., longest]| longest),
            0,
        ),
    ];
    for (title, figure, digits) in figures {
        text.push_str(&row(title, ways.iter().map(|way| (*way).to_owned())));
        text.push_str(&rule(ways.len()));
        for &program in &timely {
            let cells: Vec<String> = ways
                .iter()
                .map(|way| {
                    let runs = runs(kept, situation, program, way);
                    if let Some(why) = runs.why_not {
                        missing.push(format!("{}, {way}: {why}", program.name()));
                    }
                    runs.told(figure, digits)
                })
                .collect();
            if cells.iter().any(|cell| cell != "-") {
                text.push_str(&row(program.name(), cells.into_iter()));
            }
        }
        text.push('\n');
    }
    if situation != Situation::Idle {
        let loads: [(&str, &[TestedProgram], Pick); 2] = [
            (
                "what the load did, of that with nothing",
                programs,
                |done| done.load,
            ),
            ("the same from the fifth second on", &batch, |done| {
                done.load_later
            }),
        ];
        for (title, programs, figure) in loads {
            let mut rows = String::new();
            for &program in programs {
                let load = |way: &str| runs(kept, situation, program, way).median(figure);
                let base = ways.first().and_then(|way| load(way));
                let cells: Vec<String> = ways
                    .iter()
                    .map(|way| match (load(way), base) {
                        (Some(load), Some(base)) if base > 0.0 => {
                            format!("{:.0}%", 100.0 * load / base)
                        }
                        _ => "-".to_owned(),
                    })
                    .collect();
                if cells.iter().any(|cell| cell != "-") {
                    rows.push_str(&row(program.name(), cells.into_iter()));
                }
            }
            if !rows.is_empty() {
                text.push_str(&row(title, ways.iter().map(|way| (*way).to_owned())));
                text.push_str(&rule(ways.len()));
                text.push_str(&rows);
                text.push('\n');
            }
        }
    }
    missing.sort();
    missing.dedup();
    for line in missing {
        text.push_str(&format!("- {line}\n"));
    }
    text
}

fn row(first: &str, cells: impl Iterator<Item = String>) -> String {
    let mut text = format!("| {first} |");
    for cell in cells {
        text.push_str(&format!(" {cell} |"));
    }
    text + "\n"
}

fn rule(columns: usize) -> String {
    format!("|---|{}\n", "---:|".repeat(columns))
}

/// Draws how much of what it does by nothing on an idle machine each program does.
pub(super) fn draw(
    out: &Path,
    kept: &[KeptRun],
    situation: Situation,
    programs: &[TestedProgram],
    ways: &[&str],
) -> anyhow::Result<()> {
    let timely: Vec<TestedProgram> = programs.iter().copied().filter(|p| !p.is_batch()).collect();
    let nothing = ways.first().copied().unwrap_or_default();
    let count = |situation, program, way: &str| {
        runs(kept, situation, program, way).median(|done| Some(done.count))
    };
    let of_way = |(place, way): (usize, &&str)| {
        let points = timely.iter().enumerate().filter_map(|(n, &program)| {
            let idle = count(Situation::Idle, program, nothing)?;
            let done = count(situation, program, way)?;
            // Side by side, so that none hides another.
            let x = (n + 1) as f64 + place as f64 * 0.08 - 0.2;
            (idle > 0.0).then(|| (x, 100.0 * done / idle))
        });
        Line::new(way, Look::Points, points.collect())
    };
    Figure {
        title: format!("{}, of the idle machine", situation.title()),
        x: Axis::linear(
            "program, in the order of the table",
            0.5..timely.len() as f64 + 0.9,
        ),
        y: Axis::linear("done, in per cent", 0.0..110.0),
        lines: ways.iter().enumerate().map(of_way).collect(),
        names: Corner::LowerRight,
    }
    .draw(out, &format!("programs-{}", situation.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(way: &str, run: u32, count: f64, load: f64) -> KeptRun {
        let done = Done {
            load: Some(load),
            ..Done::of_count(count)
        };
        KeptRun {
            program: TestedProgram::Mpv,
            situation: Situation::Hogs,
            way: way.to_owned(),
            run,
            outcome: CellOutcome::Done(done),
        }
    }

    #[test]
    fn a_cell_is_the_median_with_its_spread_and_the_load_is_relative() {
        let kept = [
            kept("nothing", 0, 290.0, 100.0),
            kept("nothing", 1, 310.0, 100.0),
            kept("nothing", 2, 297.0, 100.0),
            kept("onbeat", 0, 430.0, 97.0),
        ];
        let text = of(
            &kept,
            Situation::Hogs,
            &[TestedProgram::Mpv],
            &["nothing", "onbeat"],
        );
        assert!(
            text.contains("| mpv --vo=x11, 1080p25 | 297 (290 to 310) | 430 |"),
            "{text}"
        );
        assert!(
            text.contains("| mpv --vo=x11, 1080p25 | 100% | 97% |"),
            "{text}"
        );
    }
}
