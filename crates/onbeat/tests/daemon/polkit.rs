//! polkit itself on the bus, with the actions that are installed with the service.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Mortal, eventually, needs_root, skip};
use crate::machine::{ALICE, BOB, Machine, ROOT, is_ordinary, is_reserved};

/// A tenth of a CPU.
const TENTH: &str = "1000000 10000000 10000000";
/// Where Debian has it.
const POLKITD: &str = "/usr/lib/polkit-1/polkitd";

/// polkit on the machine's bus, with our actions and these rules instead of the machine's own.
fn polkit(machine: &Machine, rules: &str) -> Mortal {
    polkit_with(machine, rules, &[])
}

/// The same, with these files of actions beside ours.
fn polkit_with(machine: &Machine, rules: &str, more: &[(&str, &str)]) -> Mortal {
    let [actions, own_rules] = ["actions", "rules"].map(|name| machine.path(name));
    std::fs::create_dir(&actions).unwrap();
    std::fs::create_dir(&own_rules).unwrap();
    let policy = include_str!("../../../../packaging/polkit/org.onbeat.policy");
    std::fs::write(actions.join("org.onbeat.policy"), policy).unwrap();
    for (name, text) in more {
        std::fs::write(actions.join(name), text).unwrap();
    }
    std::fs::write(own_rules.join("10-test.rules"), rules).unwrap();
    let script = "mount --bind \"$1\" /usr/share/polkit-1/actions && \
                  mount --bind \"$2\" /etc/polkit-1/rules.d && exec \"$0\" --no-debug";
    let polkit = Mortal::spawn(
        Command::new("unshare")
            .args(["--mount", "sh", "-c", script, POLKITD])
            .args([&actions, &own_rules])
            .env("DBUS_SYSTEM_BUS_ADDRESS", machine.address())
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    );
    eventually("polkit", || {
        pkaction(machine)
            .contains("org.onbeat.reload")
            .then_some(())
    });
    polkit
}

/// The actions that polkit knows, as pkaction tells them.
fn pkaction(machine: &Machine) -> String {
    let output = Command::new("pkaction")
        .arg("--verbose")
        .env("DBUS_SYSTEM_BUS_ADDRESS", machine.address())
        .output()
        .expect("pkaction is there");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn is_there() -> bool {
    let there = Path::new(POLKITD).exists();
    if !there {
        skip("there is no polkitd");
    }
    there
}

#[test]
fn polkit_takes_the_actions_and_decides_by_them() {
    needs_root!();
    if !is_there() {
        return;
    }
    let machine = Machine::new();
    let _polkit = polkit(&machine, "");
    let known = pkaction(&machine);
    for (action, any, active) in [
        ("manage-own-tasks", "auth_admin", "yes"),
        ("prioritise-own-tasks", "auth_admin", "yes"),
        ("manage-other-tasks", "auth_admin", "auth_admin_keep"),
        ("reload", "auth_admin", "auth_admin_keep"),
    ] {
        let (_, rest) = known
            .split_once(&format!("org.onbeat.{action}:"))
            .unwrap_or_else(|| panic!("{action} is not in {known}"));
        let own = rest.split("\n\n").next().unwrap_or(rest);
        let implicit = |who: &str| {
            let line = own
                .lines()
                .find_map(|line| line.trim().strip_prefix(&format!("implicit {who}:")));
            line.unwrap_or_default().trim().to_owned()
        };
        assert_eq!(
            (&*implicit("any"), &*implicit("active")),
            (any, active),
            "{action}"
        );
    }

    // Alice does not sit at the machine.
    let (own, others) = (machine.sleeper(ALICE), machine.sleeper(BOB));
    let [mut alice, mut root] = [ALICE, ROOT].map(|uid| machine.client(uid));
    for task in [&own, &others] {
        let refused = alice.ask(&format!("reserve {} {TENTH}", task.id()));
        assert!(refused.contains("NotPermitted"), "{refused}");
    }
    let refused = alice.ask("reload");
    assert!(
        refused.contains("NotPermitted") && refused.contains("org.onbeat.reload"),
        "{refused}"
    );
    let refused = alice.ask(&format!("nice {0} {0} -5", own.id()));
    assert!(
        refused.contains("AccessDenied") && refused.contains("org.onbeat.prioritise-own-tasks"),
        "{refused}"
    );
    assert!(is_ordinary(others.id()));
    root.done("reload");
}

#[test]
fn what_an_administrators_rule_denies_or_permits_is_denied_or_permitted() {
    needs_root!();
    if !is_there() {
        return;
    }
    let machine = Machine::new();
    let name = |uid: u32| {
        let line = Command::new("getent")
            .args(["passwd", &uid.to_string()])
            .output()
            .expect("getent is there");
        let line = String::from_utf8_lossy(&line.stdout).into_owned();
        line.split(':').next().unwrap_or_default().to_owned()
    };
    let rules = format!(
        "polkit.addRule(function(action, subject) {{ \
            if (subject.user == '{}') return polkit.Result.YES; \
            if (action.id == 'org.onbeat.manage-own-tasks') return polkit.Result.NO; \
        }});",
        name(BOB)
    );
    let mut polkit = polkit(&machine, &rules);
    let (alices, bobs) = (machine.sleeper(ALICE), machine.sleeper(BOB));
    let [mut alice, mut bob] = [ALICE, BOB].map(|uid| machine.client(uid));
    let refused = alice.ask(&format!("reserve {} {TENTH}", alices.id()));
    assert!(
        refused.contains("NotPermitted") && refused.contains("org.onbeat.manage-own-tasks"),
        "{refused}"
    );
    assert!(is_ordinary(alices.id()));
    bob.done(&format!("reserve {} {TENTH}", bobs.id()));
    bob.done(&format!("reserve {} {TENTH}", alices.id()));
    assert!(is_reserved(alices.id()));
    bob.done("reload");
    // Once there is no polkit any more, all users are back to their own tasks.
    polkit.0.kill().expect("it is our child");
    polkit.0.wait().expect("it is our child");
    eventually("the end of polkit", || {
        alice
            .ask(&format!("release {}", alices.id()))
            .contains("NotHeld")
            .then_some(())
    });
    assert_eq!(bob.refused("reload"), "NotPermitted");
}

#[test]
fn a_rule_about_realtimekits_own_actions_counts_for_its_clients() {
    needs_root!();
    if !is_there() {
        return;
    }
    let machine = Machine::new();
    let kit = Path::new("/usr/share/polkit-1/actions/org.freedesktop.RealtimeKit1.policy");
    let actions = std::fs::read_to_string(kit).expect("RealtimeKit is installed for the tests");
    let rules = "polkit.addRule(function(action, subject) { \
            if (action.id == 'org.freedesktop.RealtimeKit1.acquire-high-priority') \
                return polkit.Result.YES; \
        });";
    let _polkit = polkit_with(&machine, rules, &[("kit.policy", &actions)]);
    let own = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.done(&format!("nice {0} {0} -5", own.id()));
    let refused = alice.ask(&format!("realtime {0} {0} 5", own.id()));
    assert!(
        refused.contains("org.freedesktop.RealtimeKit1.acquire-real-time"),
        "{refused}"
    );
}
