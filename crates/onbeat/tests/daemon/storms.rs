//! Forks, names and executed programs that come faster than the service hears them: it loses
//! events, and no right or charge stays where it no longer belongs.

use crate::prelude::*;

/// Processes that sleep, and that no rule names.
const SLEEPERS: u128 = 200;
/// Programs that are started while the service stands still. Each is three records at least: it is
/// tracked, has another name, and ends. The ring has room for 16,384.
const PROGRAMS: u32 = 6_000;

#[test]
fn a_storm_of_programs_hides_neither_an_end_nor_a_set_user_id_program() {
    let machine = Machine::with_flags(&["--metrics", "127.0.0.1:0"], |_| String::new());
    let becomes = set_user_id(&machine);
    let bobs = machine.sleeper(BOB);
    let mut bob = machine.client(BOB);
    bob.reserve(bobs.id());
    let script = format!(
        "read go; i=0; while [ $i -lt {PROGRAMS} ]; do /bin/true; i=$((i+1)); done; echo over; \
         read go"
    );
    let shell = |uid, script: &str| {
        let mut shell = machine.command(uid, Path::new("/bin/sh"));
        shell.arg("-c").arg(script).arg(&becomes);
        let mut shell = Mortal::spawn(shell.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let input = shell.0.stdin.take().unwrap();
        let output = BufReader::new(shell.0.stdout.take().unwrap());
        (as_itself(shell, "sh"), input, output)
    };
    // What another user begins beyond some number in a second is not told at all.
    let (storm, mut go, mut output) = shell(ROOT, &script);
    let (hers, mut becoming, _) = shell(ALICE, "read go; exec \"$0\" 1000");
    let [mut alice, mut root] = [ALICE, ROOT].map(|uid| machine.client(uid));
    root.done(&format!("track {} children", storm.id()));
    alice.track(&hers);
    assert_eq!(alice.figure("own-tasks"), 1);

    machine.signal(libc::SIGSTOP);
    writeln!(go, "go").unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "over\n");
    writeln!(becoming, "go").unwrap();
    until("the set-user-ID program", || is_roots(hers.id()));
    machine.signal(libc::SIGCONT);

    until("lost events", || {
        machine.metric("onbeat_events_lost_total") > Some(0.0)
    });
    until("a ledger without hers", || alice.figure("own-tasks") == 0);
    assert!(is_ordinary(hers.id()));
    drop((storm, go));
    until("none but Bob's", || root.figure("threads") == 1);
    assert!(is_reserved(bobs.id()));
    // It goes on.
    let later = machine.sleeper(ALICE);
    alice.reserve(later.id());
}

#[test]
fn the_service_reads_nothing_of_processes_that_no_rule_names() {
    let machine = Machine::with("scan = \"20ms\"\n[[rule]]\nprogram = \"of-no-process\"\n");
    let sleepers: Vec<_> = (0..SLEEPERS).map(|_| machine.sleeper(ALICE)).collect();
    let reads = || -> u128 {
        let io = fs::read_to_string(format!("/proc/{}/io", machine.service_pid())).unwrap();
        let line = io.lines().find_map(|line| line.strip_prefix("syscr: "));
        line.unwrap().parse().unwrap()
    };
    let (began, before) = (Instant::now(), reads());
    std::thread::sleep(Duration::from_secs(1));
    let count = reads() - before;
    let scans = began.elapsed().as_millis() / 20 + 1;
    // A scan itself takes fewer than ten.
    assert!(count < scans * SLEEPERS / 4, "{count} in {scans} scans");
    drop(sleepers);
}
