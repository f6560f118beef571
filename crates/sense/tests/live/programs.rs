use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use onbeat_kernel::proc::started_ticks;
use onbeat_model::Sensor;
use onbeat_sense::bpf::{BpfOptions, BpfSensor};

use crate::role::{eventually, heard, sensors};

/// As in tracer.bpf.c.
const EXECUTIONS: u64 = 16;

fn options() -> BpfOptions {
    BpfOptions {
        tell_programs: true,
        endless: true,
        ..BpfOptions::default()
    }
}

fn run(program: &Path) -> u32 {
    let mut child = Command::new(program).spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    pid
}

fn told(sensor: &mut BpfSensor) -> Vec<(u32, String)> {
    heard(sensor);
    let begun = sensor.take_begun().into_iter();
    begun.map(|told| (told.process.tid, told.path)).collect()
}

#[test]
fn an_executed_program_is_told_by_the_name_of_its_file_and_as_often_as_a_user_may() {
    for (hooks, mut sensor) in sensors(options()) {
        let folder = tempfile::tempdir().unwrap();
        let [named, other] = ["onbeat-named", "onbeat-other"].map(|name| {
            let path = folder.path().join(name);
            copy_program("/bin/true", &path);
            path
        });
        // By another name for the same file.
        let alias = folder.path().join("onbeat-alias");
        std::os::unix::fs::symlink(&named, &alias).unwrap();
        let names = BTreeSet::from(["onbeat-named".to_owned(), "onbeat-alias".to_owned()]);
        sensor.tell_programs(&names).unwrap();
        run(&other);
        let path = named.to_str().unwrap().to_owned();
        let expected = [run(&named), run(&alias)].map(|pid| (pid, path.clone()));
        assert_eq!(told(&mut sensor), expected, "{hooks:?}");

        let began = Instant::now();
        for _ in 0..200 {
            run(&named);
        }
        let windows = began.elapsed().as_secs() + 2;
        let count = told(&mut sensor).len() as u64;
        assert!(
            (1..=EXECUTIONS * windows).contains(&count),
            "{hooks:?}: {count} in {windows} s"
        );
        // A later window is another one.
        eventually("one more", || {
            run(&named);
            !told(&mut sensor).is_empty()
        });
        sensor.tell_programs(&BTreeSet::new()).unwrap();
        run(&named);
        assert!(told(&mut sensor).is_empty(), "{hooks:?}");
    }
}

/// By another process: a descriptor of this one that is open for writing when another thread forks
/// would make the program busy.
fn copy_program(from: &str, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

struct Waits(Child);

impl Drop for Waits {
    fn drop(&mut self) {
        // It ends when its input does.
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// Runs `program`, a copy of cat, with a command before it that executes it in the end.
fn waiting(before: &[&str], program: &Path) -> Waits {
    let mut words = before.iter().map(Path::new).chain([program]);
    let mut command = Command::new(words.next().unwrap());
    Waits(command.args(words).stdin(Stdio::piped()).spawn().unwrap())
}

/// Root may read it.
fn exe(pid: u32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let path = path.to_str()?;
    Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
}

#[test]
fn the_programs_of_all_processes_are_told_with_the_paths_that_proc_has() {
    for (hooks, mut sensor) in sensors(options()) {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c/d/e/f/g/h/i/j/k/l");
        let long = folder.path().join("x".repeat(200)).join("y".repeat(200));
        let longest = long.join("z".repeat(200));
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(&longest).unwrap();
        let copy = |folder: &Path| {
            let path = folder.join("onbeat-waits");
            copy_program("/bin/cat", &path);
            path
        };
        let programs = [folder.path(), &deep, &long, &longest].map(copy);
        let gone = folder.path().join("onbeat-gone");
        copy_program("/bin/cat", &gone);
        let mut all: Vec<Waits> = programs.iter().map(|path| waiting(&[], path)).collect();
        all.push(waiting(&[], &gone));
        // On a mount of its own, in a namespace of its own.
        let mounted = "mount --bind \"$0\" /mnt && exec /mnt/onbeat-waits";
        let deep = deep.to_str().unwrap();
        let apart = ["unshare", "--mount", "sh", "-c", mounted];
        all.push(waiting(&apart, Path::new(deep)));
        let pids: Vec<u32> = all.iter().map(|waits| waits.0.id()).collect();
        let has_begun = |pid: &u32| exe(*pid).is_some_and(|path| path.contains("/onbeat-"));
        eventually("the programs", || pids.iter().all(has_begun));
        fs::remove_file(&gone).unwrap();

        let mut listed = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            sensor.tell_programs(&names).unwrap();
            let programs = sensor.programs().unwrap().into_iter();
            let programs = programs.map(|told| (told.process.tid, told));
            programs.collect::<BTreeMap<_, _>>()
        };
        let told = listed(&["onbeat-waits", "onbeat-gone"]);
        for (pid, place) in pids.iter().zip(0..) {
            let whole = exe(*pid).unwrap();
            // Of one that is too long, the end.
            let is_cut = place == 3;
            let from = whole.find(if is_cut { "xx" } else { "/" }).unwrap();
            assert_eq!(told[pid].path, whole[from..], "{hooks:?}");
        }
        let mine = std::process::id();
        assert!(!told.contains_key(&mine), "{hooks:?}");

        let all = listed(&[""]);
        assert!(all.len() > told.len() && all.contains_key(&mine));
        let own = &all[&mine];
        assert_eq!(Some(&own.path), exe(mine).as_ref());
        assert_eq!(own.groups, told[&pids[0]].groups);
        let started_ticks = started_ticks(mine).unwrap();
        assert_eq!(own.process.started_ticks, started_ticks);
    }
}
