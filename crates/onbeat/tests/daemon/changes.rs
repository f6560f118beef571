//! Every change is told: on the bus to the clients that it concerns, and in the log with action,
//! reason, old and new value.

use std::os::unix::net::UnixDatagram;

use crate::prelude::*;

#[test]
fn those_who_subscribe_are_told_of_their_own_threads_and_root_of_everybodys() {
    let machine = Machine::new();
    let (alices, bobs) = (machine.sleeper(ALICE), machine.sleeper(BOB));
    let (hers, his) = (alices.id(), bobs.id());
    let [mut alice, mut bob, mut root] = [ALICE, BOB, ROOT].map(|uid| machine.client(uid));
    for client in [&mut alice, &mut bob, &mut root] {
        client.done("subscribe");
    }
    alice.reserve(hers);
    alice.done(&format!("reserve {hers} 500000 10000000 20000000"));
    assert_eq!(times(hers), (500_000, 10_000_000, 20_000_000));
    alice.done(&format!("release {hers}"));
    bob.reserve(his);
    let nothing = [0, 0, 0];
    let tenth = [1_000_000, 10_000_000, 10_000_000];
    let less = [500_000, 10_000_000, 20_000_000];
    let expected = [
        (hers, "reserved", nothing, tenth),
        (hers, "changed", tenth, less),
        (hers, "released", less, nothing),
        (his, "reserved", nothing, tenth),
    ];
    for (client, changes) in [
        (&mut root, &expected[..]),
        (&mut alice, &expected[..3]),
        (&mut bob, &expected[3..]),
    ] {
        for (thread, what, old, new) in changes {
            let mut told = client.told("change");
            let why = told["why"].take();
            assert!(why.as_str().is_some_and(|why| !why.is_empty()));
            let change =
                json!({"thread": thread, "what": what, "why": null, "old": old, "new": new});
            assert_eq!(told, change);
        }
    }
    assert_eq!(alice.refused(&format!("release {hers}")), "NotHeld");
}

#[test]
fn a_thread_that_somebody_else_changes_is_left_to_him_and_that_is_said_once() {
    let machine = Machine::new();
    let sleeper = machine.sleeper(ALICE);
    let tid = sleeper.id();
    let mut alice = machine.client(ALICE);
    alice.done("subscribe");
    alice.reserve(tid);
    assert_eq!(alice.told("change")["what"], "reserved");
    let by_hand = ordinary(7, false);
    by_hand.set(tid).unwrap();
    let told = alice.told("change");
    assert_eq!(told["what"], "taken-over", "{told}");
    assert_eq!(told["new"], json!([0, 0, 0]), "{told}");
    let again = format!("reserve {tid} {TENTH}");
    assert_eq!(alice.refused(&again), "TakenOver");
    assert_eq!(Attributes::get(tid).unwrap(), by_hand);
    assert_eq!(machine.said(&format!("({tid}): taken-over")), 1);
}

/// Whether an entry of the journal, in its own format, has this: a name, the value's length and the
/// value.
fn tells(entry: &[u8], name: &str, value: &str) -> bool {
    let length = (value.len() as u64).to_le_bytes();
    let field = [name.as_bytes(), b"\n", &length, value.as_bytes(), b"\n"].concat();
    entry.windows(field.len()).any(|part| part == field)
}

#[test]
fn the_journal_gets_what_was_changed_why_and_what_was_before_and_is_now() {
    let mut machine = Machine::bus();
    machine.configure("");
    let folder = machine.folder("journal");
    let journal = UnixDatagram::bind(folder.join("socket")).unwrap();
    journal.set_read_timeout(Some(PATIENCE)).unwrap();
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
    until("the service", || alice.ask("statistics").contains("uptime"));
    alice.reserve(tid);
    alice.done(&format!("reserve {tid} 500000 10000000 20000000"));
    alice.done(&format!("release {tid}"));
    let (tenth, less) = ("1 ms every 10 ms", "500 us within 10 ms every 20 ms");
    for (what, old, new) in [
        ("reserved", "nothing", tenth),
        ("changed", tenth, less),
        ("released", less, "nothing"),
    ] {
        let mut entry = vec![0; 1 << 16];
        while !tells(&entry, "F_WHAT", what) {
            entry.resize(1 << 16, 0);
            let length = journal.recv(&mut entry).expect("it is told in the end");
            entry.truncate(length);
        }
        for (name, value) in [
            ("F_TID", &*tid.to_string()),
            ("F_PID", &tid.to_string()),
            ("F_COMM", "sleep"),
            ("F_OLD", old),
            ("F_NEW", new),
        ] {
            assert!(tells(&entry, name, value), "{name}: {entry:?}");
        }
        let text = String::from_utf8_lossy(&entry);
        has(text, &["F_WHY", "SYSLOG_IDENTIFIER"]);
    }
    assert!(!is_reserved(tid));
}
