//! All metrics at a moment.

use std::collections::HashMap;

use onbeat_control::{Application, Controller, State, ThreadReport, View};
use onbeat_model::{Actuator, Bandwidth, Cgroup, Instant, Reservation, Span, TaskId};

use crate::place::cgroup_of;
use crate::text::MetricsText;
use crate::{Decisions, own, table};

pub(crate) fn of<A: Actuator>(
    controller: &Controller<A>,
    decisions: &Decisions,
    leaked: Bandwidth,
    now: Instant,
) -> String {
    let mut text = MetricsText::default();
    text.metric(&table::BUILD, [([env!("CARGO_PKG_VERSION")], 1.0)]);
    let views: Vec<View> = controller.view().collect();
    let count = |of: fn(&&View) -> bool| views.iter().filter(of).count() as f64;
    text.single(&table::TRACKED, views.len() as f64);
    text.single(&table::WITH_RHYTHM, count(|view| view.kept));
    text.single(&table::RESERVED, count(|view| view.held.is_some()));
    text.single(
        &table::TAKEN_OVER,
        count(|view| view.state == State::TakenOver),
    );
    let held: HashMap<TaskId, Reservation> = controller
        .held()
        .map(|(task, reservation)| (task.id, reservation))
        .collect();
    let reserved: Bandwidth = held.values().map(Reservation::bandwidth).sum();
    text.single(&table::RESERVED_CPUS, reserved.as_cpus());
    text.single(&table::LIMIT_CPUS, controller.total().as_cpus());
    text.single(&table::LEAKED_CPUS, leaked.as_cpus());
    let decided = [
        (["reserved"], decisions.reserved as f64),
        (["changed"], decisions.changed as f64),
        (["released"], decisions.released as f64),
        (["refused"], decisions.refused as f64),
        (["taken-over"], decisions.taken_over as f64),
    ];
    text.metric(&table::DECISIONS, decided);
    text.single(&table::LOST, controller.lost_events() as f64);
    let sums = controller.sums(now);
    text.single(&table::JOBS, sums.jobs as f64);
    text.single(&table::MISSED, sums.missed as f64);
    text.single(&table::EXHAUSTIONS, sums.exhaustions as f64);
    let mut applications = controller.applications(now);
    applications.retain(|application| application.living > 0);
    each_application(&mut text, &applications);
    let threads: Vec<MetricsThread> = controller
        .reports(now)
        .map(|report| MetricsThread {
            tid: report.task.id.tid.to_string(),
            comm: report.task.comm.to_text(),
            held: held.get(&report.task.id).copied(),
            report,
        })
        .collect();
    each_thread(&mut text, &threads);
    for (metric, value) in [
        (&table::OWN_CPU, Some(own::cpu_time())),
        (&table::OWN_MEMORY, own::memory()),
        (&table::OWN_FILES, own::files()),
    ] {
        text.metric(metric, value.map(|value| ([], value)));
    }
    text.finish()
}

fn each_application(text: &mut MetricsText, applications: &[Application]) {
    type ApplicationValue = fn(&Application) -> f64;
    let metrics: [(&table::Metric, ApplicationValue); 4] = [
        (&table::APPLICATION_RESERVED, |a| {
            a.bandwidth_reserved.as_cpus()
        }),
        (&table::APPLICATION_CPU, |a| a.executed.as_secs_f64()),
        (&table::APPLICATION_JOBS, |a| a.jobs as f64),
        (&table::APPLICATION_MISSED, |a| a.missed as f64),
    ];
    let who: Vec<[String; 2]> = applications
        .iter()
        .map(|application| [application.pid.to_string(), application.comm.to_text()])
        .collect();
    let served = applications
        .iter()
        .zip(&who)
        .flat_map(|(application, [pid, comm])| {
            let Application {
                members,
                by_reservation,
                by_nice,
                ..
            } = *application;
            [
                ("reservation", by_reservation),
                ("nice", by_nice),
                ("nothing", members - by_reservation - by_nice),
            ]
            .map(|(means, threads)| ([pid.as_str(), comm, means], threads as f64))
        });
    text.metric(&table::APPLICATION_THREADS, served);
    for (metric, of) in metrics {
        let series = applications
            .iter()
            .zip(&who)
            .map(|(application, [pid, comm])| ([pid.as_str(), comm], of(application)));
        text.metric(metric, series);
    }
}

struct MetricsThread {
    tid: String,
    comm: String,
    held: Option<Reservation>,
    report: ThreadReport,
}

fn each_thread(text: &mut MetricsText, threads: &[MetricsThread]) {
    type ThreadValue = fn(&MetricsThread) -> f64;
    let metrics: [(&table::Metric, ThreadValue); 8] = [
        (&table::THREAD_PERIOD, |t| t.report.period.as_secs_f64()),
        (&table::THREAD_CONFIDENCE, |t| t.report.confidence),
        (&table::THREAD_RESERVED, |t| {
            t.held.map_or(0.0, |held| held.bandwidth().as_cpus())
        }),
        (&table::THREAD_BUDGET, |t| {
            t.held.map_or(0.0, |held| held.runtime().as_secs_f64())
        }),
        (&table::THREAD_CPU, |t| t.report.executed.as_secs_f64()),
        (&table::THREAD_JOBS, |t| t.report.counted.jobs as f64),
        (&table::THREAD_MISSED, |t| t.report.counted.missed as f64),
        (&table::THREAD_EXHAUSTIONS, |t| {
            t.report.reservations.exhaustions as f64
        }),
    ];
    let places: Vec<Cgroup> = threads
        .iter()
        .map(|told| cgroup_of(told.report.task.id))
        .collect();
    let infos = threads.iter().zip(&places).map(|(told, place)| {
        let [unit, container, pod, namespace] =
            [&place.unit, &place.container, &place.pod, &place.namespace]
                .map(|name| name.as_deref().unwrap_or_default());
        let labels = [&told.tid, &told.comm, unit, container, pod, namespace];
        (labels, 1.0)
    });
    text.metric(&table::THREAD_INFO, infos);
    for (metric, of) in metrics {
        let series = threads
            .iter()
            .map(|told| ([told.tid.as_str(), told.comm.as_str()], of(told)));
        text.metric(metric, series);
    }
    let responses = threads.iter().filter_map(|told| {
        let times = told.report.response_time?;
        let quantiles = [
            ("0.5", times.p50),
            ("0.95", times.p95),
            ("0.99", times.p99),
            ("1", times.max),
        ];
        Some(quantiles.map(|(q, time): (&str, Span)| {
            (
                [told.tid.as_str(), told.comm.as_str(), q],
                time.as_secs_f64(),
            )
        }))
    });
    text.metric(&table::THREAD_RESPONSE, responses.flatten());
}

#[cfg(test)]
mod tests;
