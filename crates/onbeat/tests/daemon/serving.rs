//! The service's statements about itself: its interfaces, by introspection, and that it lives, to
//! systemd.

use std::collections::BTreeSet;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use crate::PATIENCE;
use crate::common::needs_root;
use crate::machine::{ALICE, Machine};

const DOCUMENTED: &str = include_str!("../../../../docs/bus.md");

fn attribute<'a>(tag: &'a str, name: &str) -> &'a str {
    let found = tag.split_once(&format!("{name}=\""));
    found
        .and_then(|(_, rest)| rest.split('"').next())
        .unwrap_or("")
}

/// The methods or signals of an interface, as the documentation writes them; each must be explained
/// where it is introspected.
fn offered(interface: &str, kind: &str) -> BTreeSet<String> {
    let opening = format!("<{kind} name=\"");
    let mut offered = BTreeSet::new();
    let mut before = "";
    for (place, piece) in interface.split(&opening).enumerate() {
        if place > 0 {
            let name = piece.split('"').next().unwrap_or("");
            assert!(
                before.trim_end().ends_with("-->"),
                "{name} is not explained"
            );
            let body = piece.split(&format!("</{kind}>")).next().unwrap_or("");
            let taken = body
                .split("<arg ")
                .skip(1)
                .filter(|tag| attribute(tag, "direction") != "out");
            let taken: Vec<String> = taken
                .map(|tag| format!("{} {}", attribute(tag, "type"), attribute(tag, "name")))
                .collect();
            offered.insert(format!("{name}({})", taken.join(", ")));
        }
        before = piece;
    }
    offered
}

#[test]
fn what_is_introspected_is_explained_there_and_is_what_is_documented() {
    needs_root!();
    let machine = Machine::new();
    let mut command = machine.command(ALICE, Path::new("dbus-send"));
    let output = command
        .args([
            "--system",
            "--print-reply=literal",
            "--dest=org.onbeat.Manager1",
        ])
        .arg("/org/onbeat/Manager1")
        .arg("org.freedesktop.DBus.Introspectable.Introspect")
        .output()
        .expect("it is there");
    let xml = String::from_utf8_lossy(&output.stdout);
    for name in ["org.onbeat.Manager1", "org.onbeat.Monitor1"] {
        let (_, interface) = xml
            .split_once(&format!("<interface name=\"{name}\">"))
            .unwrap_or_else(|| panic!("{name} is not in {xml}"));
        let interface = interface.split("</interface>").next().unwrap_or("");
        let methods = offered(interface, "method");
        assert!(!methods.is_empty(), "{xml}");
        for one in methods.iter().chain(&offered(interface, "signal")) {
            assert!(DOCUMENTED.contains(&format!("`{one}")), "{one}");
        }
        let (_, section) = DOCUMENTED
            .split_once(&format!("## {name}\n"))
            .expect("it has a section");
        let rows = section.split("\n## ").next().unwrap_or("").lines();
        let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split(" | ").next());
        let named = cells.flat_map(|cell| cell.split("`, `"));
        let named: BTreeSet<String> = named
            .map(|one| one.split(" -> ").next().unwrap_or("").trim_end_matches('`'))
            .map(str::to_owned)
            .collect();
        assert_eq!(named, methods);
    }
}

#[test]
fn systemd_is_told_that_the_service_is_ready_and_lives_and_ends() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("");
    let path = machine.path("notify");
    let systemd = UnixDatagram::bind(&path).expect("there is room for a socket");
    systemd
        .set_read_timeout(Some(PATIENCE))
        .expect("it is our own");
    let told = || {
        let mut word = [0; 256];
        let length = systemd.recv(&mut word).expect("it is told in the end");
        String::from_utf8_lossy(&word[..length])
            .trim_end()
            .to_owned()
    };
    let mut command = Command::new("env");
    command
        .arg("--")
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "500000");
    assert!(machine.start_through(&mut command), "{}", machine.log());
    assert_eq!(told(), "READY=1");
    for _ in 0..3 {
        assert_eq!(told(), "WATCHDOG=1");
    }
    machine.signal(libc::SIGTERM);
    let last = std::iter::repeat_with(told).find(|word| word != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("STOPPING=1"));
    // It has its signal.
    assert_eq!(machine.end(0), Some(0), "{}", machine.log());
}
