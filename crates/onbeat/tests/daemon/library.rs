//! libonbeat's reservations in programs of ordinary users, which only the service can give.

use crate::prelude::*;

/// The part of the library about reservations.
const SOURCES: [&str; 5] = ["reserve", "refusal", "service", "guard", "admission"];

/// Compiles reserving.c with the library's sources to where users may read it.
fn program(machine: &Machine) -> PathBuf {
    let program = machine.path("reserving");
    if !program.exists() {
        with_library(&program, "clang", &[]);
    }
    program
}

fn with_library(program: &Path, compiler: &str, flags: &[&str]) {
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
    assert!(compiled.unwrap().success());
}

/// Alice's program, which reserves for the threads that it is given.
pub(crate) fn reserving(machine: &Machine) -> Client {
    machine.speaker(&mut machine.command(ALICE, &program(machine)))
}

/// Has the program do what must be done in the end: other programs of the machine may have
/// reservations for a while.
fn done(program: &mut Client, line: &str) {
    until(line, || {
        let answer = program.ask(line);
        let is_done = answer == "done";
        assert!(is_done || answer.starts_with("EBUSY"), "{line}: {answer}");
        is_done
    });
}

#[test]
fn a_program_without_privilege_reserves_changes_and_gives_back_by_the_library() {
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
    goes_back(tid);
    assert_eq!(alice.figure("own-tasks"), 0);
    done(&mut program, "attach 0");
    assert!(is_reserved(tid));
    assert_eq!(program.ask("threads 8"), "done");
    assert_eq!(alice.figure("own-tasks"), 1);
    // The end of the program is the end of its connection.
    program.die();
    until("an empty book", || alice.figure("own-tasks") == 0);
}

#[test]
fn three_threads_of_two_processes_share_a_budget_and_read_what_is_left() {
    let machine = Machine::new();
    let mut program = reserving(&machine);
    let mut hog = machine.command(ALICE, Path::new("sh"));
    let hog = Mortal::spawn(hog.args(["-c", "while :; do :; done"]));
    assert!(program.ask("balance").starts_with("EINVAL"));
    // More than half a CPU is not Alice's.
    done(&mut program, "change 60000000 100000000 100000000");
    has(program.ask("share"), &["EDQUOT", "onbeat.toml"]);
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
    until("the members", || {
        std::thread::sleep(Duration::from_millis(100));
        let list = alice.list();
        let shared = list
            .iter()
            .filter(|it| it["application"].as_u64() >= Some(1 << 22));
        shared.count() == 4
    });
    let (began, before) = (Instant::now(), balance(&mut program).1);
    until("no more than three tenths of a CPU", || {
        std::thread::sleep(Duration::from_secs(3));
        let (_, used, left) = balance(&mut program);
        assert!(left <= 30_000_000, "{left}");
        let used = (used - before) as f64 / began.elapsed().as_nanos() as f64;
        // How soon depends on what else runs; three threads could have each a CPU.
        (0.01..0.32).contains(&used)
    });
    done(&mut program, &format!("leave {}", hog.id()));
    assert_eq!(balance(&mut program).0, 1);
    goes_back(hog.id());
    done(&mut program, "rest");
    until("a full account", || {
        std::thread::sleep(Duration::from_millis(100));
        balance(&mut program).2 == 30_000_000
    });
    assert_eq!(alice.figure("own-bandwidth"), 0.3);
    program.die();
    until("an empty book", || {
        std::thread::sleep(Duration::from_millis(100));
        let own = alice.told("statistics");
        own["own-tasks"] == 0 && own["own-bandwidth"] == 0.0
    });
}

#[test]
fn roots_threads_go_first_by_real_time_priority_while_their_budget_lasts() {
    let machine = Machine::new();
    let mut program = machine.speaker(&mut machine.command(0, &program(&machine)));
    done(&mut program, "change 30000000 100000000 100000000");
    done(&mut program, "share");
    done(&mut program, "process 0");
    let tid = program.id();
    let goes_first = || matches!(policy(tid), Policy::RoundRobin(_));
    until("a real-time priority", goes_first);
    done(&mut program, "burn 2");
    until("an account that is used up", || !goes_first());
    done(&mut program, "rest");
    until("the next budget", goes_first);
    done(&mut program, "leave 0");
    goes_back(tid);
}

/// How many share the program's budget by their own call, what they used of it, and what is left.
fn balance(program: &mut Client) -> (u64, u64, u64) {
    let answer = program.ask("balance");
    let numbers = answer.split_whitespace().map_while(|it| it.parse().ok());
    match numbers.collect::<Vec<u64>>()[..] {
        [threads, used, left] => (threads, used, left),
        _ => panic!("{answer}"),
    }
}

#[test]
fn the_library_tells_the_services_refusals_with_their_reasons() {
    let machine = Machine::with("[quota]\nbandwidth = \"30%\"\n");
    let others = machine.sleeper(BOB);
    let mut program = reserving(&machine);
    let tid = program.id();
    done(&mut program, "attach 0");
    for (line, why) in [
        (
            "change 4000000 10000000 10000000",
            ["EDQUOT", "onbeat.toml"],
        ),
        ("change 100000 900000 900000", ["EDQUOT", "shorter than"]),
        (
            &*format!("process {}", others.id()),
            ["EPERM", "belongs to"],
        ),
        ("attach 0", ["EALREADY", ""]),
    ] {
        has(program.ask(line), &why);
    }
    assert_eq!(times(tid), (1_000_000, 10_000_000, 10_000_000));
    assert!(is_ordinary(others.id()));
}

#[test]
fn what_the_library_reserved_is_given_back_when_its_program_ends_or_is_killed() {
    let machine = Machine::new();
    let sleepers: Vec<_> = (0..3).map(|_| machine.sleeper(ALICE)).collect();
    let [mut ends, mut dies, mut forks] = [0; 3].map(|_| reserving(&machine));
    let programs = [&mut ends, &mut dies, &mut forks];
    for (program, sleeper) in programs.into_iter().zip(&sleepers) {
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
        goes_back(sleeper.id());
    }
    assert!(is_reserved(child));
    // SAFETY: a plain system call; the child is stuck in pause() until then, or ended by its alarm.
    unsafe { libc::kill(child.cast_signed(), libc::SIGKILL) };
}

#[test]
fn the_library_finds_a_service_that_was_started_anew_and_says_when_there_is_none() {
    let mut machine = Machine::bus();
    machine.configure("");
    let mut program = reserving(&machine);
    let tid = program.id();
    has(
        program.ask("attach 0"),
        &["EPERM", "systemctl start onbeat"],
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
    has(&refused, &["EPERM", "No such file"]);
}

#[test]
fn what_the_library_no_longer_waited_for_is_not_kept() {
    let machine = Machine::new();
    let mut command = machine.command(ALICE, &self::program(&machine));
    let mut program = machine.speaker(command.env("SYSTEMD_BUS_TIMEOUT", "1s"));
    let mut alice = machine.client(ALICE);
    let tid = program.id();
    machine.signal(libc::SIGSTOP);
    has(
        program.ask("attach 0"),
        &["ETIMEDOUT", "systemctl status onbeat"],
    );
    machine.signal(libc::SIGCONT);
    // A later call over the same connection is answered later.
    until("an answer", || program.ask("threads 1") == "done");
    until("the way back", || {
        let figures = alice.told("statistics");
        figures["own-tasks"] == 0 && is_ordinary(tid)
    });
}

/// All that the library can ask of the service, also while the program forks.
#[test]
fn the_address_sanitizer_finds_no_fault_in_what_asks_the_service() {
    let mut machine = Machine::new();
    let program = machine.path("sanitized");
    let sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    with_library(&program, "cc", &[&["-g"], &sanitizers[..]].concat());
    let mut command = machine.command(ALICE, &program);
    let mut program = machine.speaker(command.stderr(machine.file("errors")));
    let sleeper = machine.sleeper(ALICE);
    done(&mut program, "attach 0");
    done(&mut program, "change 500000 10000000 20000000");
    done(&mut program, &format!("process {}", sleeper.id()));
    assert_eq!(program.ask("threads 4"), "done");
    has(program.ask("change 6000000 10000000 10000000"), &["EDQUOT"]);
    machine.signal(libc::SIGSTOP);
    assert_eq!(program.ask("ask"), "forked");
    machine.signal(libc::SIGCONT);
    let answer = program.ask("answered");
    let known = ["done", "ETIMEDOUT", "EBUSY"];
    assert!(known.iter().any(|it| answer.starts_with(it)), "{answer}");
    done(&mut program, &format!("leave {}", sleeper.id()));
    // A bus that is lost, and found again.
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    machine.start();
    done(&mut program, "change 1000000 10000000 20000000");
    done(&mut program, "detach 0");
    let status = program.end();
    let said = fs::read_to_string(machine.path("errors")).unwrap();
    assert!(status.success() && said.is_empty(), "{status}: {said}");
}

#[test]
fn an_audio_thread_has_a_reservation_of_its_frames_or_realtimekits_priority_until_its_end() {
    let machine = Machine::new();
    let mut program = reserving(&machine);
    let tid = program.id();
    assert!(program.ask("audio 0").starts_with("EINVAL"));
    until("a reservation", || {
        let answer = program.ask("audio 2500000");
        // Other programs of the machine may have the room for a while.
        if answer == "priority" {
            program.ask("end");
        } else {
            assert_eq!(answer, "done");
        }
        answer == "done"
    });
    assert_eq!(times(tid), (2_500_000, 10_000_000, 10_000_000));
    done(&mut program, "end");
    assert!(is_ordinary(tid));
    // More than half a CPU is not Alice's.
    assert_eq!(program.ask("audio 8000000"), "priority");
    let now = policy(tid);
    assert!(
        matches!(now, Policy::RoundRobin(rt) if rt.priority == 10),
        "{now:?}"
    );
    done(&mut program, "end");
    assert!(matches!(policy(tid), Policy::Other(_)), "{:?}", policy(tid));
}
