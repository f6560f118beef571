//! Others on the machine who change the scheduling of tasks: noticed, told of once, never fought.

use std::path::Path;
use std::process::{Command, Stdio};

use onbeat_act::attributes::{Attributes, Fair, Policy, kept_nice};

use crate::common::{Mortal, eventually, needs_root};
use crate::machine::{ALICE, Machine, ROOT, is_reserved};
use crate::realtimekit::audio;
use crate::sound::home;

/// Where Debian has RealtimeKit.
const RTKIT: &str = "/usr/libexec/rtkit-daemon";

#[test]
fn where_realtimekit_runs_its_name_is_left_to_it_until_it_is_gone() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("");
    let address = machine.address();
    let owner = |name: &str| {
        let output = Command::new("dbus-send")
            .args(["--system", "--print-reply", "--dest=org.freedesktop.DBus"])
            .args(["/org/freedesktop/DBus", "org.freedesktop.DBus.GetNameOwner"])
            .arg(format!("string:{name}"))
            .env("DBUS_SYSTEM_BUS_ADDRESS", &address)
            .output()
            .expect("it is there");
        String::from_utf8_lossy(&output.stdout)
            .split('"')
            .nth(1)
            .map(str::to_owned)
    };
    let kit = "org.freedesktop.RealtimeKit1";
    let mut command = Command::new(RTKIT);
    command
        .args(["--no-canary", "--no-chroot"])
        .env("DBUS_SYSTEM_BUS_ADDRESS", machine.address())
        .stderr(Stdio::null());
    let mut rtkit = Mortal::spawn(&mut command);
    let first = eventually("RealtimeKit", || owner(kit));
    machine.start();
    assert!(
        machine.log().contains("RealtimeKit itself serves them"),
        "{}",
        machine.log()
    );
    assert_eq!(owner(kit), Some(first));
    rtkit.0.kill().expect("it is our child");
    rtkit.0.wait().expect("it is our child");
    eventually("onbeat in its place", || {
        let ours = owner("org.onbeat.Manager1");
        (ours.is_some() && owner(kit) == ours).then_some(())
    });
}

#[test]
fn a_thread_that_has_a_real_time_priority_of_its_own_is_left_alone() {
    needs_root!();
    let machine = Machine::new();
    let (process, tid) = machine.beat_under_fifo(ALICE);
    let own = Attributes::get(tid).unwrap();
    assert!(matches!(own.policy, Policy::Fifo(_)), "{own}");
    let mut alice = machine.client(ALICE);
    alice.done(&format!("track {}", process.id()));
    eventually("a thread that is left to itself", || {
        let threads = alice.told("list");
        let one = threads
            .as_array()?
            .iter()
            .find(|one| one["thread"] == tid)?;
        (one["state"] == "taken-over").then_some(())
    });
    assert_eq!(Attributes::get(tid).unwrap(), own);
    let log = machine.log();
    let said = format!("({tid}): taken-over");
    let said = log.lines().filter(|line| line.contains(&said)).count();
    assert_eq!(said, 1, "{log}");
    // Unless it is asked for.
    alice.done(&format!("untrack {}", process.id()));
    alice.done(&format!("reserve {tid} 1000000 10000000 10000000"));
    assert!(is_reserved(tid));
    alice.done(&format!("release {tid}"));
    eventually("the way back", || {
        (Attributes::get(tid).unwrap() == own).then_some(())
    });
}

#[test]
fn a_nice_level_that_somebody_gives_a_reserved_thread_is_told_once_and_stays() {
    needs_root!();
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let tid = sleeper.id();
    let mut alice = machine.client(ALICE);
    alice.done(&format!("reserve {tid} 100000 10000000 10000000"));
    let told = |line: &str| {
        let log = machine.log();
        log.lines().filter(|one| one.contains(line)).count()
    };
    assert_eq!(told("nice value"), 0, "{}", machine.log());
    for (before, now) in [(0, 7), (7, 9)] {
        let mut renice = Command::new("renice");
        let renice = renice.args(["-n", &now.to_string(), "-p", &tid.to_string()]);
        let reniced = renice.stdout(Stdio::null()).status();
        assert!(reniced.expect("it is there").success());
        let line = format!(
            "sleep ({tid}): another program changed its nice value from {before} to {now}:"
        );
        eventually("a line in the log", || (told(&line) > 0).then_some(()));
        assert!(is_reserved(tid));
    }
    alice.done(&format!("release {tid}"));
    eventually("the way back", || (!is_reserved(tid)).then_some(()));
    assert_eq!(Attributes::get(tid).unwrap().nice(), Some(9));
    assert_eq!(told("nice value"), 2, "{}", machine.log());
}

/// GameMode, which gives games a nice level of -5, and may.
fn gamemode(machine: &Machine) -> Mortal {
    let home = home(machine);
    std::fs::write(home.join("gamemode.ini"), "[general]\nrenice=5\n")
        .expect("there is room for a file");
    let alice = ALICE.to_string();
    Mortal::spawn(
        Command::new("setpriv")
            .args(["--inh-caps=+sys_nice", "--ambient-caps=+sys_nice"])
            .args(["--clear-groups", "--reuid", &alice, "--regid", &alice])
            .arg("gamemoded")
            .env("DBUS_SESSION_BUS_ADDRESS", machine.address())
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", &home)
            .env("XDG_RUNTIME_DIR", &home)
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
}

#[test]
fn what_gamemode_gives_a_task_is_there_when_onbeat_has_given_back_what_it_had() {
    needs_root!();
    let mut machine = Machine::bus();
    // Enough for a reservation.
    machine.configure("[quota]\nbandwidth = \"60%\"\n");
    machine.start();
    let _gamemode = gamemode(&machine);
    let reserved = machine.sleeper(ALICE);
    let (with_priority, thread) = audio(&machine, "idle");
    let mut alice = machine.client(ALICE);
    alice.done(&format!(
        "reserve {} 100000 10000000 10000000",
        reserved.id()
    ));
    let games = [(reserved.id(), reserved.id()), (with_priority.id(), thread)];
    for (process, tid) in games {
        eventually("the nice level", || {
            let mut command = machine.command(ALICE, Path::new("dbus-send"));
            command
                .args(["--session", "--print-reply"])
                .args(["--dest=com.feralinteractive.GameMode"])
                .arg("/com/feralinteractive/GameMode")
                .arg("com.feralinteractive.GameMode.RegisterGame")
                .arg(format!("int32:{process}"))
                .env("DBUS_SESSION_BUS_ADDRESS", machine.address())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            // It may not be on the bus yet, and takes a game but once.
            let _ = command.status().expect("it is there");
            (kept_nice(tid).ok()? == -5).then_some(())
        });
    }
    assert!(is_reserved(reserved.id()));
    alice.done(&format!("release {}", reserved.id()));
    machine.client(ROOT).done("reset");
    let gamemodes = Attributes {
        policy: Policy::Other(Fair {
            nice: -5,
            slice_ns: 0,
        }),
        reset_on_fork: false,
    };
    for (_, tid) in games {
        eventually("what GameMode gave", || {
            (Attributes::get(tid).expect("it lives") == gamemodes).then_some(())
        });
    }
}
