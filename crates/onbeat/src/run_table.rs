//! The table that `run` and `attach` end with.

use std::fmt::Write;

use onbeat_control::{Application, AtSpeed, Means, Report, State, ThreadReport};
use onbeat_model::{Bandwidth, Instant, Quantiles, Span};

use onbeat_command::table::TextTable;
use onbeat_top::Align;

/// The most threads that are listed; the rest is in the report.
const MOST_ROWS: usize = 40;

/// The figures of each application, below it those of its threads that had a rhythm, and a line on
/// what onbeat itself used.
pub(crate) fn of(report: &Report, own: Option<Bandwidth>, energy_uj: Option<u64>) -> String {
    let mut text = String::new();
    let (table, listed) = table(report);
    if listed > 0 {
        text.push_str(&table.to_string());
    }
    let mut closing = Vec::new();
    let unlisted = report.threads.len() - listed;
    if unlisted > 0 {
        closing.push(format!("{unlisted} more periodic threads, see --report"));
    }
    if report.earlier.threads > 0 {
        let earlier = &report.earlier;
        closing.push(format!(
            "{} more that ended earlier, with {} jobs, {} missed",
            earlier.threads, earlier.jobs, earlier.missed
        ));
    }
    closing.push(match report.left_alone {
        0 if report.applications.is_empty() => {
            "no thread was seen: the program ended before the tracer was loaded".to_owned()
        }
        0 => "every thread has a period".to_owned(),
        1 => "1 thread has no period".to_owned(),
        n => format!("{n} threads have no period"),
    });
    match report.protected {
        0 => {}
        1 => closing.push("1 thread was raised above ordinary ones".to_owned()),
        n => closing.push(format!("{n} threads were raised above ordinary ones")),
    }
    if report.lost_events > 0 {
        closing.push(format!("{} events were lost", report.lost_events));
    }
    if let Some(speeds) = speeds(&report.speeds) {
        closing.push(speeds);
    }
    if let Some(energy_uj) = energy_uj {
        closing.push(energy(energy_uj, report.elapsed));
    }
    if let Some(own) = own {
        closing.push(format!("onbeat itself used {own} of a CPU"));
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}.", closing.join("; "));
    text
}

/// `the CPUs ran at 1500 MHz for 12 s and at 2400 MHz for 3 s`.
fn speeds(speeds: &[AtSpeed]) -> Option<String> {
    let times = speeds
        .iter()
        .map(|AtSpeed { speed, time }| format!("at {speed} for {:.1} s", time.as_secs_f64()));
    let times: Vec<String> = times.collect();
    (!times.is_empty()).then(|| format!("the CPUs ran {}", times.join(", ")))
}

/// `the processors took 120.5 J (4.1 W)`.
fn energy(energy_uj: u64, elapsed: Span) -> String {
    let joules = energy_uj as f64 / 1e6;
    let watts = joules / elapsed.as_secs_f64().max(1e-3);
    format!("the processors took {joules:.1} J ({watts:.1} W)")
}

fn table(report: &Report) -> (TextTable, usize) {
    let numbers = [
        "id", "period", "jobs", "from", "p50", "p95", "p99", "max", "missed", "used", "reserved",
        "changes",
    ];
    let mut columns = vec![("application, thread", Align::Left)];
    columns.extend(numbers.map(|heading| (heading, Align::Right)));
    columns.push(("", Align::Left));
    let mut table = TextTable::new(&columns);
    let mut listed = 0;
    for application in &report.applications {
        let threads = report.threads.iter();
        let threads = threads.filter(|thread| thread.served.application == application.pid);
        let mut threads = threads.take(MOST_ROWS - listed).peekable();
        if threads.peek().is_none() {
            continue;
        }
        table.row(application_row(application));
        for thread in threads {
            listed += 1;
            table.row(thread_row(thread, report.began));
        }
    }
    (table, listed)
}

fn application_row(application: &Application) -> [String; 14] {
    let none = String::new;
    [
        application.comm.to_text(),
        application.pid.to_string(),
        none(),
        application.jobs.to_string(),
        none(),
        none(),
        none(),
        none(),
        none(),
        application.missed.to_string(),
        application.bandwidth_used.to_string(),
        application.bandwidth_reserved.to_string(),
        none(),
        application.served(),
    ]
}

fn thread_row(thread: &ThreadReport, began: Instant) -> [String; 14] {
    let time = |of: fn(&Quantiles) -> Span| {
        thread
            .response_time
            .as_ref()
            .map_or("-".to_owned(), |times| of(times).to_string())
    };
    [
        format!("  {}", thread.task.comm.to_text()),
        thread.task.id.to_string(),
        thread.period.unwrap_or_default().to_string(),
        thread.counted.jobs.to_string(),
        from(thread.counted.counted_from, began),
        time(|t| t.p50_ns),
        time(|t| t.p95_ns),
        time(|t| t.p99_ns),
        time(|t| t.max_ns),
        thread.counted.missed.to_string(),
        share(thread, thread.reservations.bandwidth_used),
        share(thread, thread.reservations.bandwidth_reserved),
        thread.reservations.changes.to_string(),
        remark(thread),
    ]
}

/// `2.1 s`: when after the beginning the first job was counted.
fn from(counted: Option<Instant>, began: Instant) -> String {
    counted.map_or("-".to_owned(), |from| {
        format!("{:.1} s", from.since(began).as_secs_f64())
    })
}

/// A thread that never held a reservation has nothing to compare.
fn share(thread: &ThreadReport, share: Bandwidth) -> String {
    if thread.reservations.held.is_zero() {
        "-".to_owned()
    } else {
        share.to_string()
    }
}

fn remark(thread: &ThreadReport) -> String {
    if let Some(refusal) = &thread.served.refusal {
        let instead = match thread.served.means {
            Means::Reservation | Means::Nothing => "no reservation",
            Means::Nice => "raised instead of a reservation",
        };
        // The rest is advice, which was given when it was refused.
        let why = refusal.split(": ").next().unwrap_or_default();
        return format!("{instead}: {why}");
    }
    if let Some(stage) = thread.stage.filter(|_| thread.state != State::TakenOver) {
        return stage.to_string();
    }
    let remark = match thread.state {
        State::Kept | State::Watched | State::Ended | State::Recorded => "",
        State::AskedFor => "asked for",
        State::Refused => "no reservation",
        State::NoNeed => "no other program wants its CPUs",
        State::NoBetter => "onbeat did not help it",
        State::Raised => "raised",
        State::Released => "no longer periodic",
        State::TakenOver => "changed by another program",
    };
    remark.to_owned()
}

#[cfg(test)]
mod tests {
    use onbeat_control::{ServedBy, Sums};
    use onbeat_model::{Name, Task, TaskId};

    use super::*;

    fn thread(tid: u32, comm: &str, means: Means, refusal: Option<&str>) -> ThreadReport {
        ThreadReport {
            task: Task {
                id: TaskId::recorded(tid),
                pid: 7,
                comm: Name::new(comm.as_bytes()),
            },
            served: ServedBy {
                application: 7,
                means,
                refusal: refusal.map(str::to_owned),
            },
            ..ThreadReport::default()
        }
    }

    #[test]
    fn an_application_stands_above_its_threads_and_each_says_how_it_was_served() {
        let application = Application {
            pid: 7,
            comm: Name::new(b"player"),
            members: 4,
            living: 4,
            by_reservation: 1,
            by_nice: 2,
            refused: 1,
            ..Application::default()
        };
        let narrow = "its CPU affinity is narrower than its root domain: widen it";
        let report = Report {
            applications: vec![application],
            threads: vec![
                thread(8, "decoder", Means::Reservation, None),
                thread(9, "pinned", Means::Nice, Some(narrow)),
            ],
            earlier: Sums::default(),
            left_alone: 2,
            protected: 2,
            lost_events: 0,
            speeds: Vec::new(),
            began: Instant::ZERO,
            elapsed: Span::from_secs(4),
        };
        let text = of(&report, None, None);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("player"), "{text}");
        assert!(
            lines[1].ends_with("4 threads: 1 by reservation, 2 raised, 1 refused"),
            "{text}"
        );
        assert!(lines[2].starts_with("  decoder"), "{text}");
        assert!(
            lines[3].ends_with(
                "raised instead of a reservation: its CPU affinity is narrower than its root domain"
            ),
            "{text}"
        );
    }
}
