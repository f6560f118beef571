//! libonbeat's reservations in programs of ordinary users, which only the service can give.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use onbeat_act::attributes::Policy;

use crate::common::{Mortal, eventually, needs_root};
use crate::machine::{ALICE, BOB, Client, Machine, is_ordinary, is_reserved, policy};

/// The part of the library about reservations.
const SOURCES: [&str; 5] = ["reserve", "refusal", "service", "guard", "admission"];

/// Compiles reserving.c with the library's sources to where users may read it.
fn program(machine: &Machine) -> PathBuf {
    let program = machine.path("reserving");
    if !program.exists() {
        compile(&program, "clang", &[]);
    }
    program
}

fn compile(program: &Path, compiler: &str, flags: &[&str]) {
    let here = env!("CARGO_MANIFEST_DIR");
    let library = format!("{here}/../../libonbeat");
    let compiled = Command::new(compiler)
        .args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror"])
        .args(flags)
        .arg(format!("-I{library}/include"))
        .arg(format!("{here}/tests/daemon/reserving.c"))
        .args(SOURCES.map(|source| format!("{library}/src/{source}.c")))
        .args(["-pthread", "-ldl", "-o"])
        .arg(program)
        .status();
    assert!(
        compiled.is_ok_and(|status| status.success()),
        "reserving.c cannot be compiled"
    );
}

/// Alice's program, which reserves for the threads that it is given.
pub(crate) fn reserving(machine: &Machine) -> Client {
    machine.speaker(&mut machine.command(ALICE, &program(machine)))
}

/// Has the program do what must be done in the end: other programs of the machine may have
/// reservations for a while.
fn done(program: &mut Client, line: &str) {
    eventually(line, || {
        let answer = program.ask(line);
        assert!(
            answer == "done" || answer.starts_with("EBUSY"),
            "{line}: {answer}"
        );
        (answer == "done").then_some(())
    });
}

fn times(tid: u32) -> (u64, u64, u64) {
    match policy(tid) {
        Policy::Deadline(now) => (now.runtime_ns, now.deadline_ns, now.period_ns),
        other => panic!("no reservation: {other:?}"),
    }
}

#[test]
fn a_program_without_privilege_reserves_changes_and_gives_back_by_the_library() {
    needs_root!();
    let machine = Machine::new();
    let mut program = reserving(&machine);
    let mut alice = machine.client(ALICE);
    let tid = program.id();
    done(&mut program, "attach 0");
    assert_eq!(times(tid), (1_000_000, 10_000_000, 10_000_000));
    assert_eq!(alice.told("list")[0]["state"], "asked-for");
    done(&mut program, "change 500000 10000000 20000000");
    assert_eq!(times(tid), (500_000, 10_000_000, 20_000_000));
    done(&mut program, "detach 0");
    eventually("the way back", || is_ordinary(tid).then_some(()));
    assert_eq!(alice.told("statistics")["own-tasks"], 0);
    done(&mut program, "attach 0");
    assert!(is_reserved(tid));
    assert_eq!(program.ask("threads 8"), "done");
    assert_eq!(alice.told("statistics")["own-tasks"], 1);
    // The end of the program is the end of its connection.
    program.die();
    eventually("an empty book", || {
        (alice.told("statistics")["own-tasks"] == 0).then_some(())
    });
}

#[test]
fn three_threads_of_two_processes_share_a_budget_and_read_what_is_left() {
    needs_root!();
    let machine = Machine::new();
    let mut program = reserving(&machine);
    let mut hog = machine.command(ALICE, Path::new("sh"));
    let hog = Mortal::spawn(hog.args(["-c", "while :; do :; done"]));
    assert!(program.ask("balance").starts_with("EINVAL"));
    // More than half a CPU is not Alice's.
    done(&mut program, "change 60000000 100000000 100000000");
    let refused = program.ask("share");
    assert!(
        refused.starts_with("EDQUOT") && refused.contains("onbeat.toml"),
        "{refused}"
    );
    done(&mut program, "change 30000000 100000000 100000000");
    done(&mut program, "share");
    assert_eq!(balance(&mut program), (0, 0, 30_000_000));
    done(&mut program, "burn 1");
    done(&mut program, "process 0");
    done(&mut program, &format!("process {}", hog.id()));
    assert!(program.ask("attach 0").starts_with("EALREADY"));
    assert!(program.ask("share").starts_with("EBUSY"));
    assert_eq!(balance(&mut program).0, 2);
    // A thread that begins later is a member, too.
    done(&mut program, "burn 1");
    let mut alice = machine.client(ALICE);
    eventually("the members", || {
        std::thread::sleep(Duration::from_millis(100));
        let threads = alice.told("list");
        let threads = threads.as_array().expect("a list").iter();
        let shared = threads.filter(|thread| thread["application"].as_u64() >= Some(1 << 22));
        (shared.count() == 4).then_some(())
    });
    let (began, before) = (Instant::now(), balance(&mut program).1);
    eventually("no more than three tenths of a CPU", || {
        std::thread::sleep(Duration::from_secs(3));
        let (_, used, left) = balance(&mut program);
        assert!(left <= 30_000_000, "{left}");
        let used = (used - before) as f64 / began.elapsed().as_nanos() as f64;
        // How soon depends on what else runs; three threads could have each a CPU.
        (0.01..0.32).contains(&used).then_some(())
    });
    done(&mut program, &format!("leave {}", hog.id()));
    assert_eq!(balance(&mut program).0, 1);
    eventually("the way back", || is_ordinary(hog.id()).then_some(()));
    done(&mut program, "rest");
    eventually("a full account", || {
        std::thread::sleep(Duration::from_millis(100));
        (balance(&mut program).2 == 30_000_000).then_some(())
    });
    let own = alice.told("statistics");
    assert_eq!(own["own-bandwidth"], 0.3);
    program.die();
    eventually("an empty book", || {
        std::thread::sleep(Duration::from_millis(100));
        let own = alice.told("statistics");
        (own["own-tasks"] == 0 && own["own-bandwidth"] == 0.0).then_some(())
    });
}

#[test]
fn roots_threads_go_first_by_real_time_priority_while_their_budget_lasts() {
    needs_root!();
    let machine = Machine::new();
    let mut program = machine.speaker(&mut machine.command(0, &program(&machine)));
    done(&mut program, "change 30000000 100000000 100000000");
    done(&mut program, "share");
    done(&mut program, "process 0");
    let tid = program.id();
    let goes_first = || matches!(policy(tid), Policy::RoundRobin(_));
    eventually("a real-time priority", || goes_first().then_some(()));
    done(&mut program, "burn 2");
    eventually("an account that is used up", || {
        (!goes_first()).then_some(())
    });
    done(&mut program, "rest");
    eventually("the next budget", || goes_first().then_some(()));
    done(&mut program, "leave 0");
    eventually("the way back", || is_ordinary(tid).then_some(()));
}

/// How many share the program's budget by their own call, what they used of it, and what is left.
fn balance(program: &mut Client) -> (u64, u64, u64) {
    let answer = program.ask("balance");
    let numbers: Vec<u64> = answer
        .split_whitespace()
        .map_while(|number| number.parse().ok())
        .collect();
    match numbers[..] {
        [threads, used, left] => (threads, used, left),
        _ => panic!("{answer}"),
    }
}

#[test]
fn the_library_tells_the_services_refusals_with_their_reasons() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("[quota]\nbandwidth = \"30%\"\n");
    machine.start();
    let others = machine.sleeper(BOB);
    let mut program = reserving(&machine);
    let tid = program.id();
    done(&mut program, "attach 0");
    let refused = program.ask("change 4000000 10000000 10000000");
    assert!(
        refused.starts_with("EDQUOT") && refused.contains("onbeat.toml"),
        "{refused}"
    );
    assert_eq!(times(tid), (1_000_000, 10_000_000, 10_000_000));
    let refused = program.ask("change 100000 900000 900000");
    assert!(
        refused.starts_with("EDQUOT") && refused.contains("shorter than"),
        "{refused}"
    );
    let refused = program.ask(&format!("process {}", others.id()));
    assert!(
        refused.starts_with("EPERM") && refused.contains("belongs to"),
        "{refused}"
    );
    assert!(is_ordinary(others.id()));
    assert!(program.ask("attach 0").starts_with("EALREADY"));
}

#[test]
fn what_the_library_reserved_is_given_back_when_its_program_ends_or_is_killed() {
    needs_root!();
    let machine = Machine::new();
    let sleepers: Vec<_> = (0..3).map(|_| machine.sleeper(ALICE)).collect();
    let [mut ends, mut dies, mut forks] = [0; 3].map(|_| reserving(&machine));
    for (program, sleeper) in [&mut ends, &mut dies, &mut forks]
        .into_iter()
        .zip(&sleepers)
    {
        done(program, &format!("process {}", sleeper.id()));
        assert!(is_reserved(sleeper.id()));
    }
    // The child has a connection of its own, and does not keep its parent's.
    let answer = forks.ask("fork");
    let child: u32 = answer.parse().unwrap_or_else(|_| panic!("{answer}"));
    assert!(is_reserved(child) && is_reserved(sleepers[2].id()));
    ends.end();
    dies.die();
    forks.die();
    for sleeper in &sleepers {
        eventually("the way back", || is_ordinary(sleeper.id()).then_some(()));
    }
    assert!(is_reserved(child));
    // SAFETY: a plain system call; the child is stuck in pause() until then, or ended by its alarm.
    unsafe { libc::kill(child.cast_signed(), libc::SIGKILL) };
}

#[test]
fn the_library_finds_a_service_that_was_started_anew_and_says_when_there_is_none() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("");
    let mut program = reserving(&machine);
    let tid = program.id();
    let refused = program.ask("attach 0");
    assert!(
        refused.starts_with("EPERM") && refused.contains("systemctl start onbeat"),
        "{refused}"
    );
    machine.start();
    done(&mut program, "attach 0");
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    assert!(is_ordinary(tid));
    machine.start();
    done(&mut program, "change 500000 10000000 20000000");
    assert_eq!(times(tid), (500_000, 10_000_000, 20_000_000));
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    // It has back already what it had.
    done(&mut program, "detach 0");
    assert!(is_ordinary(tid));

    let mut command = machine.command(ALICE, &self::program(&machine));
    command.env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent");
    let refused = machine.speaker(&mut command).ask("attach 0");
    assert!(
        refused.starts_with("EPERM") && refused.contains("No such file"),
        "{refused}"
    );
}

#[test]
fn a_program_can_fork_while_one_of_its_threads_waits_for_the_service() {
    needs_root!();
    let machine = Machine::new();
    let mut program = reserving(&machine);
    done(&mut program, "attach 0");
    machine.signal(libc::SIGSTOP);
    // The service cannot have answered before it goes on.
    assert_eq!(program.ask("ask"), "forked");
    machine.signal(libc::SIGCONT);
    let answer = program.ask("answered");
    assert!(
        answer == "done" || answer.starts_with("ETIMEDOUT") || answer.starts_with("EBUSY"),
        "{answer}"
    );
    done(&mut program, "detach 0");
}

#[test]
fn what_the_library_no_longer_waited_for_is_not_kept() {
    needs_root!();
    let machine = Machine::new();
    let mut command = machine.command(ALICE, &self::program(&machine));
    let mut program = machine.speaker(command.env("SYSTEMD_BUS_TIMEOUT", "1s"));
    let mut alice = machine.client(ALICE);
    let tid = program.id();
    machine.signal(libc::SIGSTOP);
    let refused = program.ask("attach 0");
    assert!(
        refused.starts_with("ETIMEDOUT") && refused.contains("systemctl status onbeat"),
        "{refused}"
    );
    machine.signal(libc::SIGCONT);
    // A later call over the same connection is answered later.
    eventually("an answer", || {
        (program.ask("threads 1") == "done").then_some(())
    });
    eventually("the way back", || {
        let figures = alice.told("statistics");
        (figures["own-tasks"] == 0 && is_ordinary(tid)).then_some(())
    });
}

/// All that the library can ask of the service, by a program that runs as `command` says; it ends
/// well if what watches over it found nothing wrong.
fn is_found_without_fault(machine: &mut Machine, command: &mut Command) {
    let errors = machine.path("errors");
    let sleeper = machine.sleeper(ALICE);
    command.stderr(std::fs::File::create(&errors).expect("there is room for a file"));
    let mut program = machine.speaker(command);
    done(&mut program, "attach 0");
    done(&mut program, "change 500000 10000000 20000000");
    done(&mut program, &format!("process {}", sleeper.id()));
    assert_eq!(program.ask("threads 4"), "done");
    let refused = program.ask("change 6000000 10000000 10000000");
    assert!(refused.starts_with("EDQUOT"), "{refused}");
    machine.signal(libc::SIGSTOP);
    assert_eq!(program.ask("ask"), "forked");
    machine.signal(libc::SIGCONT);
    program.ask("answered");
    done(&mut program, &format!("leave {}", sleeper.id()));
    // A bus that is lost, and found again.
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    machine.start();
    done(&mut program, "change 1000000 10000000 20000000");
    done(&mut program, "detach 0");
    let status = program.end();
    let said = std::fs::read_to_string(&errors).unwrap_or_default();
    assert!(status.success() && said.is_empty(), "{status}: {said}");
}

#[test]
fn the_address_sanitizer_finds_no_fault_in_what_asks_the_service() {
    needs_root!();
    let mut machine = Machine::new();
    let program = machine.path("sanitized");
    let flags = [
        "-g",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ];
    compile(&program, "cc", &flags);
    let mut command = machine.command(ALICE, &program);
    is_found_without_fault(&mut machine, &mut command);
}

#[test]
fn an_audio_thread_has_a_reservation_of_its_frames_or_realtimekits_priority_until_its_end() {
    needs_root!();
    let machine = Machine::new();
    let mut program = reserving(&machine);
    let tid = program.id();
    assert!(program.ask("audio 0").starts_with("EINVAL"));
    eventually("a reservation", || {
        let answer = program.ask("audio 2500000");
        let has_room = answer == "done";
        // Other programs of the machine may have it for a while.
        assert!(has_room || answer == "priority", "{answer}");
        has_room.then_some(()).or_else(|| {
            program.ask("end");
            None
        })
    });
    assert_eq!(times(tid), (2_500_000, 10_000_000, 10_000_000));
    done(&mut program, "end");
    assert!(is_ordinary(tid));
    // More than half a CPU is not Alice's.
    assert_eq!(program.ask("audio 8000000"), "priority");
    let has = policy(tid);
    assert!(
        matches!(has, Policy::RoundRobin(rt) if rt.priority == 10),
        "{has:?}"
    );
    done(&mut program, "end");
    assert!(matches!(policy(tid), Policy::Other(_)), "{:?}", policy(tid));
}
