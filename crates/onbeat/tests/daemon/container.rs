//! A container of Podman's: a program in it reaches the service by the bus's socket, and is known
//! by the container.

use crate::prelude::*;

/// Folders of the machine that a program needs, where it has them.
const FOLDERS: [&str; 4] = ["/usr", "/bin", "/lib", "/lib64"];

/// Podman in a namespace of its own, where it sees no hybrid of both versions of cgroups: it wants
/// either.
fn podman(machine: &Machine) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c"])
        .arg("umount /sys/fs/cgroup/unified 2>/dev/null; exec podman \"$@\"")
        .args(["podman", "--storage-driver=vfs", "--root"])
        .arg(machine.path("storage"))
        .arg("--runroot")
        .arg(machine.path("run"));
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

/// `onbeat run` for Alice's workload in a container with the bus's socket in it.
fn start(machine: &Machine) -> Container {
    let rootfs = machine.path("rootfs");
    let mut command = podman(machine);
    command
        .args(["run", "--rm", "--network=none", "--pid=host"])
        .args(["--ulimit=nofile=512:512", "--ulimit=nproc=500:500"])
        .arg(format!("--cidfile={}", machine.path("id").display()))
        .arg(format!("--user={ALICE}:{ALICE}"))
        .arg(format!(
            "--env=DBUS_SYSTEM_BUS_ADDRESS={}",
            machine.address()
        ));
    for folder in FOLDERS {
        fs::create_dir_all(rootfs.join(&folder[1..])).unwrap();
        command.arg(format!("--volume={folder}:{folder}:ro"));
    }
    let (folder, onbeat) = (machine.path(""), env!("CARGO_BIN_EXE_onbeat"));
    command
        .arg(format!("--volume={0}:{0}", folder.display()))
        .arg(format!("--volume={onbeat}:/onbeat:ro"))
        .arg("--rootfs")
        .arg(rootfs)
        .args(["/onbeat", "run", "--service", "--"])
        .arg(machine.path("workload"))
        .arg("beat:20000/1000")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(machine.file("errors"));
    Container(Mortal::spawn(&mut command))
}

#[test]
fn a_program_in_a_container_is_served_through_the_mounted_socket_and_known_by_the_container() {
    let machine = Machine::new();
    let info = podman(&machine).args(["info"]).output();
    if !info.is_ok_and(|output| output.status.success()) {
        return skip("there is no podman");
    }
    let mut container = start(&machine);
    let mut root = machine.client(ROOT);
    let one = eventually("a reservation", || {
        let said = fs::read_to_string(machine.path("errors")).unwrap_or_default();
        let ended = container.0.0.try_wait().unwrap();
        assert!(ended.is_none(), "{said}{}", machine.log());
        root.list().into_iter().find(|one| one["state"] == "kept")
    });
    let [thread, process] = ["thread", "process"].map(|it| one[it].as_u64().unwrap() as u32);
    assert!(is_reserved(thread));
    assert_eq!(one["user"], ALICE);
    let id = fs::read_to_string(machine.path("id")).unwrap();
    assert_eq!(one["container"], id.trim(), "{one}");
    // It ends with the container.
    drop(container);
    until("the end", || tids(process).is_empty());
    until("its being forgotten", || root.listed(thread).is_none());
}
