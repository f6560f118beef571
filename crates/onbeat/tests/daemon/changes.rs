//! Every change is told: on the bus to the clients that it concerns, and in the log with action,
//! reason, old and new value.

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use onbeat_act::attributes::{Attributes, Fair, Policy};
use serde_json::{Value, json};

use crate::common::{eventually, needs_root};
use crate::machine::{ALICE, BOB, Machine, ROOT, is_reserved};

/// A tenth of a CPU.
const TENTH: &str = "1000000 10000000 10000000";

fn ordinary(nice: i32) -> Attributes {
    Attributes {
        policy: Policy::Other(Fair { nice, slice_ns: 0 }),
        reset_on_fork: false,
    }
}

#[test]
fn those_who_subscribe_are_told_of_their_own_threads_and_root_of_everybodys() {
    needs_root!();
    let machine = Machine::new();
    let (alices, bobs) = (machine.sleeper(ALICE), machine.sleeper(BOB));
    let [mut alice, mut bob, mut root] = [ALICE, BOB, ROOT].map(|uid| machine.client(uid));
    for client in [&mut alice, &mut bob, &mut root] {
        client.done("subscribe");
    }
    alice.done(&format!("reserve {} {TENTH}", alices.id()));
    alice.done(&format!("reserve {} 500000 10000000 20000000", alices.id()));
    alice.done(&format!("release {}", alices.id()));
    bob.done(&format!("reserve {} {TENTH}", bobs.id()));
    let (nothing, tenth, less) = (
        json!([0, 0, 0]),
        json!([1_000_000, 10_000_000, 10_000_000]),
        json!([500_000, 10_000_000, 20_000_000]),
    );
    let expected = [
        (alices.id(), "reserved", &nothing, &tenth),
        (alices.id(), "changed", &tenth, &less),
        (alices.id(), "released", &less, &nothing),
        (bobs.id(), "reserved", &nothing, &tenth),
    ];
    let is = |told: &Value, (thread, what, old, new): (u32, &str, &Value, &Value)| {
        assert_eq!(
            (&told["thread"], &told["what"]),
            (&json!(thread), &json!(what)),
            "{told}"
        );
        assert_eq!((&told["old"], &told["new"]), (old, new), "{told}");
        assert!(
            told["why"].as_str().is_some_and(|why| !why.is_empty()),
            "{told}"
        );
    };
    for change in expected {
        is(&root.told("change"), change);
    }
    for change in &expected[..3] {
        is(&alice.told("change"), *change);
    }
    is(&bob.told("change"), expected[3]);
}

#[test]
fn a_thread_that_somebody_else_changes_is_left_to_him_and_that_is_said_once() {
    needs_root!();
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let tid = sleeper.id();
    let mut alice = machine.client(ALICE);
    alice.done("subscribe");
    alice.done(&format!("reserve {tid} {TENTH}"));
    assert_eq!(alice.told("change")["what"], "reserved");
    let by_hand = ordinary(7);
    by_hand.set(tid).unwrap();
    let told = alice.told("change");
    assert_eq!(told["what"], "taken-over", "{told}");
    assert_eq!(told["new"], json!([0, 0, 0]), "{told}");
    assert_eq!(
        alice.refused(&format!("reserve {tid} {TENTH}")),
        "TakenOver"
    );
    assert_eq!(Attributes::get(tid).unwrap(), by_hand);
    let log = machine.log();
    let said = log
        .lines()
        .filter(|line| line.contains(&format!("({tid}): taken-over")));
    assert_eq!(said.count(), 1, "{log}");
}

/// One entry of the journal, in its own format: a name, "=" and a value; or a name, the value's
/// length and the value.
fn fields(mut entry: &[u8]) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    while let Some(end) = entry.iter().position(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(&entry[..end]).into_owned();
        entry = &entry[end + 1..];
        if let Some((name, value)) = line.split_once('=') {
            fields.push((name.to_owned(), value.to_owned()));
            continue;
        }
        let (length, rest) = entry.split_at(8);
        let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
        fields.push((line, String::from_utf8_lossy(&rest[..length]).into_owned()));
        entry = &rest[length + 1..];
    }
    fields
}

/// All entries that a journal of the test's own has got.
struct Journal(UnixDatagram, Vec<Vec<(String, String)>>);

impl Journal {
    fn entries(&mut self) -> &[Vec<(String, String)>] {
        let mut entry = vec![0; 1 << 16];
        while let Ok(length) = self.0.recv(&mut entry) {
            self.1.push(fields(&entry[..length]));
        }
        &self.1
    }
}

#[test]
fn the_journal_gets_what_was_changed_why_and_what_was_before_and_is_now() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("");
    let folder = machine.path("journal");
    std::fs::create_dir(&folder).unwrap();
    let socket = UnixDatagram::bind(folder.join("socket")).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut journal = Journal(socket, Vec::new());
    // To the service alone, the socket is where the journal's is.
    let script = "mount -t tmpfs none /run && mkdir -p /run/systemd && \
                  ln -s \"$0\" /run/systemd/journal && exec \"$@\"";
    let mut started = Command::new("unshare");
    started
        .args(["--mount", "sh", "-c", script])
        .arg(&folder)
        .env("JOURNAL_STREAM", "8:1");
    machine.start_unheard(&mut started);
    let sleeper = machine.sleeper(ALICE);
    let tid = sleeper.id();
    let mut alice = machine.client(ALICE);
    eventually("the service", || {
        alice.ask("statistics").contains("uptime").then_some(())
    });
    alice.done(&format!("reserve {tid} {TENTH}"));
    alice.done(&format!("reserve {tid} 500000 10000000 20000000"));
    alice.done(&format!("release {tid}"));
    let expected = [
        ("reserved", "nothing", "1 ms every 10 ms"),
        (
            "changed",
            "1 ms every 10 ms",
            "500 us within 10 ms every 20 ms",
        ),
        ("released", "500 us within 10 ms every 20 ms", "nothing"),
    ];
    for (what, old, new) in expected {
        let entry = eventually(what, || {
            let entries = journal.entries();
            let of = |entry: &&Vec<(String, String)>| {
                entry.contains(&("F_WHAT".to_owned(), what.to_owned()))
            };
            entries.iter().find(of).cloned()
        });
        let field = |name: &str| {
            let found = entry.iter().find(|(own, _)| own == name);
            found.map_or("", |(_, value)| value)
        };
        assert_eq!(field("F_TID"), tid.to_string(), "{entry:?}");
        assert_eq!(field("F_PID"), tid.to_string(), "{entry:?}");
        assert_eq!(field("F_COMM"), "sleep", "{entry:?}");
        assert_eq!((field("F_OLD"), field("F_NEW")), (old, new), "{entry:?}");
        assert!(!field("F_WHY").is_empty(), "{entry:?}");
        assert_eq!(field("SYSLOG_IDENTIFIER"), "onbeat", "{entry:?}");
    }
    assert!(!is_reserved(tid));
}
