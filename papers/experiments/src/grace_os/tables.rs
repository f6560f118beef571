//! The tables: the paper's 5 to 10 from the runs, and Fig. 13 and 14 in figures.

use onbeat_sim::policy::grace::Scheme;

use super::TOGETHER;
use super::case::MHZ;
use super::schemes::SchemeRun;
use super::sweeps::{SCHEMES, SweepPoint};
use crate::results::{Table, or_dash, percent};

fn in_percent(share: f64) -> String {
    percent(share, 1)
}

fn of<'a>(runs: &'a [SchemeRun<'a>], codecs: &str) -> impl Iterator<Item = &'a SchemeRun<'a>> {
    runs.iter().filter(move |run| run.codecs == codecs)
}

/// What each scheme takes and misses on one set of codecs, and its busy time at the lowest speed.
pub(super) fn energy(runs: &[SchemeRun], codecs: &str) -> Table {
    let worst_uniform = of(runs, codecs).find(|run| run.scheme == Scheme::WrsUni.name());
    let most = worst_uniform.map_or(f64::NAN, |run| run.outcome.energy_with_idle);
    Table::of(of(runs, codecs), |run| {
        let outcome = &run.outcome;
        [
            ("scheme", run.scheme.to_owned()),
            ("energy", in_percent(outcome.energy)),
            ("with idle", in_percent(outcome.energy_with_idle)),
            (
                "of worst-uniform",
                percent(outcome.energy_with_idle / most, 0),
            ),
            ("missed", in_percent(outcome.miss_ratio())),
            ("worst codec", in_percent(outcome.worst_codec_missed)),
            ("idle", in_percent(outcome.idle)),
            ("at 300 MHz", or_dash(outcome.share_at(MHZ[0]), in_percent)),
        ]
    })
}

/// Table 5: changes of speed a job; the paper's last.
pub(super) fn changes(runs: &[SchemeRun], sets: &[&str]) -> Table {
    let paper = ["2.14", "0", "1.28", "0.94", "0", "0.8"];
    let headings = ["changes of speed a job"].iter().chain(sets);
    let mut table = Table::of_columns(headings.map(|name| (*name).to_owned()).collect());
    for scheme in [
        "grace-os-as-written",
        "grace-os-as-written, first 100 jobs",
        "grace-os",
        "grace-os, 500 us timer",
    ] {
        let cell = |codecs: &&str| {
            let run = of(runs, codecs).find(|run| run.scheme == scheme);
            or_dash(run, |run| format!("{:.2}", run.outcome.changes_per_job))
        };
        let cells = [scheme.to_owned()].into_iter().chain(sets.iter().map(cell));
        table.cells(cells.collect());
    }
    let cells = ["the paper's"].into_iter().chain(paper);
    table.cells(cells.map(str::to_owned).collect());
    table
}

/// How long the paper's four codecs play together, and mpgplay alone after them: Table 10's sums
/// fit no other times.
const TOGETHER_S: f64 = 30.0;
const ALONE_S: f64 = 200.0;

/// A line of Tables 9 and 10: seconds at full power, idle time at its speed; what was missed; and
/// the share of the busy time at the lowest speed.
#[derive(Clone, Copy)]
struct PlayedLine {
    energy_s: f64,
    missed: f64,
    at_lowest: Option<f64>,
}

/// The paper's Tables 9 and 10, as far as its text has them.
const PAPER: [(Scheme, PlayedLine); 6] = [
    (Scheme::WrsUni, played(56.7, 0.003, None)),
    (Scheme::WrsRec, played(32.5, 0.005, None)),
    (Scheme::WrsStoAsWritten, played(21.9, 0.004, Some(0.644))),
    (Scheme::StoUni, played(42.1, 0.048, None)),
    (Scheme::StoRec, played(30.1, 0.052, None)),
    (Scheme::GraceOsAsWritten, played(20.5, 0.049, Some(0.838))),
];

const fn played(energy_s: f64, missed: f64, at_lowest: Option<f64>) -> PlayedLine {
    PlayedLine {
        energy_s,
        missed,
        at_lowest,
    }
}

/// Tables 9 and 10 as the paper's run was: the four for their time, then mpgplay alone for its.
pub(super) fn as_played(runs: &[SchemeRun]) -> Table {
    let parts = [(TOGETHER, TOGETHER_S), ("mpgplay", ALONE_S)];
    let of = |scheme: &str| {
        let sum = |figure: &dyn Fn(&SchemeRun) -> f64| -> f64 {
            let each = parts.map(|(codecs, seconds)| {
                let run = of(runs, codecs).find(|run| run.scheme == scheme);
                run.map_or(f64::NAN, |run| seconds * figure(run))
            });
            each.iter().sum()
        };
        let busy = sum(&|run| 1.0 - run.outcome.idle);
        let lowest =
            sum(&|run| (1.0 - run.outcome.idle) * run.outcome.share_at(MHZ[0]).unwrap_or_default());
        let jobs = sum(&|run| run.outcome.jobs as f64 / run.outcome.duration);
        let missed = sum(&|run| run.outcome.missed as f64 / run.outcome.duration);
        PlayedLine {
            energy_s: sum(&|run| run.outcome.energy_with_idle),
            missed: missed / jobs,
            at_lowest: Some(lowest / busy),
        }
    };
    let papers = PAPER.map(|(scheme, paper)| (scheme.name().to_owned(), Some(paper)));
    let own = [
        format!("{}, first 100 jobs", Scheme::GraceOsAsWritten.name()),
        Scheme::GraceOsOwnSpeeds.name().to_owned(),
        Scheme::GraceOsBounded.name().to_owned(),
        Scheme::WrsSto.name().to_owned(),
        Scheme::GraceOs.name().to_owned(),
    ];
    let all = papers.into_iter().chain(own.map(|scheme| (scheme, None)));
    let most = [of(Scheme::WrsUni.name()), PAPER[0].1].map(|line| line.energy_s);
    Table::of(all, |(scheme, paper)| {
        let cells = |played: Option<PlayedLine>, most: f64| {
            [
                or_dash(played, |played| format!("{:.1}", played.energy_s)),
                or_dash(played, |played| percent(played.energy_s / most, 0)),
                or_dash(played, |played| in_percent(played.missed)),
                or_dash(played.and_then(|played| played.at_lowest), in_percent),
            ]
        };
        let [a, b, c, d] = cells(Some(of(&scheme)), most[0]);
        let [e, f, g, h] = cells(paper, most[1]);
        [
            ("scheme", scheme),
            ("energy, s at full power", a),
            ("of worst-uniform", b),
            ("missed", c),
            ("at 300 MHz", d),
            ("paper: energy", e),
            ("of worst-uniform", f),
            ("missed", g),
            ("at 300 MHz", h),
        ]
    })
}

/// Fig. 13 or 14: energy, and what was missed, over what was varied.
pub(super) fn sweep(points: &[SweepPoint], what: &str) -> Table {
    let columns = [TOGETHER, "mpgplay"]
        .into_iter()
        .flat_map(|codecs| SCHEMES.map(|scheme| (codecs, scheme.name())));
    let columns: Vec<(&str, &str)> = columns.collect();
    let headings = columns
        .iter()
        .flat_map(|(codecs, scheme)| [format!("{codecs}: {scheme}"), "missed".to_owned()]);
    let headings = [what.to_owned()].into_iter().chain(headings);
    let mut table = Table::of_columns(headings.collect());
    let mut values: Vec<f64> = points.iter().map(|point| point.at).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    for value in values {
        let mut cells = vec![value.to_string()];
        for (codecs, scheme) in &columns {
            let point = points.iter().find(|point| {
                point.codecs == *codecs && point.scheme == *scheme && point.at == value
            });
            let cell =
                |figure: fn(&SweepPoint) -> f64| or_dash(point, |point| in_percent(figure(point)));
            cells.extend([cell(|point| point.energy), cell(|point| point.missed)]);
        }
        table.cells(cells);
    }
    table
}
