//! polkit itself on the bus, with the actions that are installed with the service.

use crate::prelude::*;

/// Where Debian has it.
const POLKITD: &str = "/usr/lib/polkit-1/polkitd";

/// polkit on the machine's bus, with our actions and this file of more, and these rules instead of
/// the machine's own; none where there is no polkit.
fn polkit(machine: &Machine, rules: &str, more: &str) -> Option<Mortal> {
    if !Path::new(POLKITD).exists() {
        skip("there is no polkitd");
        return None;
    }
    let [actions, own_rules] = ["actions", "rules"].map(|name| machine.folder(name));
    let policy = include_str!("../../../../packaging/polkit/org.onbeat.policy");
    fs::write(actions.join("org.onbeat.policy"), policy).unwrap();
    if !more.is_empty() {
        fs::write(actions.join("more.policy"), more).unwrap();
    }
    fs::write(own_rules.join("10-test.rules"), rules).unwrap();
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
    until("polkit", || pkaction(machine).contains("org.onbeat.reload"));
    Some(polkit)
}

/// The actions that polkit knows, as pkaction tells them.
fn pkaction(machine: &Machine) -> String {
    let output = Command::new("pkaction")
        .arg("--verbose")
        .env("DBUS_SYSTEM_BUS_ADDRESS", machine.address())
        .output()
        .expect("pkaction is there");
    stdout(&output).to_owned()
}

#[test]
fn polkit_takes_the_actions_and_decides_by_them() {
    let machine = Machine::new();
    let Some(_polkit) = polkit(&machine, "", "") else {
        return;
    };
    let known = pkaction(&machine);
    for (action, any, active) in [
        ("manage-own-tasks", "auth_admin", "yes"),
        ("prioritise-own-tasks", "auth_admin", "yes"),
        ("manage-other-tasks", "auth_admin", "auth_admin_keep"),
        ("reload", "auth_admin", "auth_admin_keep"),
    ] {
        let mut paragraphs = known.split("\n\n");
        let own = paragraphs.find(|it| it.contains(&format!("org.onbeat.{action}:")));
        let words: Vec<&str> = own.unwrap().split_whitespace().collect();
        for implicit in [["any:", any], ["active:", active]] {
            assert!(words.windows(2).any(|two| two == implicit), "{words:?}");
        }
    }

    // Alice does not sit at the machine.
    let (own, others) = (machine.sleeper(ALICE), machine.sleeper(BOB));
    let [mut alice, mut root] = [ALICE, ROOT].map(|uid| machine.client(uid));
    for task in [&own, &others] {
        let refused = alice.ask(&format!("reserve {} {TENTH}", task.id()));
        has(&refused, &["NotPermitted"]);
    }
    has(alice.ask("reload"), &["NotPermitted", "org.onbeat.reload"]);
    let refused = alice.ask(&format!("nice {0} {0} -5", own.id()));
    let why = ["AccessDenied", "org.onbeat.prioritise-own-tasks"];
    has(refused, &why);
    assert!(is_ordinary(others.id()));
    root.done("reload");
}

#[test]
fn what_an_administrators_rule_denies_or_permits_is_denied_or_permitted() {
    let machine = Machine::new();
    // Bob's name on any Debian.
    let rules = "polkit.addRule(function(action, subject) { \
            if (subject.user == 'lp') return polkit.Result.YES; \
            if (action.id == 'org.onbeat.manage-own-tasks') return polkit.Result.NO; \
        });";
    let Some(polkit) = polkit(&machine, rules, "") else {
        return;
    };
    let (alices, bobs) = (machine.sleeper(ALICE), machine.sleeper(BOB));
    let [mut alice, mut bob] = [ALICE, BOB].map(|uid| machine.client(uid));
    let refused = alice.ask(&format!("reserve {} {TENTH}", alices.id()));
    has(&refused, &["NotPermitted", "org.onbeat.manage-own-tasks"]);
    assert!(is_ordinary(alices.id()));
    bob.reserve(bobs.id());
    bob.reserve(alices.id());
    assert!(is_reserved(alices.id()));
    bob.done("reload");
    // Once there is no polkit any more, all users are back to their own tasks.
    drop(polkit);
    let release = format!("release {}", alices.id());
    until("the end of polkit", || {
        alice.ask(&release).contains("NotHeld")
    });
    assert_eq!(bob.refused("reload"), "NotPermitted");
}

#[test]
fn a_rule_about_realtimekits_own_actions_counts_for_its_clients() {
    let machine = Machine::new();
    let kit = Path::new("/usr/share/polkit-1/actions/org.freedesktop.RealtimeKit1.policy");
    let actions = fs::read_to_string(kit).expect("RealtimeKit is installed for the tests");
    let rules = "polkit.addRule(function(action, subject) { \
            if (action.id == 'org.freedesktop.RealtimeKit1.acquire-high-priority') \
                return polkit.Result.YES; \
        });";
    let Some(_polkit) = polkit(&machine, rules, &actions) else {
        return;
    };
    let own = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.nice(&own, -5);
    let refused = alice.ask(&format!("realtime {0} {0} 5", own.id()));
    let action = "org.freedesktop.RealtimeKit1.acquire-real-time";
    has(refused, &[action]);
}
