//! Clients of RealtimeKit, as they are: they get what it gives, and a reservation where they have a
//! rhythm.

use onbeat_act::attributes::RealTime;

use crate::prelude::*;

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
    let mut output = BufReader::new(process.0.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let tid = line.trim().parse();
    let tid = tid.unwrap_or_else(|_| panic!("{line}: {}", machine.log()));
    (process, tid)
}

fn is_watched(client: &mut Client, tid: u32) {
    eventually("a thread without a reservation", || {
        let one = client.listed(tid)?;
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
    let machine = Machine::new();
    let (_process, tid) = audio(&machine, "beat");
    follows_its_rhythm_and_gets_back_what_it_had(machine, tid);
}

#[test]
fn a_thread_that_browsers_library_promotes_gets_a_reservation_that_follows_its_rhythm() {
    let machine = Machine::new();
    let mut command = machine.command(ALICE, &machine.path("audio_thread"));
    let (_process, tid) = that_asks(&machine, &mut command);
    follows_its_rhythm_and_gets_back_what_it_had(machine, tid);
}

#[test]
fn a_thread_that_says_its_budget_has_a_reservation_of_it_or_realtimekits_priority() {
    let machine = Machine::new();
    // Microseconds in each 10 ms, and the jobs until it no longer wants them.
    let with = |us: &[&str]| {
        let mut command = machine.command(ALICE, &machine.path("audio_thread"));
        that_asks(&machine, command.args(us))
    };
    let (_process, tid) = with(&["2500"]);
    assert_eq!(times(tid), (2_500_000, 10_000_000, 10_000_000));
    // More than her quota.
    let (_process, tid) = with(&["8000"]);
    assert!(has_priority(tid, 10), "{:?}", policy(tid));
    let (_process, tid) = with(&["8000", "9"]);
    until("its end", || matches!(policy(tid), Policy::Other(_)));
}

/// Alice's thread that works every 10 ms.
fn follows_its_rhythm_and_gets_back_what_it_had(mut machine: Machine, tid: u32) {
    let mut alice = machine.client(ALICE);
    eventually("the loop's reservation", || {
        let period = alice.listed(tid)?["period-ns"].as_f64()?;
        ((period / 10e6 - 1.0).abs() < 0.2 && alice.is_kept(tid)).then_some(())
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
        fs::create_dir(&group).ok()?;
        let group = Self(group);
        let runtime = fs::read_to_string(group.0.join("cpu.rt_runtime_us")).ok()?;
        (runtime.trim() == "0").then_some(group)
    }
}

impl Drop for WithoutRealTime {
    fn drop(&mut self) {
        until("the end of the group's tasks", || {
            fs::remove_dir(&self.0).is_ok()
        });
    }
}

#[test]
fn where_the_kernel_refuses_round_robin_a_client_gets_a_reservation_that_follows_its_rhythm() {
    let Some(group) = WithoutRealTime::make() else {
        return skip("the kernel refuses no group a real-time priority");
    };
    let mut machine = Machine::new();
    let program = machine.command(ALICE, &machine.path("audio"));
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo $$ >\"$0\" && exec \"$@\" beat"])
        .arg(group.0.join("cgroup.procs"))
        .arg(program.get_program())
        .args(program.get_args())
        .env("DBUS_SYSTEM_BUS_ADDRESS", machine.address());
    let (process, tid) = that_asks(&machine, &mut command);
    let refused = Attributes {
        policy: Policy::RoundRobin(RealTime { priority: 1 }),
        reset_on_fork: true,
    };
    let error = refused.set(process.id()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    let mut alice = machine.client(ALICE);
    until("a reservation", || is_reserved(tid));
    // A client asks once: the next service keeps it, too.
    machine.end(libc::SIGKILL);
    machine.start();
    until("a lock again", || alice.is_kept(tid));
    let kept = "keeps the priority that an earlier onbeat gave it";
    assert!(machine.said(kept) > 0, "{}", machine.log());
    follows_its_rhythm_and_gets_back_what_it_had(machine, tid);
    drop(process);
}

#[test]
fn clients_keep_what_they_have_across_a_crash_and_a_restart_of_the_service() {
    let mut machine = Machine::bus();
    machine.configure("");
    machine.flags = vec!["--hand-over"];
    machine.start();
    let (_process, tid) = audio(&machine, "beat");
    let other = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.nice(&other, -5);
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGKILL] {
        until("a lock", || alice.is_kept(tid));
        machine.end(signal);
        assert!(
            has_priority(tid, 10) || is_reserved(tid),
            "{:?}",
            policy(tid)
        );
        // It never asks again.
        machine.start();
        assert!(!is_ordinary(tid), "{}", machine.log());
        until("a lock again", || alice.is_kept(tid));
        assert_eq!(nice_of(other.id()), Some(-5));
        // There is one file for the reservations of the service that runs, and one for priorities.
        assert_eq!(state_files(&machine.state()), 2, "{}", machine.log());
    }
    // For good: what the unit of systemd does then.
    assert_eq!(machine.end(libc::SIGTERM), Some(0), "{}", machine.log());
    assert!(has_priority(tid, 10), "{:?}", policy(tid));
    let restored = onbeat(&machine.state()).arg("restore").output();
    assert!(restored.unwrap().status.success());
    assert!(is_ordinary(tid) && is_ordinary(other.id()));
    assert_eq!(state_files(&machine.state()), 0);
}

#[test]
fn a_thread_that_asked_while_it_was_reserved_has_its_priority_after_a_crash() {
    let mut machine = Machine::new();
    let sleeper = machine.limited_sleeper(ALICE);
    let tid = sleeper.id();
    let mut alice = machine.client(ALICE);
    alice.reserve(tid);
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
    let mut machine = Machine::new();
    let sleepers = [ALICE, ALICE, BOB].map(|uid| machine.sleeper(uid));
    for (uid, sleeper) in [ALICE, ALICE, BOB].into_iter().zip(&sleepers) {
        machine.client(uid).nice(sleeper, -5);
    }
    // Another user's program runs where Bob's did, and Alice may have one task less.
    machine.end(libc::SIGKILL);
    for file in fs::read_dir(machine.state()).unwrap() {
        let file = file.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace(&format!("\"owner\":{BOB}"), "\"owner\":0");
        fs::write(&file, text).unwrap();
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
fn limits_and_errors_are_realtimekits() {
    let machine = Machine::new();
    let [mut alice, mut root] = [ALICE, ROOT].map(|uid| machine.client(uid));
    assert_eq!(
        alice.told("properties"),
        json!({"MaxRealtimePriority": 20, "MinNiceLevel": -15, "RTTimeUSecMax": 200_000})
    );
    let (unlimited, limited) = (machine.sleeper(ALICE), machine.limited_sleeper(ALICE));
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

    alice.nice(&unlimited, -15);
    let now = Attributes::get(u).unwrap();
    assert_eq!((now.nice(), now.reset_on_fork), (Some(-15), true));
    alice.nice(&unlimited, -3);
    assert_eq!(nice_of(u), Some(-3));
    alice.done(&format!("realtime {l} {l} 20"));
    is_watched(&mut alice, l);
    assert!(has_priority(l, 20), "{:?}", policy(l));
    root.done("reset");
    assert!(is_ordinary(u) && is_ordinary(l), "{}", machine.log());
    assert_eq!(root.figure("threads"), 0);
}

#[test]
fn without_polkit_nobody_but_root_gets_a_priority_unless_the_configuration_says_so() {
    let mut machine = Machine::bus();
    fs::remove_file(machine.path(WITHOUT_POLKIT)).unwrap();
    machine.configure("");
    machine.start();
    let (hers, roots) = (machine.sleeper(ALICE), machine.sleeper(ROOT));
    let [mut alice, mut root] = [ALICE, ROOT].map(|uid| machine.client(uid));
    let refused = alice.ask(&format!("nice {0} {0} -5", hers.id()));
    let why = ["AccessDenied", "without-polkit"];
    assert!(why.iter().all(|why| refused.contains(why)), "{refused}");
    assert!(is_ordinary(hers.id()));
    root.nice(&roots, -5);
    machine.configure("[realtimekit]\nwithout-polkit = true\n");
    machine.end(libc::SIGTERM);
    machine.start();
    alice.nice(&hers, -5);
    assert_eq!(nice_of(hers.id()), Some(-5));
}

#[test]
fn a_thread_that_is_kept_already_has_the_priority_that_it_asks_for_below_its_reservation() {
    let mut machine = Machine::new();
    // It makes up for the jobs that it misses while it is stopped, with the priority and without a
    // pause: those of 15 s take as long as the limit lets it.
    let mut command = machine.limited(ALICE, machine.path("workload"));
    let process = as_itself(Mortal::spawn(command.arg("beat:20000/200")), "workload");
    let mut alice = machine.client(ALICE);
    alice.track(&process);
    let tid = eventually("a reservation", || alice.kept(process.id()));
    for priority in [5, 7] {
        alice.done(&format!("realtime {} {tid} {priority}", process.id()));
        until("its reservation", || is_reserved(tid));
    }
    // It has none any more once it has nothing to do.
    process.signal(libc::SIGSTOP);
    until("the priority", || has_priority(tid, 7));
    process.signal(libc::SIGCONT);
    until("a reservation again", || is_reserved(tid));
    alice.done(&format!("untrack {}", process.id()));
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    assert!(is_ordinary(tid), "{:?}", policy(tid));
}

#[test]
fn what_clients_get_is_what_the_configuration_says_once_it_was_read_anew() {
    let machine = Machine::new();
    let mut root = machine.client(ROOT);
    machine.configure(
        "pipelines = false\n[realtimekit]\npriority = 27\nnice = -4\nrttime = \"9ms\"\n",
    );
    assert_eq!(root.told("reload"), json!(["pipelines"]));
    assert!(
        machine.said("pipelines stays as it was") > 0,
        "{}",
        machine.log()
    );
    assert_eq!(
        root.told("properties"),
        json!({"MaxRealtimePriority": 27, "MinNiceLevel": -4, "RTTimeUSecMax": 9_000})
    );
    // Before its clients.
    let own = policy(machine.service_pid());
    assert!(
        matches!(own, Policy::Fifo(own) if own.priority == 28),
        "{own:?}"
    );
    // Its name is given up, and taken again.
    for (text, is_there) in [("[realtimekit]\nserve = false\n", false), ("", true)] {
        machine.configure(text);
        root.done("reload");
        until("the name", || {
            root.ask("properties").starts_with("error") != is_there
        });
    }
    assert_eq!(root.told("properties")["MaxRealtimePriority"], 20);
}

#[test]
fn rtkitctl_finds_its_service_and_resets_what_was_given() {
    let machine = Machine::new();
    let (_process, tid) = audio(&machine, "idle");
    assert!(has_priority(tid, 10), "{:?}", policy(tid));
    let ctl = |option: &str| {
        let mut command = machine.command(ROOT, Path::new("rtkitctl"));
        command.arg(option).stderr(Stdio::null()).status().unwrap()
    };
    assert!(ctl("--reset-known").success(), "{}", machine.log());
    assert!(is_ordinary(tid), "{:?}", policy(tid));
    assert!(!ctl("--exit").success(), "the service goes on");
}
