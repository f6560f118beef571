//! A periodic task in a server of this kernel, with opponents that make the server give as late as
//! it may: the analysis speaks of the worst case, and an idle CPU would show the best.
//!
//! Each job has an opponent of its own: a thread in a server of the same period that takes all that
//! the task's server leaves, and wakes a little earlier, so that its deadline is the earlier. It is
//! a new thread each time, because what is left of a server's last period decides how it goes on.
//!
//! To be run on the one CPU of a guest in virtual time, with the kernel's admission test off:
//! together they take the whole CPU.

use std::thread::JoinHandle;

use anyhow::Context;
use onbeat_act::attributes::Attributes;
use onbeat_model::{Reservation, Span};

use crate::clock::{execute, now, sleep_until};

/// An opponent wakes this time before the task's release.
const LEAD: Span = Span::from_us(200);
/// It gives up this time before the next release.
const REST: Span = Span::from_us(500);

#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) execution: Span,
    pub(super) period: Span,
}

/// Whether a job needs longer than its period, among `jobs` of the task in `server` beside the
/// opponents. Stops at the first that does.
pub(super) fn misses(task: Task, server: Reservation, jobs: u32) -> anyhow::Result<bool> {
    let first_release = now() + Span::from_ms(50);
    let releases = (0..jobs).map(move |n| first_release + task.period * u64::from(n));
    let all_else = Reservation::implicit(server.period() - server.runtime(), server.period());
    let opponents: Vec<JoinHandle<_>> = all_else.map_or_else(
        |_| Vec::new(),
        |all_else| {
            let one = |release| std::thread::spawn(move || oppose(all_else, task, release));
            releases.clone().map(one).collect()
        },
    );
    let served = std::thread::spawn(move || -> anyhow::Result<bool> {
        reserve(server)?;
        for release in releases {
            sleep_until(release);
            execute(task.execution);
            if now() > release + task.period {
                return Ok(true);
            }
        }
        Ok(false)
    });
    let missed = join(served)?;
    for opponent in opponents {
        join(opponent)?;
    }
    Ok(missed)
}

fn join<T>(thread: JoinHandle<anyhow::Result<T>>) -> anyhow::Result<T> {
    thread
        .join()
        .ok()
        .context("a thread of the trial panicked")?
}

/// Takes what the task's server leaves to `all_else`, from `release` to shortly before the next.
fn oppose(all_else: Reservation, task: Task, release: Span) -> anyhow::Result<()> {
    reserve(all_else)?;
    sleep_until(release - LEAD);
    let end = release + task.period - REST;
    while now() < end {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Reserves for the calling thread.
pub(super) fn reserve(server: Reservation) -> anyhow::Result<()> {
    let attributes = Attributes::reserved(server, false);
    attributes.set(0).context("cannot be reserved")
}
