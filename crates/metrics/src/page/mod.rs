//! All metrics at a moment. A value that cannot be read is left out.

use std::fs;

use onbeat_control::{Application, Controller, State, ThreadReport};
use onbeat_kernel::clock::process_cpu_time;
use onbeat_kernel::proc::status_number;
use onbeat_model::{Actuator, Bandwidth, Cgroup, Instant, Span};

use crate::place::cgroup_of;
use crate::text::MetricsText;
use crate::{COUNTED, table};

pub(crate) fn of<A: Actuator>(
    controller: &Controller<A>,
    decisions: &[u64; COUNTED.len()],
    leaked: Bandwidth,
    now: Instant,
) -> String {
    let mut text = MetricsText::default();
    text.metric(&table::BUILD, [([env!("CARGO_PKG_VERSION")], 1.0)]);
    let mut threads: Vec<ThreadReport> = controller.threads(now).collect();
    let count = |of: fn(&&ThreadReport) -> bool| threads.iter().filter(of).count() as f64;
    text.single(&table::TRACKED, threads.len() as f64);
    text.single(&table::WITH_RHYTHM, count(|of| of.present.is_locked));
    text.single(
        &table::RESERVED,
        count(|of| of.present.reservation.is_some()),
    );
    text.single(&table::TAKEN_OVER, count(|of| of.state == State::TakenOver));
    let reserved = threads.iter().map(reserved_for);
    text.single(&table::RESERVED_CPUS, reserved.sum::<Bandwidth>().as_cpus());
    text.single(&table::LIMIT_CPUS, controller.total().as_cpus());
    text.single(&table::LEAKED_CPUS, leaked.as_cpus());
    let decided = COUNTED.iter().zip(decisions);
    let decided = decided.map(|(what, &count)| ([what.name()], count as f64));
    text.metric(&table::DECISIONS, decided);
    text.single(&table::LOST, controller.lost_events() as f64);
    let sums = controller.sums(now);
    text.single(&table::JOBS, sums.jobs as f64);
    text.single(&table::MISSED, sums.missed as f64);
    text.single(&table::EXHAUSTIONS, sums.exhaustions as f64);
    let mut applications = controller.applications(now);
    applications.retain(|application| application.living > 0);
    each_application(&mut text, &applications);
    threads.retain(|thread| thread.period.is_some());
    each_thread(&mut text, &threads);
    for (metric, value) in [
        (&table::OWN_CPU, Some(process_cpu_time().as_secs_f64())),
        (&table::OWN_MEMORY, own_memory()),
        (&table::OWN_FILES, own_files()),
    ] {
        text.metric(metric, value.map(|value| ([], value)));
    }
    text.finish()
}

fn own_memory() -> Option<f64> {
    let kilobytes = status_number(std::process::id(), "VmRSS:")?;
    Some(f64::from(kilobytes) * 1024.0)
}

fn own_files() -> Option<f64> {
    // The folder is open while it is read.
    let files = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(files.saturating_sub(1) as f64)
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

fn reserved_for(thread: &ThreadReport) -> Bandwidth {
    let held = thread.present.reservation;
    held.map_or(Bandwidth::ZERO, |held| held.bandwidth())
}

fn each_thread(text: &mut MetricsText, threads: &[ThreadReport]) {
    type ThreadValue = fn(&ThreadReport) -> f64;
    let metrics: [(&table::Metric, ThreadValue); 8] = [
        (&table::THREAD_PERIOD, |t| {
            t.period.map_or(0.0, Span::as_secs_f64)
        }),
        (&table::THREAD_CONFIDENCE, |t| t.confidence),
        (&table::THREAD_RESERVED, |t| reserved_for(t).as_cpus()),
        (&table::THREAD_BUDGET, |t| {
            let held = t.present.reservation;
            held.map_or(0.0, |held| held.runtime().as_secs_f64())
        }),
        (&table::THREAD_CPU, |t| t.executed.as_secs_f64()),
        (&table::THREAD_JOBS, |t| t.counted.jobs as f64),
        (&table::THREAD_MISSED, |t| t.counted.missed as f64),
        (&table::THREAD_EXHAUSTIONS, |t| {
            t.reservations.exhaustions as f64
        }),
    ];
    let names = threads.iter().map(|thread| &thread.task);
    let names: Vec<[String; 2]> = names
        .map(|task| [task.id.tid.to_string(), task.comm.to_text()])
        .collect();
    let named = || threads.iter().zip(&names);
    let places: Vec<Cgroup> = threads
        .iter()
        .map(|thread| cgroup_of(thread.task.id))
        .collect();
    let infos = names.iter().zip(&places).map(|([tid, comm], place)| {
        let [unit, container, pod, namespace] =
            [&place.unit, &place.container, &place.pod, &place.namespace]
                .map(|name| name.as_deref().unwrap_or_default());
        ([tid, comm, unit, container, pod, namespace], 1.0)
    });
    text.metric(&table::THREAD_INFO, infos);
    for (metric, of) in metrics {
        let series =
            named().map(|(thread, name)| (name.each_ref().map(String::as_str), of(thread)));
        text.metric(metric, series);
    }
    let responses = named().filter_map(|(thread, [tid, comm])| {
        let times = thread.response_time?;
        let quantiles = [
            ("0.5", times.p50_ns),
            ("0.95", times.p95_ns),
            ("0.99", times.p99_ns),
            ("1", times.max_ns),
        ];
        Some(quantiles.map(|(q, time)| ([tid.as_str(), comm, q], time.as_secs_f64())))
    });
    text.metric(&table::THREAD_RESPONSE, responses.flatten());
}

#[cfg(test)]
mod tests;
