//! Programs come and go: nothing of them stays, in the service or in the kernel.
//! ONBEAT_SOAK_MINUTES makes it as long.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::{eventually, needs_root};
use crate::machine::{ALICE, Machine, is_reserved, tids};

/// Rounds of programs at least, and how many run side by side.
const ROUNDS: usize = 8;
const PROGRAMS: usize = 3;
/// More than what a buffer more or less takes, and less than what a thread of each program would.
const GROWTH_KB: u64 = 4096;

/// The service's answer to Prometheus: values by name, of series without labels.
fn metric(port: u16, name: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line?.parse().ok()
}

fn memory_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.unwrap().trim().trim_end_matches(" kB");
    kilobytes.trim().parse().unwrap()
}

fn files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[test]
fn of_programs_that_came_and_went_nothing_stays() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure(&format!(
        "scan = \"50ms\"\n[[rule]]\nname = \"soak\"\nprogram = \"{}\"\n",
        machine.path("workload").display()
    ));
    machine.flags = vec!["--metrics", "127.0.0.1:0"];
    machine.start();
    let log = machine.log();
    let (_, place) = log.split_once("http://127.0.0.1:").unwrap();
    let port = place.split('/').next().unwrap().parse().unwrap();
    let service = machine.service_pid();
    let is = |name: &str, value: f64| (metric(port, name)? == value).then_some(());
    let minutes = std::env::var("ONBEAT_SOAK_MINUTES").map_or(0, |text| text.parse().unwrap());
    let (began, time) = (Instant::now(), Duration::from_secs(60 * minutes));
    let mut before = None;
    for round in 0.. {
        if round >= ROUNDS && began.elapsed() >= time {
            break;
        }
        let programs: Vec<_> = (0..PROGRAMS)
            .map(|_| machine.workload(ALICE, &["beat:20000/500", "beat:40000/1000"]))
            .collect();
        let threads = || programs.iter().flat_map(|program| tids(program.id()));
        eventually("a reservation for each thread that has a rhythm", || {
            (threads().filter(|&tid| is_reserved(tid)).count() == 2 * PROGRAMS).then_some(())
        });
        eventually("the same in the metrics", || {
            is("onbeat_threads_reserved", 2.0 * PROGRAMS as f64)
        });
        drop(programs);
        for name in [
            "onbeat_threads_tracked",
            "onbeat_threads_reserved",
            "onbeat_reserved_cpus",
        ] {
            eventually(name, || is(name, 0.0));
        }
        // The first ones fill what is kept from then on.
        if round == 1 {
            before = Some((memory_kb(service), files(service)));
        }
    }
    let (memory_before, files_before) = before.unwrap();
    eventually("the files of before", || {
        (files(service) <= files_before).then_some(())
    });
    let grown = memory_kb(service).saturating_sub(memory_before);
    assert!(grown < GROWTH_KB, "{grown} kB more than after two rounds");
    eventually("jobs in the metrics", || {
        (metric(port, "onbeat_jobs_total")? > 0.0).then_some(())
    });
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
}
