//! Sound servers and portals as they are: they ask by RealtimeKit's protocol.

use std::path::Path;
use std::process::{Command, Stdio};

use onbeat_act::attributes::{Attributes, Policy};

use crate::common::{Mortal, eventually, needs_root, skip};
use crate::machine::{ALICE, Client, Machine, ROOT, as_itself, is_reserved, tids};
use crate::realtimekit::listed;

/// A thread of the process that has a rhythm and a reservation that follows it.
fn kept(client: &mut Client, process: u32) -> Option<u32> {
    let mut threads = tids(process).into_iter();
    threads.find(|&tid| {
        is_reserved(tid) && listed(client, tid).is_some_and(|one| one["state"] == "kept")
    })
}

/// A program that works each 20 ms under RealtimeKit's limit of CPU time, and its thread.
fn limited_workload(machine: &Machine) -> (Mortal, u32) {
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
    (process, tid)
}

#[test]
fn a_thread_that_a_portal_asks_for_is_kept_also_when_the_portal_is_gone() {
    needs_root!();
    let machine = Machine::new();
    let (process, tid) = limited_workload(&machine);
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

/// The desktop portal as Debian has it.
const PORTAL: &str = "/usr/libexec/xdg-desktop-portal";

#[test]
fn the_real_desktop_portal_tells_the_limits_and_has_a_clients_thread_kept() {
    needs_root!();
    let is_there = Path::new(PORTAL).exists();
    if !is_there {
        return skip("there is no desktop portal");
    }
    let machine = Machine::new();
    let home = home(&machine);
    let errors = machine.path("errors");
    // The session's bus is the system's here.
    let as_alice = |program: &str| {
        let mut command = machine.command(ALICE, Path::new(program));
        command
            .env("DBUS_SESSION_BUS_ADDRESS", machine.address())
            .env("HOME", &home)
            .env("XDG_RUNTIME_DIR", &home);
        command
    };
    let mut command = as_alice(PORTAL);
    command
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&errors).expect("there is room for a file"));
    let _portal = Mortal::spawn(&mut command);
    let ask = |words: &[&str]| {
        let output = as_alice("busctl")
            .arg(format!("--address={}", machine.address()))
            .args(words)
            .output()
            .expect("busctl is a part of systemd");
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(said).ok_or(error)
    };
    let place = [
        "org.freedesktop.portal.Desktop",
        "/org/freedesktop/portal/desktop",
        "org.freedesktop.portal.Realtime",
    ];
    let property = |name: &str| ask(&[&["get-property"], &place[..], &[name]].concat());
    // It reads them once, when it starts.
    let limit = eventually("the portal", || property("RTTimeUSecMax").ok());
    assert_eq!(limit, "x 200000", "{}", machine.log());
    assert_eq!(property("MaxRealtimePriority").as_deref(), Ok("i 20"));

    let (process, tid) = limited_workload(&machine);
    let numbers = [process.id(), tid, 15].map(|number| number.to_string());
    let numbers = numbers.each_ref().map(String::as_str);
    let method = ["MakeThreadRealtimeWithPID", "ttu"];
    let asked = ask(&[&["call"], &place[..], &method, &numbers].concat());
    let told = std::fs::read_to_string(&errors).unwrap_or_default();
    assert_eq!(asked.as_deref(), Ok(""), "{told}{}", machine.log());
    let mut root = machine.client(ROOT);
    eventually("a reservation that follows its rhythm", || {
        kept(&mut root, process.id())
    });
}

/// Some thread of the process that RealtimeKit's protocol got something for, as soon as there is
/// one.
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

/// A folder of Alice's, for the files of a sound server.
pub(crate) fn home(machine: &Machine) -> std::path::PathBuf {
    let home = machine.path("home");
    std::fs::create_dir(&home).expect("there is room for a folder");
    std::os::unix::fs::chown(&home, Some(ALICE), Some(ALICE)).expect("we are root");
    home
}

#[test]
fn pulseaudio_with_a_null_sink_is_served() {
    needs_root!();
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
    // A client plays silence, so that the sink has to be filled in time.
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

/// PipeWire with its real-time module and a sink that leads nowhere, which wants a buffer each 21.3
/// ms.
pub(crate) const PIPEWIRE: &str = r#"
context.properties = { core.daemon = true  core.name = pipewire-0  support.dbus = true  default.clock.quantum = 1024 }
context.spa-libs = { audio.convert.* = audioconvert/libspa-audioconvert  support.* = support/libspa-support }
context.modules = [
  { name = libpipewire-module-rt
    args = { nice.level = -11  rt.prio = 15  rlimits.enabled = false  rtportal.enabled = false  rtkit.enabled = true } }
  { name = libpipewire-module-protocol-native }   { name = libpipewire-module-metadata }
  { name = libpipewire-module-spa-node-factory }  { name = libpipewire-module-client-node }
  { name = libpipewire-module-client-device }     { name = libpipewire-module-access  args = { } }
  { name = libpipewire-module-adapter }           { name = libpipewire-module-link-factory }
  { name = libpipewire-module-session-manager }
]
context.objects = [
  { factory = adapter
    args = { factory.name = support.null-audio-sink  node.name = nowhere  media.class = Audio/Sink
             object.linger = true  audio.position = [ FL FR ] } }
]
"#;

/// An hour of silence: 16 bits, 8000 times a second.
pub(crate) fn silence(machine: &Machine) -> std::path::PathBuf {
    const RATE: u32 = 8000;
    const LENGTH: u32 = 3600 * RATE * 2;
    let path = machine.path("silence.wav");
    let mut head = Vec::new();
    head.extend(b"RIFF");
    head.extend((36 + LENGTH).to_le_bytes());
    head.extend(b"WAVEfmt ");
    head.extend(16_u32.to_le_bytes());
    // Plain samples, one channel.
    head.extend([1, 0, 1, 0]);
    head.extend(RATE.to_le_bytes());
    head.extend((RATE * 2).to_le_bytes());
    head.extend([2, 0, 16, 0]);
    head.extend(b"data");
    head.extend(LENGTH.to_le_bytes());
    std::fs::write(&path, head).expect("there is room for a file");
    let file = std::fs::File::options().write(true).open(&path);
    let file = file.expect("it was just written");
    // The bytes that were not written are zeros, and take no room.
    file.set_len(44 + u64::from(LENGTH))
        .expect("files may be that long");
    path
}

/// A program of Alice's that finds PipeWire and both buses, which are one here.
fn on_pipewire(machine: &Machine, home: &Path, program: &str) -> Command {
    let mut command = machine.command(ALICE, Path::new(program));
    command
        .env("DBUS_SESSION_BUS_ADDRESS", machine.address())
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env_remove("DISPLAY")
        .stdout(Stdio::null());
    command
}

#[test]
fn pipewire_and_two_players_on_it_get_reservations_that_follow_the_sinks_rhythm() {
    needs_root!();
    let machine = Machine::new();
    let home = home(&machine);
    let (errors, configuration) = (machine.path("errors"), machine.path("pipewire.conf"));
    std::fs::write(&configuration, PIPEWIRE).expect("there is room for a file");
    let said =
        |name: &str| std::fs::File::create(machine.path(name)).expect("there is room for a file");
    let mut command = on_pipewire(&machine, &home, "pipewire");
    command.arg("-c").arg(&configuration).stderr(said("errors"));
    let mut server = Mortal::spawn(&mut command);
    raised_thread(&machine, &mut server, &errors);
    // Without a program that links players to the sink, nothing is ever asked of it.
    let mut manager = on_pipewire(&machine, &home, "wireplumber");
    let _manager = Mortal::spawn(manager.stderr(said("manager")));
    eventually("the sink that players are linked to", || {
        let mut metadata = on_pipewire(&machine, &home, "pw-metadata");
        let told = metadata.stdout(Stdio::piped()).output();
        let told = told.expect("it can be started").stdout;
        String::from_utf8_lossy(&told)
            .contains("default.audio.sink")
            .then_some(())
    });
    let sound = silence(&machine);
    let players = ["player", "other player"];
    let mut programs = players.map(|name| {
        let mut player = on_pipewire(&machine, &home, "pw-cat");
        player.arg("--playback").arg(&sound).stderr(said(name));
        (Mortal::spawn(&mut player), name)
    });
    let mut root = machine.client(ROOT);
    for (process, name) in programs.iter_mut().chain([&mut (server, "errors")]) {
        eventually("a reservation that follows the sink's rhythm", || {
            let ended = process.0.try_wait().expect("it is our child");
            let why = std::fs::read_to_string(machine.path(name)).unwrap_or_default();
            assert!(ended.is_none(), "{name}: {why}\n{}", machine.log());
            kept(&mut root, process.id())
        });
    }
}
