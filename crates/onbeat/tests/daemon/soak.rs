//! Programs come and go: nothing of them stays, in the service or in the kernel.
//! ONBEAT_SOAK_MINUTES makes it as long.

use crate::prelude::*;

/// Rounds of programs at least, and how many run side by side.
const ROUNDS: usize = 8;
const PROGRAMS: usize = 3;
/// More than what a buffer more or less takes, and less than what a thread of each program would.
const GROWTH_KB: u64 = 4096;

fn files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[test]
fn of_programs_that_came_and_went_nothing_stays() {
    let metrics = ["--metrics", "127.0.0.1:0"];
    let mut machine = Machine::with_flags(&metrics, |machine| machine.rule(""));
    let service = machine.service_pid();
    let is = |name: &str, value: f64| machine.metric(name) == Some(value);
    let minutes = std::env::var("ONBEAT_SOAK_MINUTES").map_or(0, |text| text.parse().unwrap());
    let (began, time) = (Instant::now(), Duration::from_secs(60 * minutes));
    let mut before = None;
    for round in 0.. {
        if round >= ROUNDS && began.elapsed() >= time {
            break;
        }
        let beats = ["beat:20000/500", "beat:40000/1000"];
        let programs = [(); PROGRAMS].map(|()| machine.workload(ALICE, &beats));
        let threads = || programs.iter().flat_map(|program| tids(program.id()));
        until("a reservation for each thread that has a rhythm", || {
            threads().filter(|&tid| is_reserved(tid)).count() == 2 * PROGRAMS
        });
        let all = 2.0 * PROGRAMS as f64;
        until("the same in the metrics", || {
            is("onbeat_threads_reserved", all)
        });
        drop(programs);
        for name in ["threads_tracked", "threads_reserved", "reserved_cpus"] {
            until(name, || is(&format!("onbeat_{name}"), 0.0));
        }
        // The first ones fill what is kept from then on.
        if round == 1 {
            before = Some((in_kib(service, "VmRSS"), files(service)));
        }
    }
    let (memory_before, files_before) = before.unwrap();
    until("the files of before", || files(service) <= files_before);
    let grown = in_kib(service, "VmRSS").saturating_sub(memory_before);
    assert!(grown < GROWTH_KB, "{grown} kB more than after two rounds");
    until("jobs in the metrics", || {
        machine.metric("onbeat_jobs_total") > Some(0.0)
    });
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
}
