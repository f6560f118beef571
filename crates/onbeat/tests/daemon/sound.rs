//! Sound servers and portals as they are: they ask by RealtimeKit's protocol.

use crate::prelude::*;

/// The desktop portal as Debian has it.
const PORTAL: &str = "/usr/libexec/xdg-desktop-portal";

#[test]
fn the_real_desktop_portal_tells_the_limits_and_has_a_clients_thread_kept() {
    if !Path::new(PORTAL).exists() {
        return skip("there is no desktop portal");
    }
    let machine = Machine::new();
    machine.home(ALICE);
    let mut portal = machine.in_session(ALICE, PORTAL);
    let portal = Mortal::spawn(portal.stderr(machine.file("errors")));
    let ask = |words: &[&str]| {
        let output = machine
            .in_session(ALICE, "busctl")
            .arg(format!("--address={}", machine.address()))
            .args(words)
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        let said = stdout(&output).trim().to_owned();
        let error = stderr(&output).to_owned();
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

    let mut command = machine.limited(ALICE, machine.path("workload"));
    let process = as_itself(Mortal::spawn(command.arg("beat:20000/1000")), "workload");
    let tid = eventually("its thread", || tids(process.id()).get(1).copied());
    let numbers = [process.id(), tid, 15].map(|number| number.to_string());
    let numbers = numbers.each_ref().map(String::as_str);
    let method = ["MakeThreadRealtimeWithPID", "ttu"];
    let asked = ask(&[&["call"], &place[..], &method, &numbers].concat());
    let told = fs::read_to_string(machine.path("errors")).unwrap_or_default();
    assert_eq!(asked.as_deref(), Ok(""), "{told}{}", machine.log());
    let mut root = machine.client(ROOT);
    until("a reservation that follows its rhythm", || {
        root.is_kept(tid)
    });
    // Also when the portal is gone.
    drop(portal);
    root.done("reload");
    until("the same", || root.is_kept(tid));
}

/// Waits until a thread of the program is kept; `errors` is what it says.
fn is_kept(machine: &Machine, process: &mut Mortal, errors: &str) {
    let mut root = machine.client(ROOT);
    eventually("a reservation that follows the sink's rhythm", || {
        let ended = process.0.try_wait().unwrap();
        let why = fs::read_to_string(machine.path(errors)).unwrap_or_default();
        assert!(ended.is_none(), "{errors}: {why}\n{}", machine.log());
        root.kept(process.id())
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

/// An hour of silence: 16 bits, one channel, 8000 times a second.
pub(crate) fn silence(machine: &Machine) -> PathBuf {
    const RATE: u32 = 8000;
    const LENGTH: u32 = 3600 * RATE * 2;
    let [all, length] = [36 + LENGTH, LENGTH].map(u32::to_le_bytes);
    let [rate, bytes] = [RATE, RATE * 2].map(u32::to_le_bytes);
    let format = [
        &[16, 0, 0, 0, 1, 0, 1, 0],
        &rate[..],
        &bytes,
        &[2, 0, 16, 0],
    ];
    let head = [
        &b"RIFF"[..],
        &all,
        b"WAVEfmt ",
        &format.concat(),
        b"data",
        &length,
    ];
    let path = machine.write("silence.wav", head.concat());
    let file = fs::File::options().write(true).open(&path).unwrap();
    // The bytes that were not written are zeros, and take no room.
    file.set_len(44 + u64::from(LENGTH)).unwrap();
    path
}

#[test]
fn pipewire_and_two_players_on_it_get_reservations_that_follow_the_sinks_rhythm() {
    let machine = Machine::new();
    machine.home(ALICE);
    let configuration = machine.write("pipewire.conf", PIPEWIRE);
    let start = |program: &str, words: &[&Path], errors: &str| {
        let mut command = machine.in_session(ALICE, program);
        Mortal::spawn(command.args(words).stderr(machine.file(errors)))
    };
    let server = start("pipewire", &[Path::new("-c"), &configuration], "server");
    until("its socket", || machine.path("home/pipewire-0").exists());
    // Without a program that links players to the sink, nothing is ever asked of it.
    let _manager = start("wireplumber", &[], "manager");
    until("the sink that players are linked to", || {
        let mut metadata = machine.in_session(ALICE, "pw-metadata");
        let told = metadata.stdout(Stdio::piped()).output().unwrap();
        stdout(&told).contains("default.audio.sink")
    });
    let sound = silence(&machine);
    let players = ["player", "other player"];
    let players = players.map(|name| {
        (
            start("pw-cat", &[Path::new("--playback"), &sound], name),
            name,
        )
    });
    for (mut process, name) in players.into_iter().chain([(server, "server")]) {
        is_kept(&machine, &mut process, name);
    }
}
