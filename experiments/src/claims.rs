//! Holds the figures of README.md and docs/ against the figures that the experiments' commands
//! wrote beside their READMEs.

mod papers;

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

/// The checkout.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

pub(crate) fn figures(experiment: &str) -> Value {
    let path = format!("{ROOT}/experiments/{experiment}.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut figures: Value = serde_json::from_str(&text).unwrap();
    figures["ours"].take()
}

/// Whether the kept figures of an experiment are those that its code makes now. `within` is a JSON
/// pointer to the part of them that was made again, empty for all.
pub(crate) fn assert_kept(experiment: &str, within: &str, made: &impl Serialize) {
    let kept = figures(experiment);
    let kept = kept.pointer(within).unwrap_or(&Value::Null);
    let made = serde_json::to_value(made).unwrap();
    assert!(
        is_near(kept, &made),
        "experiments/{experiment}.json is older than the code that it measures: run the experiment \
         with --readme.\nkept: {kept}\nmade: {made}"
    );
}

/// Equal, but for the last digits of what is computed with another machine's arithmetic.
fn is_near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else {
                return false;
            };
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| is_near(a, b)))
        }
        _ => a == b,
    }
}

/// The text of a document, each wrapped line joined to the next.
fn document(name: &str) -> String {
    let text = fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_says(name: &str, claim: &str) {
    assert!(
        document(name).contains(claim),
        "{name} does not say '{claim}', as its experiment does"
    );
}

/// The least and the most of a figure of onbeat's own predictor, over the programs.
fn of_default_predictor(rows: &Value, figure: &str) -> (f64, f64) {
    let rows = rows.as_array().unwrap().iter();
    let ours = rows.filter(|row| {
        row["family"] == "percentile, learnt spread" && row["demands"] != "mean of all"
    });
    let figures: Vec<f64> = ours
        .map(|row| row["usual"][figure].as_f64().unwrap())
        .collect();
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    (least, figures.iter().copied().fold(0.0, f64::max))
}

#[test]
fn what_a_learnt_budget_costs_and_misses_is_what_the_predictors_table_has() {
    let rows = figures("predictors/predictors");
    let (least, most) = of_default_predictor(&rows, "reserved_over_used");
    let costs = format!("{least:.1} to {most:.1} times for films");
    let (least, most) = of_default_predictor(&rows, "miss_ratio");
    let misses = format!("{:.1} to {:.1}% of", least * 100.0, most * 100.0);
    assert_says("README.md", &costs);
    assert_says("docs/limits.md", &costs);
    assert_says("README.md", misses.trim_end_matches(" of"));
    assert_says("docs/limits.md", &misses);
}

/// The share of late jobs of a method on a bed, at a margin, in percent.
fn late(bed: &str, method: &str, margin: f64) -> f64 {
    let curves = figures("misses-against-bandwidth/misses-against-bandwidth");
    let mut curves = curves.as_array().unwrap().iter();
    let curve = curves.find(|curve| curve["bed"] == bed && curve["method"] == method);
    let mut points = curve.unwrap()["points"].as_array().unwrap().iter();
    let point = points.find(|point| point["margin"] == margin).unwrap();
    point["late"]["mean"].as_f64().unwrap() * 100.0
}

#[test]
fn the_papers_page_has_the_late_jobs_of_the_controllers_as_written() {
    let encoder = |method| late("encoder (Fig. 7)", method, 0.2);
    let claim = format!(
        "late at x = 0.2: LFS++ {:.1}%, adaptive reservations {:.1}%",
        encoder("LFS++"),
        encoder("AR")
    );
    assert_says("experiments/papers.md", &claim);
    let fall = late("frequency (Fig. 10)", "LFS++", 0.2);
    let claim = format!("late for {fall:.1}% of the next 30 s");
    assert_says("experiments/papers.md", &claim);
}

/// The row of an experiment's figures that has these values.
fn row<'a>(rows: &'a Value, of: &[(&str, &str)]) -> &'a Value {
    let is_it = |row: &&Value| of.iter().all(|(key, value)| row[*key] == *value);
    let mut rows = rows.as_array().unwrap().iter();
    rows.find(is_it).unwrap_or_else(|| panic!("no row {of:?}"))
}

#[test]
fn what_a_notification_is_worth_without_a_rhythm_is_what_its_table_has() {
    let rows = figures("mdn-main-loop/mdn-unseen");
    let mean = |case, what: &str| {
        let mean = row(&rows, &[("case", case)])[what]["mean"].as_f64();
        format!("{:.1}%", mean.unwrap())
    };
    let claim = format!(
        "{} of the requests late without it, {} with it",
        mean("requests", "missed"),
        mean("requests", "missed_mdn")
    );
    for document in ["experiments/papers.md", "docs/tutorial.md"] {
        assert_says(document, &claim);
    }
    for liar in ["lying-requests", "lying-bound"] {
        assert_eq!(mean(liar, "cpu"), mean(liar, "cpu_mdn"), "a liar gets more");
    }
}

#[test]
fn what_cheaters_gain_is_what_their_table_has() {
    let gains = figures("mdn-cheaters/mdn-cheaters");
    let lines = [
        (
            "| still periodic, needs 80% where a fair share is 50%: in the first 5 s |",
            "fig7a",
            "_at_first",
        ),
        ("| after 5 s |", "fig7a", ""),
        (
            "| turns CPU-bound, a fair share is 33.3%: in the first 5 s |",
            "fig7b",
            "_at_first",
        ),
        ("| after 5 s |", "fig7b", ""),
    ];
    for (line, case, when) in lines {
        let cells = ["linux24", "best", "berate"].map(|scheduler| {
            let gain = row(&gains, &[("case", case), ("scheduler", scheduler)]);
            let mean = |what| gain[format!("{what}{when}")]["mean"].as_f64().unwrap();
            format!("{:.1}", mean("lying") - mean("honest"))
        });
        assert_says(
            "docs/schedulers.md",
            &format!("{line} {} |", cells.join(" | ")),
        );
    }
    let kernel = figures("mdn-cheaters/mdn-cheaters-guest");
    let berate = ["fig7a", "fig7b"].map(|case| {
        let gain = row(&kernel, &[("case", case), ("scheduler", "berate")]);
        let mean = |what| gain[what]["mean"].as_f64().unwrap();
        format!("{:.1}", mean("lying_at_first") - mean("honest_at_first"))
    });
    let claim = format!(
        "the lies gained {} points under `berate`",
        berate.join(" and ")
    );
    assert_says("docs/schedulers.md", &claim);
}

/// The jobs that a program misses without and with notifications, as the tables round it.
fn missed(scheduler: &str, mix: &str, program: &str) -> [String; 2] {
    let rows = figures("mdn-deadlines/mdn-deadlines");
    let of = [("scheduler", scheduler), ("mix", mix), ("program", program)];
    let of = row(&rows, &of);
    ["missed", "missed_mdn"].map(|what| {
        let mean = of[what]["mean"].as_f64().unwrap();
        let digits = if mean < 1.0 { 2 } else { 1 };
        format!("{mean:.digits$}")
    })
}

#[test]
fn what_notifications_are_worth_is_what_their_tables_have() {
    let [without, with] = missed("onbeat", "33-33-of-4", "srt (25 f/s, 33.3%)");
    let claim = format!("missed {with}% of the frames with them and {without}% without");
    assert_says("docs/tutorial.md", &claim);
    let rows = figures("mdn-deadlines/mdn-deadlines");
    let rows = rows.as_array().unwrap().iter();
    let ours: Vec<&Value> = rows
        .filter(|row| row["scheduler"] == "onbeat" && row["program"] != "CPU-bound")
        .collect();
    let differs = |row: &&&Value| {
        let mean = |what: &str| row[what]["mean"].as_f64().unwrap();
        (mean("missed_mdn") - mean("missed")).abs() >= 0.1
    };
    let claim = format!(
        "{} of {} programs differ by 0.1 points or more with it",
        ours.iter().filter(differs).count(),
        ours.len()
    );
    assert_says("experiments/papers.md", &claim);
    let pair = |scheduler, mix, program| missed(scheduler, mix, program).join("%, ") + "%";
    let both = |mix, program, written, of_its_time| {
        let claim = format!(
            "{}; HZ=100 {}",
            pair(written, mix, program),
            pair(of_its_time, mix, program)
        );
        assert_says("experiments/papers.md", &claim);
    };
    both("50", "srt (25 f/s, 50%)", "linux24", "linux24-hz100");
    both("60", "srt (25 f/s, 60%)", "linux24", "linux24-hz100");
    both("60", "srt (25 f/s, 60%)", "berate", "berate-hz100");
}

#[test]
fn what_best_knows_of_a_period_is_what_its_table_has() {
    let rows = figures("mdn-progress/mdn-period");
    let rows = rows.as_array().unwrap();
    let right = |scheduler: &str, mdn: bool| {
        let is_it = |row: &&Value| {
            row["scheduler"] == scheduler
                && row["mdn"] == mdn
                && row["program"] == "srt (33 f/s, 62.5%)"
        };
        rows.iter().find(is_it).unwrap()["right_percent"]
            .as_f64()
            .unwrap()
    };
    let claim = format!(
        "right for {:.0}%, then {:.0}% of the time; {:.0}% with late notifications measured",
        right("best", false),
        right("best", true),
        right("best-measuring", true)
    );
    assert_says("experiments/papers.md", &claim);
}

#[test]
fn what_grace_os_takes_as_written_is_what_its_tables_have() {
    let played = figures("grace-os/grace-os-as-played");
    let energy = |scheme| {
        let of = row(&played, &[("scheme", scheme)]);
        let energy = of["ours"]["energy_s"].as_f64().unwrap();
        format!("{energy:.1}")
    };
    let six = [
        "worst-uniform",
        "worst-reclaim",
        "worst-stochastic-as-written",
        "stochastic-uniform",
        "stochastic-reclaim",
        "grace-os-as-written",
    ];
    let claim = format!(
        "{} as written; GRACE-OS with budgets of the first 100 jobs {}",
        six.map(energy).join(", "),
        energy("grace-os-as-written, first 100 jobs")
    );
    assert_says("experiments/papers.md", &claim);
    let runs = figures("grace-os/grace-os");
    let mpgplay = |scheme| row(&runs, &[("codecs", "mpgplay"), ("scheme", scheme)]);
    let figure = |scheme, what: &str| mpgplay(scheme)[what].as_f64().unwrap();
    let of_worst = |scheme| {
        let most = figure("worst-uniform", "energy_with_idle");
        100.0 * figure(scheme, "energy_with_idle") / most
    };
    let first = "grace-os-as-written, first 100 jobs";
    let claim = format!(
        "as written with budgets of the first 100 jobs {:.0}%; {:.1}% missed; the schedule here \
         {:.0}%; {:.1}%",
        of_worst(first),
        100.0 * figure(first, "missed"),
        of_worst("grace-os"),
        100.0 * figure("grace-os", "missed")
    );
    assert_says("experiments/papers.md", &claim);
}

#[test]
fn what_is_guaranteed_on_two_cpus_is_what_its_table_has() {
    let rows = figures("several-cpus/several-cpus");
    let rows = rows.as_array().unwrap();
    let is_it = |row: &&Value| row["cpus"] == 2 && row["load"] == 0.8;
    let of = rows.iter().find(is_it).unwrap();
    let guaranteed = 100.0 * of["global_guaranteed"].as_f64().unwrap();
    let claim = format!("of which {guaranteed:.1}% are guaranteed");
    assert_says("docs/limits.md", &claim);
}

/// The rows of all tables of a page, as their cells.
fn cells(page: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix('|'));
    rows.map(|row| {
        let cells = row.trim_end_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    })
    .collect()
}

/// The rows that begin with these cells.
fn rows_with(page: &str, first: &[&str]) -> Vec<Vec<String>> {
    let mut rows = cells(page);
    rows.retain(|row| row.len() >= first.len() && first.iter().zip(row).all(|(a, b)| a == b));
    assert!(!rows.is_empty(), "{page} has no row {first:?}");
    rows
}

/// The figure that a cell begins with.
fn figure(cell: &str) -> f64 {
    let end = cell.find(|c: char| !c.is_ascii_digit() && c != '.');
    let figure = cell.get(..end.unwrap_or(cell.len())).unwrap();
    figure
        .parse()
        .unwrap_or_else(|_| panic!("no figure: {cell}"))
}

fn least_and_most(figures: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    let wider = |(least, most): (f64, f64), figure: f64| (least.min(figure), most.max(figure));
    figures.into_iter().fold(start, wider)
}

/// The tables of a page: the heading's cells, and those of each row.
fn tables(page: &str) -> Vec<Vec<Vec<String>>> {
    let mut tables: Vec<Vec<Vec<String>>> = Vec::new();
    for row in cells(page) {
        let is_rule = row
            .iter()
            .all(|cell| cell.trim_matches([':', '-']).is_empty());
        match tables.last_mut() {
            Some(rows) if is_rule => {
                let heading = rows.pop();
                tables.push(heading.into_iter().collect());
            }
            Some(rows) => rows.push(row),
            None => tables.push(vec![row]),
        }
    }
    tables.retain(|rows| !rows.is_empty());
    tables
}

/// The tables of a page whose heading has this cell first, without the heading.
fn tables_of(page: &str, heading: &str) -> Vec<Vec<Vec<String>>> {
    let mut tables = tables(page);
    tables.retain(|rows| rows[0][0] == heading);
    tables.iter_mut().for_each(|rows| drop(rows.remove(0)));
    tables
}

/// A cell of the only row that begins with these cells.
fn cell(page: &str, first: &[&str], column: usize) -> String {
    let mut rows = rows_with(page, first);
    assert_eq!(rows.len(), 1, "{page}: {first:?}");
    rows.remove(0).remove(column)
}

#[test]
fn the_first_table_of_the_readme_is_that_of_its_experiment() {
    let of = |page| -> Vec<Vec<String>> {
        let is_run = |row: &Vec<String>| row[0].starts_with("idle") || row[0].starts_with("hogs");
        let runs = cells(page).into_iter().filter(is_run);
        runs.filter(|row| row.len() == 6).collect()
    };
    let table = of("experiments/av-desync/README.md");
    assert_eq!(of("README.md"), table);
    assert_eq!(table.len(), 4);
    assert_says("docs/limits.md", &format!("at most {} apart", table[0][2]));
}

#[test]
fn the_alternatives_in_virtual_time_are_those_of_their_table() {
    let of = |page| -> Vec<Vec<String>> {
        let mut rows = cells(page);
        rows.retain(|row| row[0].starts_with("eevdf") || row[0].starts_with("scx_"));
        rows.retain(|row| row.len() == 8);
        rows
    };
    let told = of("docs/alternatives.md");
    assert!(told.len() > 1);
    assert_eq!(told, of("experiments/alternatives/README.md"));
}

#[test]
fn what_tracking_costs_is_what_its_tables_have() {
    const PAGE: &str = "experiments/tracking-cost/README.md";
    let after = |threads, jobs| rows_with(PAGE, &[threads, jobs])[0][4].clone();
    let (few, many) = (after("12", "600"), after("200", "10,000"));
    let claim = format!("{few} of a CPU for 12 threads of 50 Hz, {many} for 200");
    assert_says("README.md", &claim);
    assert_says("docs/limits.md", &format!("| 12 of 50 Hz | {few} |"));
    let quick = rows_with(PAGE, &["the same minutes, since"])[0][2].clone();
    let claim = format!(
        "(wanted: 2%) | {} to {many}, 5.8% on a busy machine |",
        quick.trim_end_matches('%')
    );
    assert_says("docs/limits.md", &claim);
    let crowd = rows_with(PAGE, &["400", "400"])[0][6].clone();
    assert_says("docs/limits.md", &format!("| 400 of 50 Hz | {crowd} |"));
}

#[test]
fn what_the_tracer_costs_others_is_what_its_table_has() {
    let median = |during, program| {
        let rows = rows_with("experiments/tracer-overhead/README.md", &[during, program]);
        rows[0][2].clone()
    };
    let [asleep, at_work] = ["a tracked task sleeps", "ffmpeg transcodes"]
        .map(|during| ["switched", "waking"].map(|program| median(during, program)));
    let claim = format!(
        "{} to {} ns in the median while the traced thread sleeps, {} to {} ns while it works",
        asleep[0], asleep[1], at_work[0], at_work[1]
    );
    assert_says("README.md", &claim);
    let claim = format!(
        "{} ns in the median while the traced thread slept, {} ns while it worked",
        asleep.join(" and "),
        at_work.join(" and ")
    );
    assert_says("docs/limits.md", &claim);
}

#[test]
fn what_each_tracer_costs_a_film_is_what_its_table_has() {
    let mut rows = cells("experiments/tracer-overhead/README.md");
    rows.retain(|row| row.len() == 4);
    let slower = |tracer: &str| {
        let row = rows.iter().find(|row| row[0] == tracer);
        row.unwrap_or_else(|| panic!("no {tracer}"))[1].clone()
    };
    let of = [
        "bpf",
        "bpf-syscalls",
        "tracefs",
        "perf",
        "ptrace",
        "preload",
        "strace",
    ]
    .map(slower);
    let [bpf, calls, tracefs, perf, ptrace, preload, strace] = of;
    let claim = format!(
        "wall time in virtual time {bpf}, {calls}, {ptrace}, {strace}; tracefs {tracefs}, perf \
         {perf}, preload {preload}"
    );
    assert_says("experiments/papers.md", &claim);
    let claim = format!("a film without pauses took {:.1}% longer", figure(&ptrace));
    assert_says("docs/tracers.md", &claim);
}

#[test]
fn how_soon_a_thread_is_locked_is_what_its_table_has() {
    let mut rows = cells("experiments/lock-time/README.md");
    rows.retain(|row| row.len() == 10 && row[0].ends_with(" ms"));
    let jobs = rows.iter().filter(|row| row[1] == "0");
    let (least, most) = least_and_most(jobs.flat_map(|row| [figure(&row[8]), figure(&row[9])]));
    let claim = format!("A lock took {least} to {most} jobs without load.");
    assert_says("docs/limits.md", &claim);
    let beside = |is_long: bool| {
        let rows = rows.iter().filter(|row| row[1] == "4");
        let rows = rows.filter(|row| (figure(&row[0]) > 40.0) == is_long);
        least_and_most(rows.map(|row| figure(&row[7]))).1
    };
    let claim = format!(
        "Beside hogs it took up to {:.1} s for periods up to 40 ms, and {:.1} s for 100 ms",
        beside(false),
        beside(true)
    );
    assert_says("docs/limits.md", &claim);
}

#[test]
fn what_steady_tasks_reserve_is_what_their_table_has() {
    let tables = tables_of("experiments/three-rt-apps/README.md", "run");
    let live = tables.last().unwrap().iter();
    let ratios = live.filter(|row| row[0] == "onbeat");
    let (least, most) = least_and_most(ratios.map(|row| figure(&row[11])));
    let claim = format!("{least:.1} to {most:.1} times for steady tasks");
    assert_says("docs/limits.md", &claim);
}

#[test]
fn how_late_jobs_are_on_several_cpus_is_what_their_table_has() {
    let mut rows = cells("experiments/several-cpus/README.md");
    rows.retain(|row| row.get(2).is_some_and(|way| way == "onbeat, global"));
    let late = |row: &Vec<String>| figure(&row[7]) / 10.0;
    let (bad, good): (Vec<_>, Vec<_>) = rows.iter().partition(|row| late(row) > 2.0);
    let (least, most) = least_and_most(good.into_iter().map(late));
    let each = |row: &Vec<String>| format!("{:.1}% ({} on {} CPUs)", late(row), row[1], row[0]);
    for row in &bad {
        assert_says("docs/limits.md", &each(row));
    }
    let claim = format!(
        "late in {least:.1} to {most:.1}% of the jobs on {} of {} sets",
        rows.len() - bad.len(),
        rows.len()
    );
    assert_says("docs/limits.md", &claim);
}

#[test]
fn what_a_call_of_the_library_costs_is_what_its_table_has() {
    let of = |what| rows_with("experiments/mark-cost/README.md", &[what])[0][1].clone();
    let claim = format!(
        "A call costs {} unheard, and [{}](../experiments/mark-cost/README.md) heard",
        of("nobody listens"),
        of("listened to, by a breakpoint")
    );
    assert_says("libonbeat/README.md", &claim);
}

const LIVE: &str = "frames, cycles or jobs in time";

#[test]
fn the_programs_beside_hogs_are_those_of_their_tables() {
    const PAGE: &str = "experiments/programs/README.md";
    let of_page = tables_of(PAGE, LIVE);
    let [idle, hogs, _, two] = of_page.as_slice() else {
        panic!("{PAGE} has {} such tables", of_page.len());
    };
    let told = tables_of("docs/alternatives.md", "");
    let [_, live, at_once] = told.as_slice() else {
        panic!(
            "docs/alternatives.md has {} tables without a heading",
            told.len()
        );
    };
    for ((told, idle), hogs) in live.iter().zip(idle).zip(hogs) {
        assert!(
            idle[0].starts_with(told[0].split([',', ' ']).next().unwrap()),
            "{told:?}"
        );
        let ways = hogs[1..8].iter().map(|count| match count.as_str() {
            "-" => "-".to_owned(),
            count => format!("{:.0}", 100.0 * figure(count) / figure(&idle[1])),
        });
        assert_eq!(told[1..], ways.collect::<Vec<_>>(), "{}", told[0]);
    }
    let is_as_good = |row: &&Vec<String>| figure(&row[3]) >= figure(&row[7]);
    let claim = format!(
        "as good or better in {} of the {} rows below",
        live.iter().filter(is_as_good).count(),
        live.len()
    );
    assert_says("docs/alternatives.md", &claim);
    for (told, two) in at_once.iter().zip(two) {
        assert_eq!(told[1..], two[1..], "{}", told[0]);
    }
    let newest = tables_of("experiments/programs/newest.md", LIVE);
    let share = |row: usize, way: usize| {
        let of = |table: usize, way: usize| figure(&newest[table][row][way]);
        100.0 * of(1, way) / of(0, 1)
    };
    let claim = format!(
        "has {:.0}% of the grab's frames on the idle machine (`chrt` {:.0}%), {:.0}% of Chromium's \
         ({:.0}%), {:.0}% of mpv's ({:.0}%)",
        share(6, 3),
        share(6, 2),
        share(4, 3),
        share(4, 2),
        share(1, 3),
        share(1, 2)
    );
    assert_says("docs/alternatives.md", &claim);
    let is_kept = |row: &&Vec<String>| figure(&row[3]) >= 0.985 * figure(&row[1]);
    let claim = format!(
        "{} of {} programs keep 99% or more of their frames",
        newest[0].iter().filter(is_kept).count(),
        newest[0].len()
    );
    assert_says("docs/limits.md", &claim);
}

#[test]
fn what_is_called_not_periodic_is_what_its_table_has() {
    const PAGE: &str = "experiments/period-accuracy/README.md";
    let right = |what: &str| -> Vec<String> {
        let rows = rows_with(PAGE, &[what]);
        let right = |row: &Vec<String>| row[2].split(':').next().unwrap().to_owned();
        rows.iter()
            .map(|row| format!("{} of {}", right(row), row[1]))
            .collect()
    };
    let [seen, unseen] = right("aperiodic, 1 s").try_into().unwrap();
    for (what, right) in [("was made with", seen), ("had not seen", unseen)] {
        let claim = format!("{what}: windows of 1 s | {right} |");
        assert_says("docs/limits.md", &claim);
    }
    let logs = right("LiME, sporadic").join(", and ");
    let claim = format!("another data set | {logs} not seen |");
    assert_says("docs/limits.md", &claim);
}

/// The figures and tables of the papers that show a result.
const PAPERS: [(&str, &[&str]); 5] = [
    (
        "LFS++",
        &[
            "Fig. 1", "Fig. 2a", "Fig. 2b", "Fig. 4", "Fig. 5", "Table I", "Fig. 6", "Fig. 7",
            "Fig. 8a", "Fig. 8b", "Fig. 9", "Fig. 10", "Table II", "Fig. 11", "Fig. 12",
        ],
    ),
    ("AQuoSA", &["listing 1", "listing 2", "listing 3"]),
    (
        "GRACE-OS",
        &[
            "Table 1", "Table 2", "Table 3", "Table 4", "Table 5", "Table 6", "Table 7", "Table 8",
            "Table 9", "Table 10", "Fig. 8", "Fig. 9", "Fig. 10", "Fig. 11", "Fig. 12", "Fig. 13",
            "Fig. 14",
        ],
    ),
    (
        "Missed deadline notification",
        &[
            "Fig. 2",
            "Fig. 3",
            "Fig. 4",
            "Fig. 5",
            "Fig. 6",
            "Fig. 7a",
            "Fig. 7b",
            "Fig. 8",
            "Fig. 9",
            "Fig. 10",
            "table of 4.1",
            "table of 4.3",
        ],
    ),
    (
        "Timing exceptions",
        &[
            "Table 1", "Table 2", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 6", "Fig. 7", "Fig. 8",
            "Table 3", "Table 4",
        ],
    ),
];

#[test]
fn the_papers_page_has_a_row_and_a_command_for_each_figure_and_table() {
    let text = fs::read_to_string(Path::new(ROOT).join("experiments/papers.md")).unwrap();
    for (paper, shown) in PAPERS {
        let (_, page) = text.split_once(&format!("\n## {paper}\n")).unwrap();
        let page = page.split("\n## ").next().unwrap();
        let rows: Vec<Vec<&str>> = page
            .lines()
            .filter(|line| line.starts_with("| ") && !line.starts_with("| |"))
            .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
            .collect();
        for name in shown {
            let has = rows
                .iter()
                .any(|row| row[0].split(", ").any(|of| of == *name));
            assert!(
                has,
                "experiments/papers.md has no row for {name} of {paper}"
            );
        }
        for row in rows {
            let [.., command, comparable] = row.as_slice() else {
                panic!("{row:?}");
            };
            for command in command.split(", ") {
                let command = command.trim_start_matches('[').split(']').next().unwrap();
                let is_experiment = Path::new(ROOT).join("experiments").join(command).is_dir();
                assert!(is_experiment || command.starts_with('`'), "{row:?}");
            }
            let is_judged = ["yes", "partly", "no"]
                .iter()
                .any(|word| comparable.starts_with(word));
            assert!(is_judged, "{row:?}");
        }
    }
}
