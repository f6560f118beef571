//! LFS, the forerunner of LFS++, in a kernel in virtual time: it raises the runtime of a server of
//! some period when a job was late, and lowers it a little when one was not (Fig. 2).

use onbeat_decide::predictor::Predictor;
use onbeat_lfspp::predictor::{Binary, BinarySteps};
use onbeat_model::{Demand, Instant, Job, Reservation, Span, TaskId};
use serde::{Deserialize, Serialize};

use super::served::{Task, reserve};
use crate::clock::{execute, now, sleep_until};

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct LfsJob {
    pub(super) response_ms: f64,
    /// The share of the CPU that its server had when it ended.
    pub(super) bandwidth: f64,
}

/// `jobs` of the task in a server of `server_period`, whose runtime LFS chooses.
///
/// Runs in the calling thread, which is reserved afterwards: give it one of its own.
pub(super) fn play(task: Task, server_period: Span, jobs: usize) -> anyhow::Result<Vec<LfsJob>> {
    let mut lfs = Binary::new(BinarySteps::default());
    let demand = Demand::new(1);
    let mut held = Reservation::implicit(server_period, server_period)?;
    let mut done = Vec::new();
    let mut release = now() + task.period;
    for _ in 0..jobs {
        sleep_until(release);
        execute(task.execution);
        let ended = now();
        let late = ended > release + task.period;
        if late {
            lfs.exhausted(instant(ended), held);
        }
        lfs.job(&seen(server_period, (release, ended), late), &demand);
        if let Some(runtime) = lfs.runtime(server_period) {
            held = Reservation::implicit(runtime, server_period)?;
            reserve(held)?;
        }
        done.push(LfsJob {
            response_ms: (ended - release).as_ms_f64(),
            bandwidth: held.bandwidth().as_cpus(),
        });
        release += task.period;
    }
    Ok(done)
}

fn instant(at: Span) -> Instant {
    Instant::ZERO + at
}

/// A job as the predictor sees it. It begins at twice the first job's execution time: half a server
/// period makes that the whole CPU. For the others only their lateness counts.
fn seen(server_period: Span, (release, ended): (Span, Span), late: bool) -> Job {
    Job {
        task: TaskId::recorded(1),
        release: instant(release),
        woke: instant(release),
        started: instant(release),
        ended: instant(ended),
        executed: server_period / 2,
        waited: Span::ZERO,
        deadline: instant(ended),
        bursts: 1,
        exhausted: late,
    }
}
