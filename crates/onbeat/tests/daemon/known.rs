//! The rules for well-known programs that are installed with onbeat, on the real programs; and what
//! a rule may say of their threads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onbeat_act::attributes::{Attributes, Policy};

use crate::common::{Mortal, eventually, needs_root, skip};
use crate::machine::{ALICE, Machine, ROOT, is_reserved, tids};
use crate::realtimekit::listed;
use crate::sound::{PIPEWIRE, silence};

/// A user whose programs no other test has: `uucp`.
const CAROL: u32 = 10;

/// Programs of shipped rules that Debian has not. `tests/packages/rules.sh` checks that, and that
/// Debian has each other one, as a program and not as a script.
const LACKING: [&str; 31] = [
    "firefox",
    "firefox-bin",
    "chrome",
    "brave",
    "vivaldi-bin",
    "msedge",
    "Hyprland",
    "niri",
    "cosmic-comp",
    "gamescope",
    "ros2_control_node",
    "pcsx2-qt",
    "rpcs3",
    "PPSSPPSDL",
    "PPSSPPQt",
    "86Box",
    "duckstation-qt",
    "melonDS",
    "snes9x-gtk",
    "xemu",
    "Cemu",
    "kodi-gbm",
    "kodi-wayland",
    "kodi-x11",
    "sunshine",
    "reaper",
    "BitwigStudio",
    "sooperlooper",
    "sdrpp",
    "wineserver",
    "wivrn-server",
];
/// Those that Debian has and that are not started here: they want a desktop, its session, a GPU or
/// a game, and hundreds of megabytes of packages.
const WANTING: [&str; 45] = [
    "firefox-esr",
    "chromium",
    "kwin_wayland",
    "kwin_x11",
    "gnome-shell",
    "mutter",
    "labwc",
    "wayfire",
    "cinnamon",
    "xfwm4",
    "retroarch",
    "dolphin-emu",
    "mgba-qt",
    "mednafen",
    "mupen64plus",
    "mame",
    "scummvm",
    "dosbox-x",
    "stella",
    "totem",
    "celluloid",
    "haruna",
    "kodi.bin",
    "audacious",
    "rhythmbox",
    "strawberry",
    "obs",
    "audacity",
    "hydrogen",
    "guitarix",
    "freedv",
    "easyeffects",
    "lmms",
    "qtractor",
    "rosegarden",
    "zynaddsubfx",
    "yoshimi",
    "jalv",
    "supernova",
    "gqrx",
    "CubicSDR",
    "mpd",
    "shairport-sync",
    "wineserver64",
    "monado-service",
];

/// The rules that are shipped, for Carol's programs alone: other tests start such programs, too.
fn for_carol(machine: &Machine) -> PathBuf {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/rules.d");
    let folder = machine.path("rules.d");
    std::fs::create_dir(&folder).expect("there is room for a folder");
    for file in std::fs::read_dir(shipped).expect("it is in the checkout") {
        let path = file.expect("it can be read").path();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let text = text.replace("[[rule]]\n", &format!("[[rule]]\nuser = \"{CAROL}\"\n"));
        // Hers are in no session.
        let text = text.replace("cgroup = \"/user.slice\"\n", "");
        let name = path.file_name().expect("it has a name");
        std::fs::write(folder.join(name), text).expect("there is room for a file");
    }
    folder
}

/// The programs that the shipped rules name.
fn shipped_programs() -> Vec<String> {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/rules.d");
    let files = std::fs::read_dir(shipped).expect("it is in the checkout");
    let texts = files.map(|file| std::fs::read_to_string(file.expect("it is there").path()));
    let texts: Vec<String> = texts.map(|text| text.expect("it is text")).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    lines
        .filter_map(|line| line.strip_prefix("program = \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .collect()
}

/// Whether the program is installed; says so otherwise, which is a failure in CI.
fn is_there(program: &str) -> bool {
    let found = Command::new("which").arg(program).output();
    let is_there = found.is_ok_and(|found| found.status.success());
    if !is_there {
        skip(&format!("{program} is not installed"));
    }
    is_there
}

#[test]
fn each_real_program_is_found_by_its_shipped_rule() {
    needs_root!();
    let mut machine = Machine::bus();
    let home = machine.path("home");
    std::fs::create_dir(&home).expect("there is room for a folder");
    std::os::unix::fs::chown(&home, Some(CAROL), Some(CAROL)).expect("we are root");
    let configuration = machine.path("pipewire.conf");
    std::fs::write(&configuration, PIPEWIRE).expect("there is room for a file");
    let sound = silence(&machine);
    let (sound, configuration) = (sound.to_string_lossy(), configuration.to_string_lossy());
    let pulse =
        "pulseaudio -n --daemonize=no --use-pid-file=no --exit-idle-time=-1 -L module-null-sink";
    let programs = [
        ("mplayer", format!("mplayer -quiet -ao null {sound}")),
        ("mpv", format!("mpv --no-config --ao=null {sound}")),
        ("ffplay", format!("ffplay -nodisp -loglevel quiet {sound}")),
        (
            "gst-launch-1.0",
            "gst-launch-1.0 audiotestsrc ! fakesink sync=true".to_owned(),
        ),
        ("pipewire", format!("pipewire -c {configuration}")),
        // The same program under another name.
        ("pipewire", "pipewire-pulse".to_owned()),
        ("wireplumber", "wireplumber".to_owned()),
        ("pulseaudio", pulse.to_owned()),
        ("jackd", "jackd --no-realtime -d dummy".to_owned()),
        (
            "fluidsynth",
            "fluidsynth --server --no-shell --audio-driver=file --fast-render=/dev/null".to_owned(),
        ),
        ("jackdbus", "jackdbus auto".to_owned()),
        ("vlc", format!("vlc --intf=dummy --aout=dummy {sound}")),
        ("dosbox", "dosbox -noconsole".to_owned()),
        ("sway", "sway --config /dev/null".to_owned()),
        ("cage", "cage -- sleep 1000".to_owned()),
        // Sway's client.
        ("Xwayland", "Xwayland :117 -nolisten tcp".to_owned()),
        (
            "weston",
            "weston --backend=headless-backend.so --no-config --socket=onbeat".to_owned(),
        ),
        (
            "snapserver",
            format!("snapserver --server.datadir={}", home.display()),
        ),
        ("snapclient", "snapclient --player file".to_owned()),
        ("scsynth", "scsynth -u 57117".to_owned()),
        (
            "qemu-system-x86_64",
            "qemu-system-x86_64 -nodefaults -display none -S".to_owned(),
        ),
    ];
    let started: BTreeSet<&str> = programs.iter().map(|(rule, _)| *rule).collect();
    let covered: BTreeSet<&str> = started
        .iter()
        .copied()
        .chain(LACKING)
        .chain(WANTING)
        .collect();
    let shipped = shipped_programs();
    let shipped: BTreeSet<&str> = shipped.iter().map(String::as_str).collect();
    assert_eq!(covered, shipped, "each rule is started, or said why not");
    let folder = for_carol(&machine);
    let folder: &'static str = folder.to_string_lossy().into_owned().leak();
    machine.flags = vec!["--rules", folder];
    machine.configure("scan = \"50ms\"\n");
    machine.start();
    // The parts that a later step needs run on: a server for its clients.
    let mut running = Vec::new();
    for (rule, line) in programs {
        let mut words = line.split(' ');
        let program = words.next().expect("a line has words");
        if !is_there(program) {
            continue;
        }
        let errors = std::fs::File::create(machine.path("errors"));
        let mut command = machine.command(CAROL, Path::new(program));
        command
            .args(words)
            .env("DBUS_SESSION_BUS_ADDRESS", machine.address())
            .env("HOME", &home)
            .env("XDG_RUNTIME_DIR", &home)
            .env("SDL_AUDIODRIVER", "dummy")
            .env("SDL_VIDEODRIVER", "dummy")
            .env("WAYLAND_DISPLAY", "wayland-1")
            .env("WLR_BACKENDS", "headless")
            .env("WLR_RENDERER", "pixman")
            .env_remove("DISPLAY")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors.expect("there is room for a file"));
        let mut process = Mortal::spawn(&mut command);
        let found = format!("({}): tracked by rule {rule} ", process.id());
        eventually(&line, || {
            let ended = process.0.try_wait().expect("it is our child");
            let errors = std::fs::read_to_string(machine.path("errors")).unwrap_or_default();
            let log = machine.log();
            let is_found = log.replace('\n', " ").contains(&found);
            assert!(is_found || ended.is_none(), "{line} ended: {errors}\n{log}");
            is_found.then_some(())
        });
        running.push(process);
    }
}

#[test]
fn a_rule_may_name_the_threads_that_it_means() {
    needs_root!();
    if !is_there("gst-launch-1.0") {
        return;
    }
    let mut machine = Machine::bus();
    let rule = |threads: &str| {
        format!(
            "scan = \"50ms\"\n[[rule]]\nname = \"source\"\nprogram = \"gst-launch-1.0\"\nuser = \"{CAROL}\"\n\
             threads = [\"{threads}\"]\n"
        )
    };
    machine.configure(&rule("audiotestsrc*"));
    machine.start();
    let mut command = machine.command(CAROL, Path::new("gst-launch-1.0"));
    let line = "audiotestsrc ! queue ! fakesink sync=true";
    let process = Mortal::spawn(command.args(line.split(' ')).stdout(Stdio::null()));
    let mut root = machine.client(ROOT);
    let mut names = || {
        let threads = root.told("list");
        let threads = threads.as_array()?;
        let own = threads
            .iter()
            .filter(|one| one["process"] == process.id())
            .map(|one| one["name"].as_str().unwrap_or_default().to_owned());
        Some(own.collect::<Vec<_>>())
    };
    eventually("the source's thread", || {
        let names = names()?;
        assert!(
            names.iter().all(|name| name.starts_with("audiotestsrc")),
            "{names:?}"
        );
        (!names.is_empty()).then_some(())
    });
    assert!(tids(process.id()).len() > 2, "it has other threads");
    // Another name is another thread, from the next reading on.
    machine.configure(&rule("queue*"));
    machine.client(ROOT).done("reload");
    eventually("the queue's thread", || {
        let names = names()?;
        (!names.is_empty() && names.iter().all(|name| name.starts_with("queue"))).then_some(())
    });
}

#[test]
fn a_rule_that_adopts_takes_over_a_thread_with_a_priority_and_gives_it_back() {
    needs_root!();
    let mut machine = Machine::bus();
    let rule = format!(
        "scan = \"50ms\"\n[[rule]]\nname = \"mine\"\nprogram = \"{}\"\nadopt = true\n",
        machine.path("workload").display()
    );
    machine.configure(&rule);
    machine.start();
    let (_process, tid) = machine.beat_under_fifo(ALICE);
    let mut alice = machine.client(ALICE);
    eventually("a reservation that follows its rhythm", || {
        (is_reserved(tid) && listed(&mut alice, tid)?["state"] == "kept").then_some(())
    });
    machine.configure("");
    machine.client(ROOT).done("reload");
    eventually("the priority that it gave itself", || {
        let now = Attributes::get(tid).ok()?;
        matches!(now.policy, Policy::Fifo(own) if own.priority == 7).then_some(())
    });
}
