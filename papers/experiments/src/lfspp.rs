//! A program under LFS++ as written, on this kernel: the loop of `crates/lfspp` between the BPF
//! tracer and the kernel's reservations, with nothing of onbeat's loop. No supervisor's rule but
//! eq. 1, no raise, no hysteresis, no tracking, no pause without a reservation.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use onbeat_act::attributes::{Attributes, Policy};
use onbeat_act::restore::StateFile;
use onbeat_act::task::numbers;
use onbeat_act::{DeadlineActuator, DeadlineOptions, own};
use onbeat_lfspp::reference::{LfsPlusPlus, ReferenceController, drive};
use onbeat_model::{Bandwidth, Follow, Instant, Sensor, Span};
use onbeat_sense::bpf::{self, BpfSensor};
use serde_json::json;

use crate::machine::{ThreadFigures, cpu_ns};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File for what it reserved
    #[arg(long, value_name = "FILE")]
    report: PathBuf,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let method = ReferenceController::LfsPlusPlus(LfsPlusPlus::default());
    let directory = StateFile::default_directory().context("no folder for the state file")?;
    let state_file = StateFile::create(&directory).context("cannot write the state file")?;
    let mut actuator = DeadlineActuator::new(state_file, DeadlineOptions { hard: true });
    let mut sensor = BpfSensor::new(bpf::BpfOptions::default()).context("cannot trace")?;
    // The paper's controller has a real-time priority. Without the right it is an ordinary thread.
    let _ = own::go_first(own::LOWEST);
    let mut words = args.command.iter();
    let program = words.next().context("no program")?;
    let mut child = Command::new(program)
        .args(words)
        .spawn()
        .with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
    let mut reserved = ProcessReservations::of(child.id());
    let tracked = sensor.track(child.id(), Follow::Threads);
    let driven = tracked.and_then(|()| {
        drive(&method, &mut sensor, &mut actuator, |now| {
            reserved.look(now);
        })
    });
    if driven.is_err() {
        // It fails only if the program has ended.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let changes = driven?;
    let report = json!({ "changes": changes, "threads": reserved.figures() });
    fs::write(&args.report, serde_json::to_string_pretty(&report)?)
        .with_context(|| format!("cannot write {}", args.report.display()))?;
    if !status.success() {
        bail!("{}: {status}", program.to_string_lossy());
    }
    Ok(())
}

struct ProcessReservations {
    threads_of: PathBuf,
    threads: BTreeMap<u32, ReservedThread>,
}

#[derive(Default)]
struct ReservedThread {
    comm: String,
    period: Span,
    changes: u64,
    held: Span,
    used_ns: u64,
    reserved_ns: f64,
    /// The reservation since the last look, when that was, and the CPU time by then.
    present: Option<(Bandwidth, Instant, u64)>,
}

impl ProcessReservations {
    fn of(pid: u32) -> Self {
        Self {
            threads_of: format!("/proc/{pid}/task").into(),
            threads: BTreeMap::new(),
        }
    }

    /// The reservations of the last look were in force until `now`.
    fn look(&mut self, now: Instant) {
        for tid in numbers(&self.threads_of) {
            let folder = self.threads_of.join(tid.to_string());
            let (Some(cpu_ns), Ok(attributes)) = (cpu_ns(&folder), Attributes::get(tid)) else {
                continue;
            };
            let thread = self.threads.entry(tid).or_default();
            thread.comm = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            thread.look(now, cpu_ns, attributes.policy);
        }
    }

    fn figures(&self) -> Vec<ThreadFigures> {
        let figures = |(&tid, thread): (&u32, &ReservedThread)| ThreadFigures {
            tid,
            comm: thread.comm.trim().to_owned(),
            period_ns: thread.period.as_ns(),
            held_ns: thread.held.as_ns(),
            bandwidth_used: thread.of_held(thread.used_ns as f64),
            bandwidth_reserved: thread.of_held(thread.reserved_ns),
            changes: thread.changes,
            ..ThreadFigures::default()
        };
        self.threads.iter().map(figures).collect()
    }
}

impl ReservedThread {
    fn look(&mut self, now: Instant, cpu_ns: u64, policy: Policy) {
        let bandwidth = match policy {
            Policy::Deadline(deadline) => {
                self.period = Span::from_ns(deadline.period_ns);
                Some(Bandwidth::of(
                    Span::from_ns(deadline.runtime_ns),
                    self.period,
                ))
            }
            _ => None,
        };
        if let Some((held, since, before_ns)) = self.present {
            self.held += now.since(since);
            self.used_ns += cpu_ns.saturating_sub(before_ns);
            self.reserved_ns += held.as_cpus() * now.since(since).as_ns() as f64;
        }
        let before = self.present.map(|(bandwidth, ..)| bandwidth);
        self.changes += u64::from(bandwidth != before);
        self.present = bandwidth.map(|bandwidth| (bandwidth, now, cpu_ns));
    }

    fn of_held(&self, ns: f64) -> f64 {
        ns / (self.held.as_ns().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::Reservation;

    use super::*;

    #[test]
    fn a_reservation_counts_from_one_look_to_the_next() {
        let ms = |ms| Instant::ZERO + Span::from_ms(ms);
        let policy = |runtime_ms| {
            let reservation = Reservation::implicit(Span::from_ms(runtime_ms), Span::from_ms(10));
            Attributes::reserved(reservation.unwrap(), false).policy
        };
        let mut thread = ReservedThread::default();
        let ordinary = Attributes::get(0).unwrap().policy;
        thread.look(ms(0), 0, ordinary);
        thread.look(ms(100), 40_000_000, policy(2));
        thread.look(ms(200), 55_000_000, policy(4));
        thread.look(ms(300), 75_000_000, policy(4));
        assert_eq!((thread.changes, thread.held), (2, Span::from_ms(200)));
        assert!((thread.of_held(thread.reserved_ns) - 0.3).abs() < 1e-9);
        assert!((thread.of_held(thread.used_ns as f64) - 0.175).abs() < 1e-9);
        thread.look(ms(400), 95_000_000, ordinary);
        thread.look(ms(500), 99_000_000, ordinary);
        assert_eq!((thread.changes, thread.held), (3, Span::from_ms(300)));
    }
}
