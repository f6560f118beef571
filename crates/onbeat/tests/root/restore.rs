//! `onbeat restore` and `onbeat doctor`.

use crate::guard::kill_with_guard;
use crate::*;

#[test]
fn after_a_kill_the_program_gets_back_what_it_had_and_no_trace_buffer_is_left() {
    let state = tempfile::tempdir().unwrap();
    let pid_file = state.path().join("pid.txt");
    let script = format!("echo $$ > {}; exec sleep 1000", pid_file.display());
    let times = ["reserve", "--runtime", "2ms", "--period", "50ms"];
    let sleep = ["--", "sh", "-c", &script];
    let reserve = started(state.path(), &[&times[..], &sleep].concat());
    let program: u32 = eventually("the program's number", || {
        fs::read_to_string(&pid_file).ok()?.trim().parse().ok()
    });
    let _cleanup = Killed(program);
    assert_eq!(policy(program), DEADLINE);

    let pid = program.to_string();
    let words = "record --tracer tracefs -q -o /dev/null -p".split(' ');
    let record = started(state.path(), &words.chain([&*pid]).collect::<Vec<_>>());
    let tracing = Tracing::mount();
    let buffer = eventually("a trace buffer", || tracing.buffer_of(record.id()));

    let refused = ran(state.path(), &["restore"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    has(stderr(&refused), &["still running"]);
    assert_eq!(policy(program), DEADLINE);

    kill_with_guard(reserve);
    drop(record);
    assert_eq!(policy(program), DEADLINE);
    assert!(buffer.exists());
    let restored = ran(state.path(), &["restore"]);
    assert_eq!(restored.status.code(), Some(0), "{}", stderr(&restored));
    // Others that were killed on this machine may have left buffers, too.
    let told: Vec<&str> = stdout(&restored).lines().collect();
    assert_eq!(told.first(), Some(&&*format!("thread {program}: put back")));
    let name = buffer.file_name().unwrap().to_str().unwrap();
    assert!(told.contains(&&*format!("trace buffer {name}: removed")));
    let of_buffer = |line: &&str| line.starts_with("trace buffer ");
    assert!(told[1..].iter().all(of_buffer), "{told:?}");
    assert!(!buffer.exists());
    assert_eq!(policy(program), libc::SCHED_OTHER);
    fs::remove_file(&pid_file).unwrap();
    assert_eq!(state_files(state.path()), 0);

    let again = ran(state.path(), &["restore"]);
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(stdout(&again), "nothing to put back\n");
}

/// tracefs, at a place of this test's own: a machine may have it nowhere.
struct Tracing(PathBuf);

impl Tracing {
    fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap().keep();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tracefs", "tracefs"]).arg(&folder);
        assert!(mount.status().unwrap().success());
        Self(folder)
    }

    /// The trace buffer that the onbeat `pid` has made.
    fn buffer_of(&self, pid: u32) -> Option<PathBuf> {
        let folder = fs::read_dir(self.0.join("instances")).ok()?;
        let name = format!("/onbeat-{pid}-");
        let mut paths = folder.filter_map(|entry| Some(entry.ok()?.path()));
        paths.find(|path| path.to_string_lossy().contains(&name))
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        // Never what is in it, should it still be there.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Ends a process that its own parent left behind.
struct Killed(u32);

impl Drop for Killed {
    fn drop(&mut self) {
        // SAFETY: a plain system call; the process is this test's own and lives until now.
        unsafe { libc::kill(self.0.cast_signed(), libc::SIGKILL) };
    }
}

#[test]
fn the_doctor_finds_this_machine_fit_and_says_so_twice() {
    let state = tempfile::tempdir().unwrap();
    let table = ran(state.path(), &["doctor"]);
    assert_eq!(table.status.code(), Some(0), "{}", stdout(&table));
    has(stdout(&table), &["onbeat can do its work here."]);
    let json = ran(state.path(), &["doctor", "--json"]);
    assert_eq!(json.status.code(), Some(0));
    let object: serde_json::Value = serde_json::from_str(stdout(&json)).unwrap();
    assert_eq!(object["ready"], true);
    assert_eq!(object["onbeat"], env!("CARGO_PKG_VERSION"));
    let features = object["features"].as_array().unwrap();
    assert!(features.len() >= 2, "{object}");
    for feature in features {
        has(stdout(&table), &[feature["name"].as_str().unwrap()]);
        let standing = feature["standing"].as_str();
        assert!(matches!(standing, Some("full" | "partial")), "{feature}");
    }
}

#[test]
fn in_a_container_with_process_numbers_of_its_own_the_doctor_and_run_say_so() {
    let state = tempfile::tempdir().unwrap();
    let inside = |arguments: &[&str]| {
        let output = Command::new("unshare")
            .args(["--pid", "--fork", "--mount-proc"])
            .arg(env!("CARGO_BIN_EXE_onbeat"))
            .args(arguments)
            .env("ONBEAT_STATE_DIR", state.path())
            .output()
            .unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let [table, _] = inside(&["doctor"]);
    let [_, told] = inside(&["run", "--tracer", "bpf", "--", "true"]);
    for text in [table, told] {
        has(&text, &["process numbers of its own"]);
    }
}
