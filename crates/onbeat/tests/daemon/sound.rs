//! Sound servers and portals as they are: they ask by RealtimeKit's protocol.

use std::path::Path;
use std::process::{Command, Stdio};

use onbeat_act::attributes::{Attributes, Policy};

use crate::common::{Mortal, can_run, eventually};
use crate::machine::{ALICE, Client, Machine, ROOT, as_itself, is_reserved, tids};
use crate::realtimekit::listed;

/// A thread of the process that has a rhythm and a reservation that follows it.
fn kept(client: &mut Client, process: u32) -> Option<u32> {
    let mut threads = tids(process).into_iter();
    threads.find(|&tid| {
        is_reserved(tid) && listed(client, tid).is_some_and(|one| one["state"] == "kept")
    })
}

#[test]
fn a_thread_that_a_portal_asks_for_is_kept_also_when_the_portal_is_gone() {
    if !can_run("a_thread_that_a_portal_asks_for_is_kept_also_when_the_portal_is_gone") {
        return;
    }
    let machine = Machine::new();
    let mut command = Command::new("prlimit");
    let program = machine.command(ALICE, &machine.path("workload"));
    command
        .arg("--rttime=150000:150000")
        .arg(program.get_program())
        .args(program.get_args())
        .arg("beat:20000/1000")
        .stdout(Stdio::null());
    let process = as_itself(Mortal::spawn(&mut command), "workload");
    let tid = eventually("its thread", || tids(process.id()).get(1).copied());
    // As xdg-desktop-portal does for a program in a sandbox, which is not on this bus.
    let mut portal = machine.client(ALICE);
    portal.done(&format!("realtime {} {tid} 15", process.id()));
    let mut root = machine.client(ROOT);
    eventually("a reservation that follows its rhythm", || {
        kept(&mut root, process.id())
    });
    portal.die();
    root.done("reload");
    eventually("the same", || kept(&mut root, process.id()));
}

/// Some thread of the process that RealtimeKit's protocol got something for, as soon as there is one.
fn raised_thread(machine: &Machine, process: &mut Mortal, errors: &Path) -> u32 {
    eventually("real-time scheduling", || {
        let ended = process.0.try_wait().expect("it is our child");
        let errors = std::fs::read_to_string(errors).unwrap_or_default();
        assert!(ended.is_none(), "{errors}\n{}", machine.log());
        tids(process.id()).into_iter().find(|&tid| {
            Attributes::get(tid)
                .is_ok_and(|now| matches!(now.policy, Policy::Deadline(_) | Policy::RoundRobin(_)))
        })
    })
}

/// A folder of Alice's, for what a sound server wants to keep.
pub(crate) fn home(machine: &Machine) -> std::path::PathBuf {
    let home = machine.path("home");
    std::fs::create_dir(&home).expect("there is room for a folder");
    std::os::unix::fs::chown(&home, Some(ALICE), Some(ALICE)).expect("we are root");
    home
}

#[test]
fn pulseaudio_with_a_null_sink_is_served() {
    if !can_run("pulseaudio_with_a_null_sink_is_served") {
        return;
    }
    let machine = Machine::new();
    let home = home(&machine);
    let errors = machine.path("errors");
    let mut command = machine.command(ALICE, Path::new("pulseaudio"));
    command
        .args([
            "-n",
            "--daemonize=no",
            "--realtime=yes",
            "--high-priority=yes",
            "--use-pid-file=no",
        ])
        .args(["--exit-idle-time=-1", "-L", "module-null-sink"])
        .args(["-L", "module-native-protocol-unix"])
        .env("HOME", &home)
        .env("XDG_RUNTIME_DIR", &home)
        .stderr(std::fs::File::create(&errors).expect("there is room for a file"));
    let mut server = Mortal::spawn(&mut command);
    let raised = raised_thread(&machine, &mut server, &errors);
    assert!(
        listed(&mut machine.client(ROOT), raised).is_some(),
        "{}",
        machine.log()
    );
    // Somebody plays silence, so that the sink has to be filled in time.
    let mut command = machine.command(ALICE, Path::new("pacat"));
    command
        .args(["--playback", "--raw", "--latency-msec=20", "/dev/zero"])
        .arg(format!("--server=unix:{}/pulse/native", home.display()))
        .env("HOME", &home)
        .env("XDG_RUNTIME_DIR", &home)
        .stderr(Stdio::null());
    let _player = Mortal::spawn(&mut command);
    let mut root = machine.client(ROOT);
    eventually("a reservation that follows the sink's rhythm", || {
        kept(&mut root, server.id())
    });
}

/// PipeWire with its real-time module and a sink that leads nowhere.
const PIPEWIRE: &str = r#"
context.properties = { core.daemon = true  core.name = onbeat-test  support.dbus = true }
context.spa-libs = { audio.convert.* = audioconvert/libspa-audioconvert  support.* = support/libspa-support }
context.modules = [
  { name = libpipewire-module-rt
    args = { nice.level = -11  rt.prio = 15  rlimits.enabled = false  rtportal.enabled = false  rtkit.enabled = true } }
  { name = libpipewire-module-protocol-native }
  { name = libpipewire-module-spa-node-factory }
]
context.objects = [
  { factory = spa-node-factory
    args = { factory.name = support.null-audio-sink  node.name = nowhere  media.class = Audio/Sink
             node.always-process = true } }
]
"#;

#[test]
fn pipewire_with_a_null_sink_is_served() {
    if !can_run("pipewire_with_a_null_sink_is_served") {
        return;
    }
    let machine = Machine::new();
    let home = home(&machine);
    let (errors, configuration) = (machine.path("errors"), machine.path("pipewire.conf"));
    std::fs::write(&configuration, PIPEWIRE).expect("there is room for a file");
    let mut command = machine.command(ALICE, Path::new("pipewire"));
    command
        .arg("-c")
        .arg(&configuration)
        // It asks the session bus for a portal first.
        .env("DBUS_SESSION_BUS_ADDRESS", machine.address())
        .env("HOME", &home)
        .env("XDG_RUNTIME_DIR", &home)
        .stderr(std::fs::File::create(&errors).expect("there is room for a file"));
    let mut server = Mortal::spawn(&mut command);
    let tid = raised_thread(&machine, &mut server, &errors);
    assert!(
        listed(&mut machine.client(ROOT), tid).is_some(),
        "{}",
        machine.log()
    );
}
