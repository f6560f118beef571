//! The rules for well-known programs that are installed with onbeat, on the real programs; and what
//! a rule may say of their threads.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onbeat_act::attributes::{Attributes, Policy};

use crate::common::{Mortal, can_run, eventually};
use crate::machine::{ALICE, Machine, ROOT, is_reserved, tids};
use crate::realtimekit::listed;
use crate::sound::{PIPEWIRE, silence};

/// A user whose programs no other test has: `uucp`.
const CAROL: u32 = 10;

/// The rules that are shipped, for Carol's programs alone: other tests start such programs, too.
fn for_carol(machine: &Machine) -> PathBuf {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/rules.d");
    let folder = machine.path("rules.d");
    std::fs::create_dir(&folder).expect("there is room for a folder");
    for file in std::fs::read_dir(shipped).expect("it is in the checkout") {
        let path = file.expect("it can be read").path();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let text = text.replace("[[rule]]\n", &format!("[[rule]]\nuser = \"{CAROL}\"\n"));
        let name = path.file_name().expect("it has a name");
        std::fs::write(folder.join(name), text).expect("there is room for a file");
    }
    folder
}

/// Whether the program is installed; says so otherwise, which is a failure in CI.
fn is_there(program: &str) -> bool {
    let found = Command::new("which").arg(program).output();
    let is_there = found.is_ok_and(|found| found.status.success());
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "{program} is not installed, in CI too"
    );
    if !is_there {
        println!("skipped: a rule for {program}: it is not installed");
    }
    is_there
}

#[test]
fn each_real_program_is_found_by_its_shipped_rule() {
    if !can_run("each_real_program_is_found_by_its_shipped_rule") {
        return;
    }
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
        ("sway", "sway --config /dev/null".to_owned()),
    ];
    let folder = for_carol(&machine);
    let folder: &'static str = folder.to_string_lossy().into_owned().leak();
    machine.flags = vec!["--rules", folder];
    machine.configure("scan = \"50ms\"\n");
    machine.start();
    // What a later one needs runs on: a server for its clients.
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
    if !can_run("a_rule_may_name_the_threads_that_it_means") || !is_there("gst-launch-1.0") {
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
    if !can_run("a_rule_that_adopts_takes_over_a_thread_with_a_priority_and_gives_it_back") {
        return;
    }
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
