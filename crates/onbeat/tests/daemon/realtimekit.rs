//! Clients of RealtimeKit, as they are: they get what it gives, and a reservation where they have a
//! rhythm.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onbeat_act::attributes::{Attributes, Policy, RealTime};
use serde_json::json;

use crate::common::{Mortal, eventually, needs_root, skip};
use crate::machine::{
    ALICE, BOB, Client, Machine, ROOT, WITHOUT_POLKIT, as_itself, is_ordinary, is_reserved, policy,
    tids,
};
use crate::own_state::{onbeat, state_files};

const DENIED: &str = "org.freedesktop.DBus.Error.AccessDenied";
const FAILED: &str = "org.freedesktop.DBus.Error.Failed";

/// Such a program, and the thread that it had made real-time.
pub(crate) fn audio(machine: &Machine, how: &str) -> (Mortal, u32) {
    let mut command = machine.command(ALICE, &machine.path("audio"));
    that_asks(machine, command.arg(how))
}

/// The same of any program that says the thread's number.
pub(crate) fn that_asks(machine: &Machine, command: &mut Command) -> (Mortal, u32) {
    let mut process = Mortal::spawn(command.stdout(Stdio::piped()));
    let mut line = String::new();
    let output = process.0.stdout.take().expect("it is piped");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("it is text");
    let tid = line
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{line}: {}", machine.log()));
    (process, tid)
}

/// The entry of the list for the thread.
pub(crate) fn listed(client: &mut Client, tid: u32) -> Option<serde_json::Value> {
    let threads = client.told("list");
    let threads = threads.as_array().expect("a list").clone();
    threads.into_iter().find(|one| one["thread"] == tid)
}

fn is_watched(client: &mut Client, tid: u32) {
    eventually("a thread without a reservation", || {
        let one = listed(client, tid)?;
        (one["state"] == "watched" && one["runtime-ns"] == 0).then_some(())
    });
}

/// Real-time priority of the one who asked, which children do not inherit.
fn has_priority(tid: u32, priority: u32) -> bool {
    Attributes::get(tid).is_ok_and(|now| {
        matches!(now.policy, Policy::RoundRobin(rt) if rt.priority == priority) && now.reset_on_fork
    })
}

#[test]
fn an_audio_thread_gets_a_reservation_that_follows_its_rhythm_and_in_the_end_what_it_had() {
    needs_root!();
    let machine = Machine::new();
    let (_process, tid) = audio(&machine, "beat");
    follows_its_rhythm_and_gets_back_what_it_had(machine, tid);
}

#[test]
fn a_thread_that_browsers_library_promotes_gets_a_reservation_that_follows_its_rhythm() {
    needs_root!();
    let machine = Machine::new();
    let mut command = machine.command(ALICE, &machine.path("audio_thread"));
    let (_process, tid) = that_asks(&machine, &mut command);
    follows_its_rhythm_and_gets_back_what_it_had(machine, tid);
}

/// Alice's thread that asks by onbeat-client for that budget in each 10 ms, until it has done so
/// many jobs, if these are told.
fn with_budget(machine: &Machine, us: &[&str]) -> (Mortal, u32) {
    let mut command = machine.command(ALICE, &machine.path("audio_thread"));
    command.args(us);
    that_asks(machine, &mut command)
}

#[test]
fn a_thread_that_says_its_period_and_budget_has_a_reservation_of_these_until_it_ends() {
    needs_root!();
    let machine = Machine::new();
    let (_process, tid) = with_budget(&machine, &["2500"]);
    let Policy::Deadline(reserved) = policy(tid) else {
        panic!("{:?}", policy(tid));
    };
    assert_eq!(
        (reserved.runtime_ns, reserved.period_ns),
        (2_500_000, 10_000_000)
    );
}

#[test]
fn a_thread_that_asks_for_more_than_its_quota_has_realtimekits_priority() {
    needs_root!();
    let machine = Machine::new();
    let (_process, tid) = with_budget(&machine, &["8000"]);
    assert!(has_priority(tid, 10), "{:?}", policy(tid));
    let (_process, tid) = with_budget(&machine, &["8000", "9"]);
    let is_ended = || matches!(policy(tid), Policy::Other(_));
    eventually("its end", || is_ended().then_some(()));
}

/// Alice's thread that works every 10 ms.
fn follows_its_rhythm_and_gets_back_what_it_had(mut machine: Machine, tid: u32) {
    let mut alice = machine.client(ALICE);
    eventually("the loop's reservation", || {
        let one = listed(&mut alice, tid)?;
        let period = one["period-ns"].as_f64()?;
        let follows = one["state"] == "kept" && (period / 10e6 - 1.0).abs() < 0.2;
        (follows && is_reserved(tid)).then_some(())
    });
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    assert!(is_ordinary(tid), "{:?}", policy(tid));
}

/// A control group whose tasks the kernel refuses SCHED_FIFO and SCHED_RR, also to root
/// (CONFIG_RT_GROUP_SCHED). Processes of the test are gone when it goes.
struct WithoutRealTime(PathBuf);

impl WithoutRealTime {
    fn make() -> Option<Self> {
        let group = Path::new("/sys/fs/cgroup/cpu").join(format!("onbeat-{}", std::process::id()));
        std::fs::create_dir(&group).ok()?;
        let group = Self(group);
        let runtime = std::fs::read_to_string(group.0.join("cpu.rt_runtime_us")).ok()?;
        (runtime.trim() == "0").then_some(group)
    }

    /// The program, started in the group.
    fn command(&self, program: &Command) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ >\"$0\" && exec \"$@\""])
            .arg(self.0.join("cgroup.procs"))
            .arg(program.get_program())
            .args(program.get_args());
        for (name, value) in program.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command
    }
}

impl Drop for WithoutRealTime {
    fn drop(&mut self) {
        eventually("the end of the group's tasks", || {
            std::fs::remove_dir(&self.0).ok()
        });
    }
}

#[test]
fn where_the_kernel_refuses_round_robin_a_client_gets_a_reservation_that_follows_its_rhythm() {
    needs_root!();
    let Some(group) = WithoutRealTime::make() else {
        return skip("the kernel refuses no group a real-time priority");
    };
    let mut machine = Machine::new();
    let mut command = machine.command(ALICE, &machine.path("audio"));
    let mut command = group.command(command.arg("beat"));
    let (process, tid) = that_asks(&machine, &mut command);
    let refused = Attributes {
        policy: Policy::RoundRobin(RealTime { priority: 1 }),
        reset_on_fork: true,
    };
    let error = refused.set(process.id()).err();
    assert_eq!(
        error.and_then(|error| error.raw_os_error()),
        Some(libc::EPERM)
    );
    let mut alice = machine.client(ALICE);
    eventually("a reservation", || is_reserved(tid).then_some(()));
    // A client asks once: the next service keeps it, too.
    machine.end(libc::SIGKILL);
    machine.start();
    eventually("a lock again", || {
        let one = listed(&mut alice, tid)?;
        (one["state"] == "kept" && is_reserved(tid)).then_some(())
    });
    assert!(
        machine
            .log()
            .contains("keeps the priority that an earlier onbeat gave it"),
        "{}",
        machine.log()
    );
    follows_its_rhythm_and_gets_back_what_it_had(machine, tid);
    drop(process);
}

#[test]
fn a_thread_that_shows_no_rhythm_gets_what_realtimekit_would_have_given_it() {
    needs_root!();
    let mut machine = Machine::new();
    let (_process, tid) = audio(&machine, "idle");
    eventually("its priority", || has_priority(tid, 10).then_some(()));
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    assert!(is_ordinary(tid), "{:?}", policy(tid));
}

/// The service that follows one that ended by `signal` looks after the thread, which never asks
/// again.
fn is_looked_after_across(machine: &mut Machine, tid: u32, signal: i32) {
    let mut alice = machine.client(ALICE);
    eventually("a lock", || {
        (listed(&mut alice, tid)?["state"] == "kept").then_some(())
    });
    machine.end(signal);
    assert!(
        has_priority(tid, 10) || is_reserved(tid),
        "{:?}",
        policy(tid)
    );
    machine.start();
    assert!(!is_ordinary(tid), "{}", machine.log());
    eventually("a lock again", || {
        let one = listed(&mut alice, tid)?;
        (one["state"] == "kept" && is_reserved(tid)).then_some(())
    });
}

#[test]
fn clients_keep_what_they_have_across_a_crash_and_a_restart_of_the_service() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("");
    machine.flags = vec!["--hand-over"];
    machine.start();
    let (_process, tid) = audio(&machine, "beat");
    let other = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.done(&format!("nice {0} {0} -5", other.id()));
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGKILL] {
        is_looked_after_across(&mut machine, tid, signal);
        assert_eq!(Attributes::get(other.id()).unwrap().nice(), Some(-5));
        // There is one file for the reservations of the service that runs, and one for priorities.
        assert_eq!(state_files(&machine.state()), 2, "{}", machine.log());
    }
    // For good: what the unit of systemd does then.
    assert_eq!(machine.end(libc::SIGTERM), Some(0), "{}", machine.log());
    assert!(has_priority(tid, 10), "{:?}", policy(tid));
    let restored = onbeat(&machine.state()).arg("restore").output();
    assert!(restored.expect("it starts").status.success());
    assert!(is_ordinary(tid) && is_ordinary(other.id()));
    assert_eq!(state_files(&machine.state()), 0);
}

#[test]
fn a_thread_that_asked_while_it_was_reserved_has_its_priority_after_a_crash() {
    needs_root!();
    let mut machine = Machine::new();
    let mut command = machine.command(ALICE, Path::new("prlimit"));
    command.args(["--rttime=150000:150000", "sleep", "1000"]);
    let sleeper = as_itself(Mortal::spawn(&mut command), "sleep");
    let tid = sleeper.id();
    let mut alice = machine.client(ALICE);
    alice.done(&format!("reserve {tid} 1000000 10000000 10000000"));
    alice.done(&format!("realtime {tid} {tid} 7"));
    assert!(is_reserved(tid));
    machine.end(libc::SIGKILL);
    machine.start();
    is_watched(&mut alice, tid);
    assert!(has_priority(tid, 7), "{:?}", policy(tid));
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    assert!(is_ordinary(tid), "{:?}", policy(tid));
}

#[test]
fn what_may_no_longer_have_a_priority_loses_it_after_a_crash() {
    needs_root!();
    let mut machine = Machine::new();
    let sleepers = [ALICE, ALICE, BOB].map(|uid| machine.sleeper(uid));
    for (uid, sleeper) in [ALICE, ALICE, BOB].into_iter().zip(&sleepers) {
        let mut client = machine.client(uid);
        client.done(&format!("nice {0} {0} -5", sleeper.id()));
    }
    // Another user's program runs where Bob's did, and Alice may have one task less.
    machine.end(libc::SIGKILL);
    let files = std::fs::read_dir(machine.state()).expect("it is there");
    for file in files.map(|file| file.expect("it is readable").path()) {
        let text = std::fs::read_to_string(&file).expect("it is text");
        let text = text.replace(&format!("\"owner\":{BOB}"), "\"owner\":0");
        std::fs::write(&file, text).expect("it is our own");
    }
    machine.configure("[quota]\ntasks = 1\n");
    machine.start();
    let raised = sleepers.iter().filter(|one| !is_ordinary(one.id()));
    assert_eq!(raised.count(), 1, "{}", machine.log());
    assert!(is_ordinary(sleepers[2].id()), "{}", machine.log());
    // Where clients are not served, none keeps anything.
    machine.end(libc::SIGKILL);
    machine.configure("[realtimekit]\nserve = false\n");
    machine.start();
    assert!(sleepers.iter().all(|one| is_ordinary(one.id())));
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    assert_eq!(state_files(&machine.state()), 0);
}

#[test]
fn a_thread_whose_owner_has_no_quota_left_gets_what_realtimekit_would_have_given_it() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("[quota]\nbandwidth = \"5%\"\n");
    machine.start();
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.done(&format!(
        "reserve {} 500000 10000000 10000000",
        sleeper.id()
    ));
    let (_process, tid) = audio(&machine, "beat");
    assert!(has_priority(tid, 10), "{:?}", policy(tid));
    eventually("the refusal", || {
        let log = machine.log();
        log.contains("its quota has no room").then_some(())
    });
    assert!(has_priority(tid, 10), "{:?}", policy(tid));
}

#[test]
fn limits_and_errors_are_realtimekits() {
    needs_root!();
    let machine = Machine::new();
    let [mut alice, mut root] = [ALICE, ROOT].map(|uid| machine.client(uid));
    assert_eq!(
        alice.told("properties"),
        json!({"MaxRealtimePriority": 20, "MinNiceLevel": -15, "RTTimeUSecMax": 200_000})
    );
    let unlimited = machine.sleeper(ALICE);
    let mut command = machine.command(ALICE, Path::new("prlimit"));
    let limited = command.args(["--rttime=150000:150000", "sleep", "1000"]);
    let limited = as_itself(Mortal::spawn(limited), "sleep");
    let other = machine.sleeper(BOB);
    let (u, l, b) = (unlimited.id(), limited.id(), other.id());
    for (line, error) in [
        (format!("realtime {u} {u} 10"), DENIED),
        (format!("realtime {l} {l} 21"), DENIED),
        (format!("realtime {l} {l} 0"), DENIED),
        (format!("realtime {b} {b} 10"), DENIED),
        (format!("realtime {l} {u} 10"), FAILED),
        (format!("nice {u} {u} -16"), DENIED),
        (format!("nice {b} {b} -5"), DENIED),
        ("nice 0 0 -5".to_owned(), FAILED),
        (format!("nice {} 1 -5", u64::MAX), FAILED),
        ("reset".to_owned(), DENIED),
    ] {
        assert_eq!(alice.refused(&line), error, "{line}");
    }
    assert!(is_ordinary(u) && is_ordinary(l) && is_ordinary(b));

    alice.done(&format!("nice {u} {u} -15"));
    let now = Attributes::get(u).unwrap();
    assert_eq!((now.nice(), now.reset_on_fork), (Some(-15), true));
    alice.done(&format!("nice {u} {u} -3"));
    assert_eq!(Attributes::get(u).unwrap().nice(), Some(-3));
    alice.done(&format!("realtime {l} {l} 20"));
    is_watched(&mut alice, l);
    assert!(has_priority(l, 20), "{:?}", policy(l));
    root.done("reset");
    assert!(is_ordinary(u) && is_ordinary(l), "{}", machine.log());
    assert_eq!(root.told("statistics")["threads"], 0);
}

#[test]
fn without_polkit_nobody_but_root_gets_a_priority_unless_the_configuration_says_so() {
    needs_root!();
    let mut machine = Machine::bus();
    std::fs::remove_file(machine.path(WITHOUT_POLKIT)).expect("it was written");
    machine.configure("");
    machine.start();
    let (hers, roots) = (machine.sleeper(ALICE), machine.sleeper(ROOT));
    let [mut alice, mut root] = [ALICE, ROOT].map(|uid| machine.client(uid));
    let refused = alice.ask(&format!("nice {0} {0} -5", hers.id()));
    assert!(
        refused.contains("AccessDenied") && refused.contains("without-polkit"),
        "{refused}"
    );
    assert!(is_ordinary(hers.id()));
    root.done(&format!("nice {0} {0} -5", roots.id()));
    machine.configure("[realtimekit]\nwithout-polkit = true\n");
    machine.end(libc::SIGTERM);
    machine.start();
    alice.done(&format!("nice {0} {0} -5", hers.id()));
    assert_eq!(Attributes::get(hers.id()).unwrap().nice(), Some(-5));
}

#[test]
fn a_thread_that_is_kept_already_has_the_priority_that_it_asks_for_below_its_reservation() {
    needs_root!();
    let mut machine = Machine::new();
    let mut command = machine.command(ALICE, Path::new("prlimit"));
    // It makes up for the jobs that it misses while it is stopped, with the priority and without a
    // pause: those of 15 s take as long as the limit lets it.
    command
        .arg("--rttime=150000:150000")
        .arg(machine.path("workload"))
        .arg("beat:20000/200")
        .stdout(Stdio::null());
    let process = as_itself(Mortal::spawn(&mut command), "workload");
    let mut alice = machine.client(ALICE);
    alice.done(&format!("track {}", process.id()));
    let keeps = |alice: &mut Client| {
        let threads = tids(process.id()).into_iter();
        let mut kept = threads.filter(|&tid| is_reserved(tid));
        let tid = kept.next()?;
        (listed(alice, tid)?["state"] == "kept").then_some(tid)
    };
    let tid = eventually("a reservation", || keeps(&mut alice));
    for priority in [5, 7] {
        alice.done(&format!("realtime {} {tid} {priority}", process.id()));
        eventually("its reservation", || is_reserved(tid).then_some(()));
    }
    // It has none any more once it has nothing to do.
    process.signal(libc::SIGSTOP);
    eventually("the priority", || has_priority(tid, 7).then_some(()));
    process.signal(libc::SIGCONT);
    eventually("a reservation again", || is_reserved(tid).then_some(()));
    alice.done(&format!("untrack {}", process.id()));
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    assert!(is_ordinary(tid), "{:?}", policy(tid));
}

#[test]
fn what_clients_get_is_what_the_configuration_says_once_it_was_read_anew() {
    needs_root!();
    let machine = Machine::new();
    let mut root = machine.client(ROOT);
    let first = |machine: &Machine| match policy(machine.service_pid()) {
        Policy::Fifo(own) => own.priority,
        other => panic!("{other:?}"),
    };
    assert_eq!(first(&machine), 21);
    machine.configure(
        "pipelines = false\n[realtimekit]\npriority = 27\nnice = -4\nrttime = \"9ms\"\n",
    );
    assert_eq!(root.told("reload"), json!(["pipelines"]));
    assert!(
        machine.log().contains("pipelines stays as it was"),
        "{}",
        machine.log()
    );
    assert_eq!(
        root.told("properties"),
        json!({"MaxRealtimePriority": 27, "MinNiceLevel": -4, "RTTimeUSecMax": 9_000})
    );
    assert_eq!(first(&machine), 28);
    // Its name is given up, and taken again.
    machine.configure("[realtimekit]\nserve = false\n");
    root.done("reload");
    eventually("nobody by that name", || {
        root.ask("properties").starts_with("error").then_some(())
    });
    machine.configure("");
    root.done("reload");
    let usual = eventually("somebody by that name", || {
        let answer = root.ask("properties");
        (!answer.starts_with("error")).then_some(answer)
    });
    assert!(usual.contains("20"), "{usual}");
    assert_eq!(first(&machine), 28, "somebody may have 27 yet");
}

#[test]
fn rtkitctl_finds_its_service_and_resets_what_was_given() {
    needs_root!();
    let machine = Machine::new();
    let (_process, tid) = audio(&machine, "idle");
    let ctl = |option: &str| {
        let mut command = machine.command(ROOT, Path::new("rtkitctl"));
        command
            .arg(option)
            .stderr(Stdio::null())
            .status()
            .expect("it is there")
            .success()
    };
    assert!(ctl("--reset-known"), "{}", machine.log());
    assert!(is_ordinary(tid), "{:?}", policy(tid));
    assert!(!ctl("--exit"), "the service goes on");
}
