//! Forks, names and executed programs that come faster than the service hears them: it loses
//! events, and no right or charge stays where it no longer belongs.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Mortal, eventually, needs_root};
use crate::copied::copy_program;
use crate::machine::{ALICE, BOB, Machine, ROOT, as_itself, is_ordinary, is_reserved};

/// A tenth of a CPU.
const TENTH: &str = "1000000 10000000 10000000";
/// Processes that sleep, and that no rule names.
const SLEEPERS: u128 = 200;
/// Programs that are started while the service stands still. Each is three records at least: it is
/// tracked, has another name, and ends. The ring has room for 16,384.
const PROGRAMS: u32 = 6_000;

fn lost(port: u16) -> Option<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("onbeat_events_lost_total "));
    line?.parse().ok()
}

#[test]
fn a_storm_of_programs_hides_neither_an_end_nor_a_set_user_id_program() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("");
    machine.flags = vec!["--metrics", "127.0.0.1:0"];
    machine.start();
    let log = machine.log();
    let (_, place) = log.split_once("http://127.0.0.1:").unwrap();
    let port = place.split('/').next().unwrap().parse().unwrap();
    let becomes = machine.path("set-user-id");
    copy_program("/bin/sleep", &becomes);
    let mode = Permissions::from_mode(0o4755);
    std::fs::set_permissions(&becomes, mode).unwrap();

    let bobs = machine.sleeper(BOB);
    let mut bob = machine.client(BOB);
    bob.done(&format!("reserve {} {TENTH}", bobs.id()));
    let script = format!(
        "read go; i=0; while [ $i -lt {PROGRAMS} ]; do /bin/true; i=$((i+1)); done; echo over; \
         read go"
    );
    let shell = |uid, script: &str| {
        let mut shell = machine.command(uid, Path::new("/bin/sh"));
        shell.arg("-c").arg(script).arg(&becomes);
        let mut shell = Mortal::spawn(shell.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let input = shell.0.stdin.take().expect("it is piped");
        let output = BufReader::new(shell.0.stdout.take().expect("it is piped"));
        (as_itself(shell, "sh"), input, output)
    };
    // What another user begins beyond some number in a second is not told at all.
    let (storm, mut go, mut output) = shell(ROOT, &script);
    let (hers, mut becoming, _) = shell(ALICE, "read go; exec \"$0\" 1000");
    let [mut alice, mut root] = [ALICE, ROOT].map(|uid| machine.client(uid));
    root.done(&format!("track {} children", storm.id()));
    alice.done(&format!("track {}", hers.id()));
    assert_eq!(alice.told("statistics")["own-tasks"], 1);

    machine.signal(libc::SIGSTOP);
    writeln!(go, "go").unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "over\n");
    writeln!(becoming, "go").unwrap();
    eventually("the set-user-ID program", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", hers.id())).ok()?;
        let is_roots = status.contains(&format!("\nUid:\t{ALICE}\t0\t"));
        is_roots.then_some(())
    });
    machine.signal(libc::SIGCONT);

    eventually("lost events", || (lost(port)? > 0).then_some(()));
    eventually("a ledger without hers", || {
        (alice.told("statistics")["own-tasks"] == 0).then_some(())
    });
    assert!(is_ordinary(hers.id()));
    drop((storm, go));
    eventually("none but Bob's", || {
        (root.told("statistics")["threads"] == 1).then_some(())
    });
    assert!(is_reserved(bobs.id()));
    // It goes on.
    let later = machine.sleeper(ALICE);
    alice.done(&format!("reserve {} {TENTH}", later.id()));
}

#[test]
fn the_service_reads_nothing_of_processes_that_no_rule_names() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("scan = \"20ms\"\n[[rule]]\nprogram = \"of-no-process\"\n");
    machine.start();
    let sleepers: Vec<_> = (0..SLEEPERS).map(|_| machine.sleeper(ALICE)).collect();
    let reads = || -> u128 {
        let io = std::fs::read_to_string(format!("/proc/{}/io", machine.service_pid()));
        let io = io.unwrap();
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
