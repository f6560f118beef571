//! The unit of systemd: it is one, and the service works in what it is shut off from, as far as
//! that can be had without systemd as the machine's first process.

use std::process::Command;

use crate::capabilities::of_the_unit;
use crate::common::{needs_root, skip};
use crate::machine::{ALICE, Machine, is_ordinary, reserved_thread};
use crate::own_state::state_files;

const UNIT: &str = include_str!("../../../../packaging/systemd/onbeat.service");
const GUARD: &str = include_str!("../../../../packaging/systemd/onbeat-guard.service");

/// A tenth of a CPU.
const TENTH: &str = "1000000 10000000 10000000";

/// The score by systemd-analyze for both units: whether it is content, and its output. None if it
/// is not here.
fn analysed(arguments: &[&str]) -> Option<(bool, String)> {
    let folder = tempfile::tempdir().unwrap();
    let units = [("onbeat.service", UNIT), ("onbeat-guard.service", GUARD)];
    let paths = units.map(|(name, text)| {
        let path = folder.path().join(name);
        // The program is where it will be installed; here it is somewhere else.
        let text = text.replace("/usr/bin/onbeat", env!("CARGO_BIN_EXE_onbeat"));
        std::fs::write(&path, text).unwrap();
        path
    });
    let mut command = Command::new("systemd-analyze");
    match command.args(arguments).args(&paths).output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            Some((output.status.success(), said))
        }
        Err(error) => {
            skip(&format!("systemd-analyze: {error}"));
            None
        }
    }
}

#[test]
fn systemd_takes_the_units() {
    let arguments = ["verify", "--man=no", "--recursive-errors=no"];
    if let Some((is_content, said)) = analysed(&arguments) {
        assert!(is_content && said.is_empty(), "{said}");
    }
}

#[test]
fn systemd_rates_the_exposure_of_each_unit_at_1_5_or_less() {
    // In tenths.
    let arguments = ["security", "--offline=true", "--threshold=15"];
    if let Some((is_content, said)) = analysed(&arguments) {
        assert!(is_content, "{said}");
        let rated = said.matches("Overall exposure level").count();
        assert_eq!(rated, 2, "{said}");
    }
}

#[test]
fn the_guard_restores_once_the_service_is_stopped_for_good() {
    let has = |unit: &str, line: &str| unit.lines().any(|one| one == line);
    // systemd stops the guard when no unit wants it: not in a restart, nor between a crash and the
    // next start. tests/packages/in-sandbox.sh shows it.
    assert!(has(UNIT, "Wants=dbus.socket onbeat-guard.service"));
    assert!(has(UNIT, "After=dbus.socket onbeat-guard.service"));
    assert!(has(UNIT, "ExecStart=/usr/bin/onbeat daemon --hand-over"));
    assert!(has(GUARD, "StopWhenUnneeded=yes"));
    assert!(has(GUARD, "ExecStop=/usr/bin/onbeat restore --quiet"));
    for line in [
        "Environment=ONBEAT_STATE_DIR=/run/onbeat",
        "RuntimeDirectoryPreserve=yes",
    ] {
        assert!(has(UNIT, line) && has(GUARD, line), "{line}");
    }
}

#[test]
fn to_have_the_unit_reload_a_configuration_with_a_mistake_fails_with_its_line() {
    needs_root!();
    let machine = Machine::new();
    let reload = UNIT.lines().find_map(|l| l.strip_prefix("ExecReload="));
    let words: Vec<&str> = reload.unwrap().split(' ').collect();
    let reload = || {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        let output = command
            .env("DBUS_SYSTEM_BUS_ADDRESS", machine.address())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    assert_eq!(reload(), (true, String::new()));
    machine.configure("scan = \"eternity\"\n");
    let (success, said) = reload();
    assert!(
        !success && said.contains("onbeat.toml:1: 'eternity' is no length of time: write"),
        "{said}"
    );
}

/// The unit's settings, and their effect, in this order: only what is mounted before stays
/// writable. $0 is the state folder, $1 one for devices.
const SANDBOX: [(&str, &str); 7] = [
    (
        "ProtectProc=invisible",
        "mount -t proc -o hidepid=invisible proc /proc",
    ),
    (
        "ProtectKernelTunables=yes",
        "f=/proc/sys/kernel/sched_rt_runtime_us && mount --bind /proc/sys /proc/sys && \
         mount --bind $f $f && mount -o remount,bind,ro /proc/sys && cat $f > $f && \
         ! test -w /proc/sys/kernel/core_pattern",
    ),
    (
        "PrivateDevices=yes",
        "mount -t tmpfs none \"$1\" && for one in null zero full random urandom; do \
         : > \"$1/$one\" && mount --bind /dev/$one \"$1/$one\"; done && mount --rbind \"$1\" /dev",
    ),
    (
        "ProtectHome=yes",
        "mount -t tmpfs -o ro none /root && mount -t tmpfs -o ro none /home",
    ),
    (
        "ProtectControlGroups=yes",
        "mount -o remount,bind,ro /sys/fs/cgroup",
    ),
    ("ProtectSystem=strict", "mount -o remount,bind,ro /"),
    ("UMask=0077", "umask 0077"),
];

#[test]
fn the_service_works_in_the_sandbox_of_its_unit() {
    needs_root!();
    let mut machine = Machine::bus();
    machine.configure("");
    let (state, devices) = (machine.state(), machine.path("devices"));
    for folder in [&state, &devices] {
        std::fs::create_dir(folder).unwrap();
    }
    let mut script = "mount --bind \"$0\" \"$0\"".to_owned();
    for (named, done) in SANDBOX {
        assert!(UNIT.lines().any(|line| line == named), "{named}");
        script.push_str(" && ");
        script.push_str(done);
    }
    script.push_str(" && touch \"$0/here\" && rm \"$0/here\" && shift && exec \"$@\"");
    for named in [
        "PrivateNetwork=yes",
        "NoNewPrivileges=yes",
        "ReadWritePaths=/proc/sys/kernel/sched_rt_runtime_us",
    ] {
        assert!(UNIT.lines().any(|line| line == named), "{named}");
    }
    let bounding = of_the_unit()
        .iter()
        .fold("-all".to_owned(), |set, one| format!("{set},+{one}"));
    let mut sandbox = Command::new("unshare");
    sandbox
        .args(["--mount", "--net", "sh", "-c", &script])
        .args([&state, &devices])
        .args(["setpriv", "--no-new-privs", "--bounding-set", &bounding]);
    assert!(machine.start_through(&mut sandbox), "{}", machine.log());

    let (sleeper, workload) = (
        machine.sleeper(ALICE),
        machine.workload(ALICE, &["beat:20000/1000"]),
    );
    let mut alice = machine.client(ALICE);
    alice.done(&format!("reserve {} {TENTH}", sleeper.id()));
    alice.done(&format!("track {}", workload.id()));
    let thread = reserved_thread(workload.id());
    assert_eq!(machine.end(libc::SIGTERM), Some(0), "{}", machine.log());
    assert!(is_ordinary(sleeper.id()) && is_ordinary(thread));
    assert_eq!(state_files(&state), 0);
}
