//! The service's statements about itself: its interfaces, by introspection, and that it lives, to
//! systemd.

use std::collections::BTreeSet;
use std::os::unix::net::UnixDatagram;

use crate::prelude::*;

const DOCUMENTED: &str = include_str!("../../../../docs/bus.md");

/// A method or signal as the documentation writes it, `Name(TYPE name, TYPE name) -> ...`: its name
/// and the types of what it takes.
fn signature(documented: &str) -> Option<(String, String)> {
    let (name, rest) = documented.split_once('(')?;
    let arguments = rest.split(')').next()?.split(", ");
    let types = arguments.filter_map(|one| one.split(' ').next());
    Some((name.to_owned(), types.collect()))
}

#[test]
fn what_is_introspected_is_what_is_documented() {
    let machine = Machine::new();
    for name in ["org.onbeat.Manager1", "org.onbeat.Monitor1"] {
        let output = machine
            .command(ALICE, Path::new("busctl"))
            .arg(format!("--address={}", machine.address()))
            .args(["--no-legend", "introspect", "org.onbeat.Manager1"])
            .args(["/org/onbeat/Manager1", name])
            .output()
            .unwrap();
        let rows = stdout(&output)
            .lines()
            .map(|row| row.split_whitespace().collect::<Vec<_>>());
        let of = |kind: &str| -> BTreeSet<(String, String)> {
            let own = rows.clone().filter(|row| row[1] == kind);
            own.map(|row| (row[0].replace('.', ""), row[2].replace('-', "")))
                .collect()
        };
        let (_, section) = DOCUMENTED.split_once(&format!("## {name}\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let cells = section
            .lines()
            .filter_map(|row| row.strip_prefix("| `")?.split(" | ").next());
        let methods = cells
            .flat_map(|cell| cell.split("`, `"))
            .filter_map(signature);
        assert_eq!(of("method"), methods.collect());
        for (signal, _) in of("signal") {
            has(DOCUMENTED, &[format!("`{signal}(")]);
        }
    }
}

#[test]
fn systemd_is_told_that_the_service_is_ready_and_lives_and_ends() {
    let mut machine = Machine::bus();
    machine.configure("");
    let path = machine.path("notify");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd.set_read_timeout(Some(PATIENCE)).unwrap();
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
