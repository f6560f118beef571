//! The configuration: rules track by themselves, quotas are as written, and reading it anew takes
//! nothing away.

use crate::prelude::*;

#[test]
fn a_rule_tracks_by_itself_and_reading_anew_takes_away_only_what_nobody_names_any_more() {
    let machine = Machine::with_rule("");
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let sleeper = machine.sleeper(ALICE);
    let mut alice = machine.client(ALICE);
    alice.reserve(sleeper.id());
    let thread = eventually("a reservation", || alice.kept(workload.id()));
    // Whatever a program calls itself, she is charged for it.
    assert_eq!(alice.figure("own-tasks"), 1 + tids(workload.id()).len());

    let mut root = machine.client(ROOT);
    machine.configure("scan = \"eternity\"\n");
    let wrong = "onbeat.toml:1: 'eternity' is no length of time: write";
    has(root.ask("reload"), &[wrong]);
    // Before there is a cap: one that is too small may have the thread's reservation given up.
    assert!(is_reserved(sleeper.id()));
    until("its reservation", || is_reserved(thread));

    machine.configure(&machine.rule("cap = \"2%\"\n"));
    root.done("reload");
    assert!(is_reserved(sleeper.id()));
    eventually("the cap", || {
        let one = alice.listed(thread)?;
        let share = one["runtime-ns"].as_f64()? / one["reserved-period-ns"].as_f64()?;
        (share <= 0.0201).then_some(())
    });

    machine.configure("[quota]\nbandwidth = \"15%\"\n");
    machine.signal(libc::SIGHUP);
    machine.says("read again: 0 rules");
    until("the end of the rule", || is_ordinary(thread));
    assert!(is_reserved(sleeper.id()));
    let other = machine.sleeper(ALICE);
    let refused = alice.refused(&format!("reserve {} {TENTH}", other.id()));
    assert_eq!(refused, "OverQuota");
}

#[test]
fn what_a_named_program_started_is_kept_when_the_configuration_is_read_anew() {
    let mut machine = Machine::bus();
    let launcher = machine.path("launcher");
    copy_program("/bin/sh", &launcher);
    let rule = |children: bool| {
        format!(
            "scan = \"50ms\"\n[[rule]]\nname = \"mine\"\nprogram = \"{}\"\nchildren = {children}\n",
            launcher.display()
        )
    };
    machine.configure(&rule(true));
    machine.start();
    let mut command = machine.command(ALICE, &launcher);
    command
        .args(["-c", "read go; \"$0\" random:1000000/1 & read end"])
        .arg(machine.path("workload"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut started = Mortal::spawn(&mut command);
    let mut input = started.0.stdin.take().unwrap();
    let first = started.id();
    machine.says("tracked by rule mine");
    writeln!(input, "go").unwrap();
    let mut root = machine.client(ROOT);
    let mut child = || {
        let list = root.list();
        let child = list.iter().find(|one| one["process"] != first)?;
        u32::try_from(child["process"].as_u64()?).ok()
    };
    let pid = eventually("the child", &mut child);
    let _child = Child(pid);
    // Before that it is the launcher's copy, which the rule names by itself.
    until("its program", || comm(pid) == "workload");
    let mut other = machine.client(ROOT);
    other.done("reload");
    assert_eq!(child(), Some(pid), "{}", machine.log());
    // Also when the one who started it has ended.
    started.0.kill().unwrap();
    started.0.wait().unwrap();
    until("its end", || other.listed(first).is_none());
    other.done("reload");
    assert_eq!(child(), Some(pid), "{}", machine.log());
    machine.configure(&rule(false));
    other.done("reload");
    assert_eq!(child(), None);
}

#[test]
fn a_rule_frees_of_quotas_what_it_names_of_the_user_that_it_names_alone() {
    let mut machine = Machine::bus();
    let more = format!("user = \"{BOB}\"\n");
    let both = machine.rule(&more) + machine.rule("").split_once('\n').unwrap().1;
    machine.configure(&(both + "[quota]\ntasks = 3\n"));
    machine.start();
    let threads = ["random:1000000/1"; 7];
    let _programs = [ALICE, BOB].map(|uid| machine.workload(uid, &threads));
    let mut root = machine.client(ROOT);
    let mut tracked = |uid: u32| root.list().iter().filter(|one| one["user"] == uid).count();
    until("all of Bob's threads", || tracked(BOB) == 8);
    until("as many of Alice's as she may have", || tracked(ALICE) == 3);
    assert_eq!(machine.client(BOB).figure("own-tasks"), 0);
    assert_eq!(machine.client(ALICE).figure("own-tasks"), 3);
}

/// A process that another one started, and that ends with the test.
struct Child(u32);

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: a plain system call. The process does nothing else than to wait for its end.
        unsafe { libc::kill(self.0.cast_signed(), libc::SIGKILL) };
    }
}

#[test]
fn checking_says_what_is_wrong_where_and_what_to_do_and_needs_no_privilege() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("onbeat.toml");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/onbeat.toml");
    let example = fs::read_to_string(example).unwrap();
    for (text, code, said) in [
        (
            "[limits]\ntotal = \"85\"\n",
            1,
            "onbeat.toml:2: '85' is no share: write",
        ),
        ("[limits]\ntotal = \"85%\"\n", 0, ""),
        (&example, 0, ""),
    ] {
        fs::write(&path, text).unwrap();
        let mut check = onbeat(folder.path());
        let check = check.args(["daemon", "--check", "--config"]).arg(&path);
        let output = check.output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        has(stderr(&output), &[said]);
        assert_eq!(stderr(&output).is_empty(), code == 0);
    }
}
