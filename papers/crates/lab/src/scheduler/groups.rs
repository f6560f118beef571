//! The groups of `onbeat-lab scheduler start reserve`: admitted before anything else, and told with
//! what they have used.

use std::io::{self, Write};

use anyhow::{Context, bail};
use onbeat_act::kernel;
use onbeat_model::Span;
use onbeat_schedulers::Running;
use onbeat_schedulers::reserve::{GroupReservation, Reservations};
use serde::Serialize;

/// The output of `start --json` for each group; `docs/formats.md` describes it.
#[derive(Serialize)]
pub(super) struct GroupTold {
    group: String,
    runtime_ns: Span,
    period_ns: Span,
    used_ns: Span,
    exhausted: u64,
}

pub(super) fn admit(
    running: &mut Running,
    groups: &[GroupReservation],
) -> anyhow::Result<Reservations> {
    let name = running.name();
    if !groups.is_empty() && name != "reserve" {
        bail!("--group works with the scheduler reserve, not with {name}");
    }
    let mut reservations = Reservations::default();
    for group in groups {
        reservations
            .set(running, group.whom, group.budget)
            .with_context(|| format!("cannot reserve {} for {}", group.budget, group.whom))?;
    }
    Ok(reservations)
}

/// Holds the groups to what all can have now: CPUs may have come or gone.
pub(super) fn fit(running: &mut Running, reservations: &mut Reservations) {
    if reservations.groups().next().is_none() {
        return;
    }
    // If the kernel has ended the scheduler, the session ends for it.
    if let Ok(Some(part)) = reservations.fit(running) {
        eprintln!(
            "onbeat-lab: {} CPUs are online, and each group gets {:.0}% of its runtime",
            kernel::capacity().cpus,
            100.0 * part
        );
    }
}

/// The CPU time of each up to now.
pub(super) fn told(running: &mut Running, reservations: &Reservations) -> Vec<GroupTold> {
    let groups = reservations.groups();
    groups
        .filter_map(|(whom, budget)| {
            let used = reservations.used(running, whom)?;
            Some(GroupTold {
                group: whom.to_string(),
                runtime_ns: budget.runtime,
                period_ns: budget.period,
                used_ns: used.time,
                exhausted: used.exhausted,
            })
        })
        .collect()
}

pub(super) fn show(groups: &[GroupTold]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for told in groups {
        writeln!(
            output,
            "{}: {} every {}; used {}, and {} times all of it",
            told.group, told.runtime_ns, told.period_ns, told.used_ns, told.exhausted
        )?;
    }
    Ok(())
}
