//! Others on the machine who change the scheduling of tasks: noticed, told of once, never fought.

use onbeat_act::attributes::kept_nice;

use crate::prelude::*;
use crate::realtimekit::audio;

/// Where Debian has RealtimeKit.
const RTKIT: &str = "/usr/libexec/rtkit-daemon";

#[test]
fn where_realtimekit_runs_its_name_is_left_to_it_until_it_is_gone() {
    let mut machine = Machine::bus();
    machine.configure("scan = \"50ms\"\n");
    let address = machine.address();
    let owner = |name: &str| {
        let output = Command::new("dbus-send")
            .args(["--system", "--print-reply", "--dest=org.freedesktop.DBus"])
            .args(["/org/freedesktop/DBus", "org.freedesktop.DBus.GetNameOwner"])
            .arg(format!("string:{name}"))
            .env("DBUS_SYSTEM_BUS_ADDRESS", &address)
            .output()
            .unwrap();
        stdout(&output).split('"').nth(1).map(str::to_owned)
    };
    let kit = "org.freedesktop.RealtimeKit1";
    let mut command = Command::new(RTKIT);
    command
        .args(["--no-canary", "--no-chroot"])
        .env("DBUS_SYSTEM_BUS_ADDRESS", &address)
        .stderr(Stdio::null());
    let rtkit = Mortal::spawn(&mut command);
    let first = eventually("RealtimeKit", || owner(kit));
    machine.start();
    has(machine.log(), &["RealtimeKit itself serves them"]);
    assert_eq!(owner(kit), Some(first));
    drop(rtkit);
    until("onbeat in its place", || {
        let ours = owner("org.onbeat.Manager1");
        ours.is_some() && owner(kit) == ours
    });
}

#[test]
fn a_thread_that_has_a_real_time_priority_of_its_own_is_left_alone() {
    let machine = Machine::new();
    let (process, tid) = machine.beat_under_fifo(ALICE);
    let own = Attributes::get(tid).unwrap();
    assert!(matches!(own.policy, Policy::Fifo(_)), "{own}");
    let mut alice = machine.client(ALICE);
    alice.track(&process);
    let is_left = |one: Value| one["state"] == "taken-over";
    until("a thread that is left to itself", || {
        alice.listed(tid).is_some_and(is_left)
    });
    assert_eq!(Attributes::get(tid).unwrap(), own);
    assert_eq!(machine.said(&format!("({tid}): taken-over")), 1);
    // Unless it is asked for.
    alice.done(&format!("untrack {}", process.id()));
    alice.reserve(tid);
    assert!(is_reserved(tid));
    alice.done(&format!("release {tid}"));
    until("the way back", || Attributes::get(tid).unwrap() == own);
}

/// GameMode, which gives games a nice level of -5, and may.
fn gamemode(machine: &Machine) -> Mortal {
    let home = machine.home(ALICE);
    fs::write(home.join("gamemode.ini"), "[general]\nrenice=5\n").unwrap();
    let program = machine.in_session(ALICE, "gamemoded");
    let mut command = Command::new("setpriv");
    command
        .args(["--inh-caps=+sys_nice", "--ambient-caps=+sys_nice"])
        .args(program.get_args())
        .envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Mortal::spawn(&mut command)
}

#[test]
fn what_gamemode_gives_a_task_is_there_when_onbeat_has_given_back_what_it_had() {
    // Enough for a reservation.
    let machine = Machine::with("[quota]\nbandwidth = \"60%\"\n");
    let _gamemode = gamemode(&machine);
    let reserved = machine.sleeper(ALICE);
    let (with_priority, thread) = audio(&machine, "idle");
    let mut alice = machine.client(ALICE);
    alice.reserve(reserved.id());
    let games = [(reserved.id(), reserved.id()), (with_priority.id(), thread)];
    for (process, tid) in games {
        until("the nice level", || {
            // It may not be on the bus yet, and takes a game but once.
            let _ = machine
                .in_session(ALICE, "dbus-send")
                .args(["--session", "--print-reply"])
                .args(["--dest=com.feralinteractive.GameMode"])
                .arg("/com/feralinteractive/GameMode")
                .arg("com.feralinteractive.GameMode.RegisterGame")
                .arg(format!("int32:{process}"))
                .stderr(Stdio::null())
                .status();
            kept_nice(tid).is_ok_and(|nice| nice == -5)
        });
    }
    assert!(is_reserved(reserved.id()));
    alice.done(&format!("release {}", reserved.id()));
    machine.client(ROOT).done("reset");
    for (_, tid) in games {
        let has = || Attributes::get(tid).unwrap();
        until("what GameMode gave", || has() == ordinary(-5, false));
    }
}
