//! The messages on the bus, in its types.

use std::collections::HashMap;

use onbeat_control::{Application, ThreadReport, What};
use onbeat_model::{Reservation, Span};
use zbus::zvariant::OwnedValue;

use crate::fault::Fault;
use crate::publisher::{Change, Figures};

/// Runtime, deadline and period in nanoseconds; three zeroes are no reservation.
pub(super) type Times = (u64, u64, u64);
pub(super) type Properties = HashMap<&'static str, OwnedValue>;

/// The one option of Track.
pub(super) fn children(options: HashMap<String, OwnedValue>) -> Result<bool, Fault> {
    let mut children = false;
    for (name, value) in options {
        match (name.as_str(), bool::try_from(&value)) {
            ("children", Ok(value)) => children = value,
            ("children", Err(_)) => {
                return Err(Fault::Invalid("option children: true or false".to_owned()));
            }
            _ => {
                return Err(Fault::Invalid(format!(
                    "there is no option {name}: there is children"
                )));
            }
        }
    }
    Ok(children)
}

pub(super) fn described(thread: &ThreadReport) -> Properties {
    let (task, present) = (&thread.task, &thread.present);
    let (runtime, deadline, period) = times(present.reservation);
    let place = onbeat_metrics::cgroup_of(task.id);
    let name = |name: Option<String>| text(&name.unwrap_or_default());
    let ns = |span: Option<Span>| span.unwrap_or_default().as_ns().into();
    let counted_from = thread.counted.counted_from.unwrap_or_default();
    let path = thread.stage.map(|stage| stage.to_string());
    HashMap::from([
        ("unit", name(place.unit)),
        ("container", name(place.container)),
        ("pod", name(place.pod)),
        ("namespace", name(place.namespace)),
        ("thread", task.id.tid.into()),
        ("process", task.pid.into()),
        ("application", thread.served.application.into()),
        ("started-ticks", task.id.started_ticks.into()),
        ("name", text(&task.comm.to_text())),
        ("user", present.user.unwrap_or_default().into()),
        ("state", text(thread.state.name())),
        ("period-ns", ns(thread.period)),
        ("confidence", thread.confidence.into()),
        ("runtime-ns", runtime.into()),
        ("deadline-ns", deadline.into()),
        ("reserved-period-ns", period.into()),
        ("jobs", thread.counted.jobs.into()),
        ("missed", thread.counted.missed.into()),
        ("counted-from-ns", counted_from.as_ns().into()),
        ("exhaustions", thread.reservations.exhaustions.into()),
        ("bursts", present.bursts.into()),
        ("executed-ns", thread.executed.as_ns().into()),
        ("last", text(present.last.map_or("", What::name))),
        ("path", name(path)),
        ("refusal", name(thread.served.refusal.clone())),
        ("why", text(&present.why)),
    ])
}

/// The names are those of `--report`, with a hyphen for each underscore.
pub(super) fn summed(application: &Application) -> Properties {
    HashMap::from([
        ("pid", application.pid.into()),
        ("comm", text(&application.comm.to_text())),
        ("members", application.members.into()),
        ("living", application.living.into()),
        ("by-reservation", application.by_reservation.into()),
        ("by-nice", application.by_nice.into()),
        ("refused", application.refused.into()),
        ("jobs", application.jobs.into()),
        ("missed", application.missed.into()),
        ("executed-ns", application.executed.as_ns().into()),
        (
            "bandwidth-used",
            application.bandwidth_used.as_cpus().into(),
        ),
        (
            "bandwidth-reserved",
            application.bandwidth_reserved.as_cpus().into(),
        ),
    ])
}

pub(super) fn counted(figures: &Figures) -> Properties {
    let mut all: Properties = HashMap::from([
        ("threads", figures.threads.into()),
        ("reserved", figures.reserved.into()),
        ("bandwidth", figures.bandwidth.as_cpus().into()),
        ("total-bandwidth", figures.total.as_cpus().into()),
        ("holders", figures.holders.into()),
        ("turned-away", figures.turned_away.into()),
        ("changes", figures.changes.into()),
        ("refusals", figures.refusals.into()),
        ("uptime-ns", figures.uptime.as_ns().into()),
        ("own-bandwidth", figures.charged.0.as_cpus().into()),
        ("own-tasks", figures.charged.1.into()),
    ]);
    if let Some(quota) = figures.quota {
        all.extend([
            ("quota-bandwidth", quota.bandwidth.as_cpus().into()),
            ("quota-tasks", quota.tasks.into()),
            (
                "quota-shortest-period-ns",
                quota.shortest_period.as_ns().into(),
            ),
            (
                "quota-shortest-deadline-ns",
                quota.shortest_deadline.as_ns().into(),
            ),
            (
                "quota-shortest-runtime-ns",
                quota.shortest_runtime.as_ns().into(),
            ),
            (
                "quota-longest-runtime-ns",
                quota.longest_runtime.as_ns().into(),
            ),
        ]);
    }
    all
}

fn times(reservation: Option<Reservation>) -> Times {
    reservation.map_or((0, 0, 0), |it| {
        let [runtime, deadline, period] = [it.runtime(), it.deadline(), it.period()];
        (runtime.as_ns(), deadline.as_ns(), period.as_ns())
    })
}

fn text(text: &str) -> OwnedValue {
    zbus::zvariant::Str::from(text.to_owned()).into()
}

pub(super) type Body = (u32, u32, String, &'static str, String, (Times, Times));

pub(super) fn body(change: &Change) -> Body {
    let entry = &change.entry;
    (
        entry.task.id.tid,
        entry.task.pid,
        entry.task.comm.to_text(),
        entry.what.name(),
        entry.why.to_string(),
        (times(entry.old), times(entry.new)),
    )
}
