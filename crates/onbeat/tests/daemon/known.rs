//! The rules for well-known programs that are installed with onbeat, on the real programs; and what
//! a rule may say of their threads.

use std::collections::BTreeSet;

use crate::prelude::*;
use crate::sound::{PIPEWIRE, silence};

/// A user whose programs no other test has: `uucp`.
const CAROL: u32 = 10;

/// Programs of shipped rules that Debian has not. `tests/packages/rules.sh` checks that, and that
/// Debian has each other one, as a program and not as a script.
const LACKING: &str = "\
    firefox firefox-bin chrome brave vivaldi-bin msedge Hyprland niri cosmic-comp gamescope \
    ros2_control_node pcsx2-qt rpcs3 PPSSPPSDL PPSSPPQt 86Box duckstation-qt melonDS \
    snes9x-gtk xemu Cemu kodi-gbm kodi-wayland kodi-x11 sunshine reaper BitwigStudio \
    sooperlooper sdrpp wineserver wivrn-server";
/// Those that Debian has and that are not started here: they want a desktop, its session, a GPU or
/// a game, and hundreds of megabytes of packages.
const WANTING: &str = "\
    firefox-esr chromium kwin_wayland kwin_x11 gnome-shell mutter labwc wayfire cinnamon \
    xfwm4 retroarch dolphin-emu mgba-qt mednafen mupen64plus mame scummvm dosbox-x stella \
    totem celluloid haruna kodi.bin audacious rhythmbox strawberry obs audacity hydrogen \
    guitarix freedv easyeffects lmms qtractor rosegarden zynaddsubfx yoshimi jalv supernova \
    gqrx CubicSDR mpd shairport-sync wineserver64 monado-service";

/// The rules that are shipped, for Carol's programs alone, as other tests start such programs, too;
/// and the programs that they name.
fn for_carol(machine: &Machine) -> (PathBuf, BTreeSet<String>) {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/rules.d");
    let folder = machine.folder("rules.d");
    let mut programs = BTreeSet::new();
    for file in fs::read_dir(shipped).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let named = text.split("\nprogram = \"").skip(1);
        programs.extend(named.filter_map(|rest| Some(rest.split('"').next()?.to_owned())));
        let text = text.replace("[[rule]]\n", &format!("[[rule]]\nuser = \"{CAROL}\"\n"));
        // Hers are in no session.
        let text = text.replace("cgroup = \"/user.slice\"\n", "");
        fs::write(folder.join(path.file_name().unwrap()), text).unwrap();
    }
    (folder, programs)
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
    let mut machine = Machine::bus();
    machine.home(CAROL);
    machine.write("pipewire.conf", PIPEWIRE);
    silence(&machine);
    // A line each; before it, where it is not the program's name, that of its rule. The parts that
    // a later one needs run on: a server for its clients.
    let lines = "\
        mplayer -quiet -ao null @/silence.wav
        mpv --no-config --ao=null @/silence.wav
        ffplay -nodisp -loglevel quiet @/silence.wav
        gst-launch-1.0 audiotestsrc ! fakesink sync=true
        pipewire -c @/pipewire.conf
        pipewire: pipewire-pulse
        wireplumber
        pulseaudio -n --daemonize=no --use-pid-file=no --exit-idle-time=-1 -L module-null-sink
        jackd --no-realtime -d dummy
        fluidsynth --server --no-shell --audio-driver=file --fast-render=/dev/null
        jackdbus auto
        vlc --intf=dummy --aout=dummy @/silence.wav
        dosbox -noconsole
        sway --config /dev/null
        cage -- sleep 1000
        Xwayland :117 -nolisten tcp
        weston --backend=headless-backend.so --no-config --socket=onbeat
        snapserver --server.datadir=@/home
        snapclient --player file
        scsynth -u 57117
        qemu-system-x86_64 -nodefaults -display none -S";
    let lines = lines.replace('@', &machine.path("").to_string_lossy());
    let programs = lines.lines().map(|line| {
        let line = line.trim();
        let (rule, line) = line.split_once(": ").unwrap_or((line, line));
        (rule.split(' ').next().unwrap(), line)
    });
    let (folder, shipped) = for_carol(&machine);
    let told = [LACKING, WANTING]
        .map(str::split_whitespace)
        .into_iter()
        .flatten();
    let covered: BTreeSet<String> = told
        .chain(programs.clone().map(|it| it.0))
        .map(str::to_owned)
        .collect();
    assert_eq!(covered, shipped, "each rule is started, or said why not");
    machine.flags = vec!["--rules", folder.to_str().unwrap().to_owned().leak()];
    machine.configure("scan = \"50ms\"\n");
    machine.start();
    let mut running = Vec::new();
    for (rule, line) in programs {
        let (program, words) = line.split_once(' ').unwrap_or((line, ""));
        if !is_there(program) {
            continue;
        }
        let mut command = machine.in_session(CAROL, program);
        command
            .args(words.split_whitespace())
            .env("SDL_AUDIODRIVER", "dummy")
            .env("SDL_VIDEODRIVER", "dummy")
            .env("WAYLAND_DISPLAY", "wayland-1")
            .env("WLR_BACKENDS", "headless")
            .env("WLR_RENDERER", "pixman")
            .stderr(machine.file("errors"));
        let mut process = Mortal::spawn(&mut command);
        let found = format!("({}): tracked by rule {rule} ", process.id());
        until(line, || {
            let ended = process.0.try_wait().unwrap();
            let errors = fs::read_to_string(machine.path("errors")).unwrap_or_default();
            let log = machine.log();
            let is_found = log.replace('\n', " ").contains(&found);
            assert!(is_found || ended.is_none(), "{line} ended: {errors}\n{log}");
            is_found
        });
        running.push(process);
    }
}

#[test]
fn a_rule_may_name_the_threads_that_it_means() {
    if !is_there("gst-launch-1.0") {
        return;
    }
    let rule = |threads: &str| {
        format!(
            "scan = \"50ms\"\n[[rule]]\nname = \"source\"\nprogram = \"gst-launch-1.0\"\nuser = \"{CAROL}\"\n\
             threads = [\"{threads}\"]\n"
        )
    };
    let machine = Machine::with(&rule("audiotestsrc*"));
    let mut command = machine.command(CAROL, Path::new("gst-launch-1.0"));
    let line = "audiotestsrc ! queue ! fakesink sync=true";
    let process = Mortal::spawn(command.args(line.split(' ')).stdout(Stdio::null()));
    let mut root = machine.client(ROOT);
    let mut are = |name: &str| {
        let list = root.list();
        let mut its = list.iter().filter(|one| one["process"] == process.id());
        let is_so = |one: &Value| {
            one["name"]
                .as_str()
                .is_some_and(|own| own.starts_with(name))
        };
        its.clone().count() > 0 && its.all(is_so)
    };
    until("the source's thread", || are("audiotestsrc"));
    assert!(tids(process.id()).len() > 2, "it has other threads");
    // Another name is another thread, from the next reading on.
    machine.configure(&rule("queue*"));
    machine.client(ROOT).done("reload");
    until("the queue's thread", || are("queue"));
}

#[test]
fn a_rule_that_adopts_takes_over_a_thread_with_a_priority_and_gives_it_back() {
    let machine = Machine::with_rule("adopt = true\n");
    let (_process, tid) = machine.beat_under_fifo(ALICE);
    let mut alice = machine.client(ALICE);
    until("a reservation that follows its rhythm", || {
        alice.is_kept(tid)
    });
    machine.configure("");
    machine.client(ROOT).done("reload");
    until(
        "the priority that it gave itself",
        || matches!(policy(tid), Policy::Fifo(own) if own.priority == 7),
    );
}
