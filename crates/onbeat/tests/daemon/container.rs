//! A container of Podman's: what runs in it reaches the service by the bus's socket, and is known by
//! the container.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Mortal, can_run, eventually};
use crate::machine::{ALICE, Machine, ROOT, is_reserved, tids};
use crate::realtimekit::listed;

/// Folders of the machine that a program needs, where it has them.
const FOLDERS: [&str; 4] = ["/usr", "/bin", "/lib", "/lib64"];

/// Podman in a namespace of its own, where it sees no hybrid of both versions of cgroups: it wants
/// either.
fn podman(machine: &Machine) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c"])
        .arg("umount /sys/fs/cgroup/unified 2>/dev/null; exec podman \"$@\"")
        .arg("podman")
        .arg("--root")
        .arg(machine.path("storage"))
        .arg("--runroot")
        .arg(machine.path("run"))
        .arg("--storage-driver=vfs");
    command
}

/// `onbeat run` for Alice's workload in a container with the bus's socket in it.
fn run_in_container(machine: &Machine, flags: &[&str]) -> Command {
    let rootfs = machine.path("rootfs");
    for folder in FOLDERS {
        let place = rootfs.join(folder.trim_start_matches('/'));
        std::fs::create_dir_all(place).expect("there is room for a folder");
    }
    let mut command = podman(machine);
    command
        .args([
            "run",
            "--rm",
            "--network=none",
            "--ulimit=nofile=512:512",
            "--ulimit=nproc=500:500",
        ])
        .arg(format!("--user={ALICE}:{ALICE}"))
        .arg(format!(
            "--env=DBUS_SYSTEM_BUS_ADDRESS={}",
            machine.address()
        ))
        .args(flags);
    for folder in FOLDERS {
        command.arg(format!("--volume={folder}:{folder}:ro"));
    }
    let (folder, onbeat) = (machine.path(""), Path::new(env!("CARGO_BIN_EXE_onbeat")));
    command
        .arg(format!("--volume={0}:{0}", folder.display()))
        .arg(format!("--volume={}:/onbeat:ro", onbeat.display()))
        .arg("--rootfs")
        .arg(rootfs)
        .args(["/onbeat", "run", "--service", "--"])
        .arg(machine.path("workload"))
        .arg("beat:20000/1000")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Podman while its container runs, which would outlive it.
struct Container(Mortal);

impl Drop for Container {
    fn drop(&mut self) {
        self.0.signal(libc::SIGTERM);
        self.0.status();
    }
}

/// Whether Podman can start a container here; says so otherwise.
fn can_contain(machine: &Machine, test: &str) -> bool {
    if !can_run(test) {
        return false;
    }
    let output = podman(machine).args(["info"]).output();
    let is_there = output.is_ok_and(|output| output.status.success());
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "{test} needs podman, in CI too"
    );
    if !is_there {
        println!("skipped: {test}: there is no podman");
    }
    is_there
}

#[test]
fn a_program_in_a_container_is_served_through_the_mounted_socket_and_known_by_the_container() {
    let test = "a_program_in_a_container_is_served_through_the_mounted_socket";
    let machine = Machine::new();
    if !can_contain(&machine, test) {
        return;
    }
    let id_file = machine.path("id");
    let flag = format!("--cidfile={}", id_file.display());
    let mut command = run_in_container(&machine, &["--pid=host", &flag]);
    let errors = machine.path("errors");
    command.stderr(std::fs::File::create(&errors).expect("there is room for a file"));
    let mut container = Container(Mortal::spawn(&mut command));
    let mut root = machine.client(ROOT);
    let one = eventually("a reservation", || {
        let said = std::fs::read_to_string(&errors).unwrap_or_default();
        let ended = container.0.0.try_wait().expect("it is our child");
        assert!(ended.is_none(), "{said}{}", machine.log());
        let threads = root.told("list");
        let mut threads = threads.as_array()?.iter();
        threads.find(|one| one["state"] == "kept").cloned()
    });
    let tid = u32::try_from(one["thread"].as_u64().unwrap()).unwrap();
    assert!(is_reserved(tid));
    assert_eq!(one["user"], ALICE);
    let id = std::fs::read_to_string(&id_file).expect("podman has written it");
    assert_eq!(one["container"], id.trim(), "{one}");
    // It ends with the container.
    let process = u32::try_from(one["process"].as_u64().unwrap()).unwrap();
    drop(container);
    eventually("the end", || tids(process).is_empty().then_some(()));
    eventually("its being forgotten", || {
        listed(&mut root, tid).is_none().then_some(())
    });
}

#[test]
fn a_container_with_process_numbers_of_its_own_is_told_so() {
    let test = "a_container_with_process_numbers_of_its_own_is_told_so";
    let machine = Machine::new();
    if !can_contain(&machine, test) {
        return;
    }
    let output = run_in_container(&machine, &[])
        .output()
        .expect("it is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("process numbers of its own: start the container"),
        "{said}"
    );
    assert_eq!(
        machine.client(ROOT).told("list").as_array().map(Vec::len),
        Some(0)
    );
}
