//! The measurements inside the guest, and their way out of it.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use onbeat_model::{Reservation, Span};
use serde::{Deserialize, Serialize};

use super::lfs::{self, LfsJob};
use super::served::misses;
use super::{FIG_1, FIG_2, SERVER_PERIODS_MS, runtime_needed};

/// The server periods that a test has time for, in ms.
const FEW_MS: [u64; 2] = [40, 100];
const LFS_PERIODS_MS: [u64; 5] = [10, 30, 40, 50, 90];
pub(super) const LFS_JOBS: usize = 180;
/// LFS needs as many to come down from the whole CPU: 1% a job.
const LFS_SETTLES: usize = 80;
/// Jobs after which a runtime counts as enough: the pattern of two periods repeats by then.
const JOBS: u32 = 6;
/// The runtime is found to a whole multiple of this.
const STEP: Span = Span::from_us(250);
/// The kernel looks at budgets at this interval, unless its high-resolution tick is on.
const TICK: Span = Span::from_ms(4);

/// The least runtime with which the task of Fig. 1 met every deadline.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Needed {
    pub(super) server_period_ms: u64,
    pub(super) measured_ms: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Lfs {
    pub(super) server_period_ms: u64,
    pub(super) jobs: Vec<LfsJob>,
}

impl Lfs {
    /// The jobs after LFS has come down.
    pub(super) fn settled(&self) -> &[LfsJob] {
        self.jobs.get(LFS_SETTLES..).unwrap_or_default()
    }
}

/// Measures Fig. 1 on this machine, and fails where the analysis is off by more than a tick, and
/// what the search and the switches add.
pub(super) fn measure_needed(file: &Path, short: bool) -> anyhow::Result<()> {
    let all = if short {
        &FEW_MS[..]
    } else {
        &SERVER_PERIODS_MS[..]
    };
    let mut measured = Vec::new();
    let mut apart = Vec::new();
    for ms in all {
        let needed = needed(*ms)?;
        let analysed_ms = runtime_needed(Span::from_ms(*ms)).as_ms_f64();
        println!("{needed:?}, analysed {analysed_ms} ms");
        if (needed.measured_ms - analysed_ms).abs() > (TICK + STEP * 2).as_ms_f64() {
            apart.push(ms);
        }
        measured.push(needed);
    }
    write(file, &measured)?;
    if !apart.is_empty() {
        bail!("kernel and analysis are more than a tick apart at {apart:?} ms");
    }
    Ok(())
}

pub(super) fn play_lfs(file: &Path) -> anyhow::Result<()> {
    let runs = LFS_PERIODS_MS.iter().map(|ms| under_lfs(*ms));
    write(file, &runs.collect::<anyhow::Result<Vec<_>>>()?)
}

fn write(file: &Path, figures: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(figures)?;
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn needed(server_period_ms: u64) -> anyhow::Result<Needed> {
    let period = Span::from_ms(server_period_ms);
    let enough = |steps: u64| -> anyhow::Result<bool> {
        let server = Reservation::implicit(STEP * steps, period)?;
        Ok(!misses(FIG_1, server, JOBS)?)
    };
    // Too few steps, and enough: a whole CPU is.
    let (mut few, mut most) = (0, period.as_ns() / STEP.as_ns());
    while most - few > 1 {
        let middle = few.midpoint(most);
        if enough(middle)? {
            most = middle;
        } else {
            few = middle;
        }
    }
    Ok(Needed {
        server_period_ms,
        measured_ms: (STEP * most).as_ms_f64(),
    })
}

fn under_lfs(server_period_ms: u64) -> anyhow::Result<Lfs> {
    let period = Span::from_ms(server_period_ms);
    let thread = std::thread::spawn(move || lfs::play(FIG_2, period, LFS_JOBS));
    let jobs = thread.join().ok().context("LFS panicked")??;
    Ok(Lfs {
        server_period_ms,
        jobs,
    })
}
