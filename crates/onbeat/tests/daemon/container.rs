//! A container of Podman's: a program in it reaches the service by the bus's socket, and is known
//! by the container.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Mortal, eventually, needs_root, skip};
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
fn can_contain(machine: &Machine) -> bool {
    let output = podman(machine).args(["info"]).output();
    let is_there = output.is_ok_and(|output| output.status.success());
    if !is_there {
        skip("there is no podman");
    }
    is_there
}

#[test]
fn a_program_in_a_container_is_served_through_the_mounted_socket_and_known_by_the_container() {
    needs_root!();
    let machine = Machine::new();
    if !can_contain(&machine) {
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
    needs_root!();
    let machine = Machine::new();
    if !can_contain(&machine) {
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

/// A control group whose tasks may use 5 ms in each 100 ms together.
struct Limited(PathBuf);

impl Limited {
    /// In whichever version of cgroups is here; none if it has no such limit.
    fn new() -> Option<Self> {
        let name = format!("onbeat-test-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/cpu");
        let (folder, limits) = if first.join("cpu.cfs_quota_us").exists() {
            let limits = [
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "5000"),
            ];
            (first.join(name), limits.to_vec())
        } else {
            let second = Path::new("/sys/fs/cgroup");
            std::fs::write(second.join("cgroup.subtree_control"), "+cpu").ok()?;
            (second.join(name), vec![("cpu.max", "5000 100000")])
        };
        std::fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        for (file, limit) in limits {
            std::fs::write(group.0.join(file), limit).ok()?;
        }
        Some(group)
    }

    fn add(&self, pid: u32) {
        let written = std::fs::write(self.0.join("cgroup.procs"), pid.to_string());
        written.expect("we are root");
    }

    /// How often its tasks had to wait because the limit was reached.
    fn throttled(&self) -> u64 {
        let text = std::fs::read_to_string(self.0.join("cpu.stat")).expect("it is there");
        let count = text
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled "));
        count
            .expect("there is a limit")
            .parse()
            .expect("it is a number")
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // Its processes have ended; the kernel may need a moment more.
        eventually("an empty group", || std::fs::remove_dir(&self.0).ok());
    }
}

/// The CPU time of a thread, in nanoseconds.
fn cpu_time(tid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{tid}/schedstat"));
    let text = text.expect("the thread lives");
    let time = text.split(' ').next().expect("a line has words");
    time.parse().expect("it is a number")
}

#[test]
fn a_limit_of_a_group_throttles_a_periodic_thread_but_none_with_a_reservation() {
    needs_root!();
    let machine = Machine::new();
    let Some(group) = Limited::new() else {
        return skip("control groups have no limit of CPU time here");
    };
    // A fifth of a CPU, of which the group's limit is a quarter.
    let workload = machine.workload(ALICE, &["beat:20000/4000"]);
    group.add(workload.id());
    let tid = *tids(workload.id()).last().expect("it has a thread");
    eventually("a thread that is throttled", || {
        (group.throttled() > 2).then_some(())
    });
    let mut alice = machine.client(ALICE);
    alice.done(&format!("reserve {tid} 6000000 20000000 20000000"));
    // As much CPU time as the limit gives in 4 s, without a single wait. The period in which the
    // reservation began is counted at its end, so the first attempt may see that.
    let before = eventually("CPU time without a wait", || {
        let (throttled, used) = (group.throttled(), cpu_time(tid));
        let has_run = || (cpu_time(tid) > used + 200_000_000).then_some(());
        eventually("CPU time", has_run);
        (group.throttled() == throttled).then_some(throttled)
    });
    assert!(is_reserved(tid));
    alice.done(&format!("release {tid}"));
    eventually("the limit", || (group.throttled() > before).then_some(()));
    drop(workload);
}
