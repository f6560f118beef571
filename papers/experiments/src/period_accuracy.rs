//! How far the period that is found is off, against what no estimator can better: the bound of
//! Cramer and Rao for a line through normal releases. And how soon it is found at all.

use onbeat_infer::period::{Analyser, AnalyserConfig};
use onbeat_model::{Burst, Instant, Span, TaskId};
use rayon::prelude::*;

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::results::{Ran, Table, percent};

const NAME: &str = "period-accuracy";
const PERIOD_NS: f64 = 20e6;
const THREADS: u64 = 500;
/// An error below this is one of accuracy; above it the period is another one.
const WITHIN: f64 = 0.01;

/// A made-up thread. Jitter is a share of the period, outliers of the wakeups, missing of the jobs.
#[derive(Clone, Copy)]
struct Thread {
    jobs: u32,
    jitter: f64,
    outliers: f64,
    missing: f64,
}

const PLAIN: Thread = Thread {
    jobs: 50,
    jitter: 0.02,
    outliers: 0.0,
    missing: 0.0,
};

#[derive(Clone, Copy)]
struct Row {
    thread: Thread,
    right: f64,
    wrong: f64,
    silent: f64,
    /// Relative errors of the right ones, as root mean squares.
    error: f64,
    bound: f64,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let out = machine.out();
    let jitters = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.07, 0.1];
    let of = |jitter| Thread { jitter, ..PLAIN };
    let over_jitter: Vec<Row> = jitters.map(|jitter| row(of(jitter))).into();
    let shares = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3];
    let of = |outliers| Thread { outliers, ..PLAIN };
    let over_outliers: Vec<Row> = shares.map(|share| row(of(share))).into();
    let of = |missing| Thread { missing, ..PLAIN };
    let over_missing: Vec<Row> = shares.map(|share| row(of(share))).into();
    let of = |jobs| Thread {
        jobs,
        jitter: 0.05,
        outliers: 0.1,
        missing: 0.1,
    };
    let over_time: Vec<Row> = [6, 8, 10, 15, 20, 25, 50, 100, 250]
        .map(|n| row(of(n)))
        .into();
    let points = |rows: &[Row], x: fn(&Row) -> f64, y: fn(&Row) -> f64| -> Vec<(f64, f64)> {
        rows.iter().map(|row| (x(row), y(row))).collect()
    };
    let jitter = |y| points(&over_jitter, |row| row.thread.jitter, y);
    let by_jitter = Figure {
        title: "Error of the period after 50 jobs, by jitter".to_owned(),
        x: Axis::logarithmic("jitter / period", 0.001..0.1),
        y: Axis::logarithmic("relative error (rms)", 5e-6..2e-3),
        lines: vec![
            Line::new("onbeat", Look::Marked, jitter(|row| row.error)),
            Line::new("Cramer-Rao bound", Look::Straight, jitter(|row| row.bound)),
        ],
        names: Corner::UpperLeft,
    };
    by_jitter.draw(out, &format!("{NAME}-jitter"))?;
    let ratio = |row: &Row| row.error / row.bound;
    let outliers = points(&over_outliers, |row| row.thread.outliers, ratio);
    let missing = points(&over_missing, |row| row.thread.missing, ratio);
    let by_share = Figure {
        title: "Error of the period against the bound, at a jitter of 2%".to_owned(),
        x: Axis::linear("share", 0.0..0.3),
        y: Axis::linear("relative error / Cramer-Rao bound", 0.0..2.0),
        lines: vec![
            Line::new("wakeups that are no releases", Look::Marked, outliers),
            Line::new("missing jobs", Look::Marked, missing),
        ],
        names: Corner::LowerRight,
    };
    by_share.draw(out, &format!("{NAME}-contamination"))?;
    let all = [over_jitter, over_outliers, over_missing, over_time].concat();
    let ran = Ran::computed(machine, format!("{THREADS} made-up threads for each row"));
    machine.publish(&ran, NAME, &table(&all));
    Ok(())
}

fn row(thread: Thread) -> Row {
    let found: Vec<(Option<f64>, f64)> = (0..THREADS)
        .into_par_iter()
        .map(|seed| thread.found(&mut Random(seed)))
        .collect();
    let share = |count: usize| count as f64 / found.len() as f64;
    let is_right = |error: &f64| error.abs() < WITHIN;
    let right = found
        .iter()
        .filter_map(|of| of.0.filter(is_right).map(|e| (e, of.1)));
    let count = right.clone().count();
    let silent = found.iter().filter(|of| of.0.is_none()).count();
    let rms = |squares: f64| (squares / count as f64).sqrt();
    Row {
        thread,
        right: share(count),
        wrong: share(found.len() - count - silent),
        silent: share(silent),
        error: rms(right.clone().map(|of| of.0.powi(2)).sum()),
        bound: rms(right.map(|of| of.1.powi(2)).sum()),
    }
}

impl Thread {
    /// The relative error of the period found, if one is, and its bound.
    fn found(self, random: &mut Random) -> (Option<f64>, f64) {
        let (mut at, mut beats) = (Vec::new(), Vec::new());
        for beat in (0..self.jobs).map(f64::from) {
            let release = beat + self.jitter * random.normal();
            if random.even() >= self.missing {
                at.push(release);
                beats.push(beat);
            }
        }
        let count = beats.len() as f64;
        let outliers = (self.outliers / (1.0 - self.outliers) * count).round() as usize;
        at.extend((0..outliers).map(|_| random.even() * f64::from(self.jobs)));
        at.sort_by(f64::total_cmp);
        let mean = beats.iter().sum::<f64>() / count;
        let spread: f64 = beats.iter().map(|beat| (beat - mean).powi(2)).sum();
        let mut analyser = Analyser::new(AnalyserConfig::default());
        let woke = |at: f64| Instant::from_ns((1e9 + at * PERIOD_NS) as u64);
        let task = TaskId::recorded(1);
        for &at in &at {
            analyser.hear(&Burst::alone(task, woke(at), Span::from_us(200)));
        }
        let found = analyser.analyse(woke(f64::from(self.jobs)));
        let error = found
            .first()
            .map(|found| found.period.as_ns() as f64 / PERIOD_NS - 1.0);
        (error, self.jitter / spread.sqrt())
    }
}

/// A small generator (SplitMix64), the same everywhere.
struct Random(u64);

impl Random {
    fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.even()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.even()).cos()
    }
}

fn table(all: &[Row]) -> Table {
    Table::of(all, |row| {
        let thread = row.thread;
        let seconds = f64::from(thread.jobs) * PERIOD_NS / 1e9;
        [
            ("observed", format!("{seconds} s")),
            ("jitter", percent(thread.jitter, 1)),
            ("no releases", percent(thread.outliers, 0)),
            ("missing", percent(thread.missing, 0)),
            ("right", percent(row.right, 1)),
            ("wrong", percent(row.wrong, 1)),
            ("silent", percent(row.silent, 1)),
            ("error", format!("{:.1e}", row.error)),
            ("error / bound", format!("{:.2}", row.error / row.bound)),
        ]
    })
}
