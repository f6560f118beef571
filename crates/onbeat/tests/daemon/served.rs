//! `onbeat run`, `attach` and `reserve` as ordinary users type them: the service does it.

use crate::documented::{documented, written};
use crate::prelude::*;

/// onbeat as Alice types it.
fn alices(machine: &Machine, args: &[&str]) -> Command {
    let mut command = machine.onbeat(ALICE);
    command.args(args).env_remove("ONBEAT_STATE_DIR");
    command
}

#[test]
fn a_user_runs_a_program_on_the_beat_without_any_right() {
    let machine = Machine::new();
    let workload = machine.path("workload");
    // It looks once a second, and a machine that stalls may keep it from looking while there is
    // something to see.
    until("a row with its period", || {
        let mut run = alices(&machine, &["run", "--", workload.to_str().unwrap()]);
        run.arg("beat:20000/1000")
            .stdout(Stdio::null())
            .stderr(machine.file("said"));
        let mut onbeat = as_itself(Mortal::spawn(&mut run), "onbeat");
        reserved_thread(child_of(onbeat.id(), "workload"));
        // As a rule long enough that it was looked at since.
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(onbeat.ends(libc::SIGTERM), Some(128 + libc::SIGTERM));
        let said = fs::read_to_string(machine.path("said")).unwrap();
        assert!(!said.contains("CAP_SYS_NICE"), "{said}");
        let mut rows = said.lines();
        let application = rows.find(|line| line.starts_with("workload"));
        application.is_some_and(|row| row.contains(" by reservation"))
            && rows.any(|row| row.starts_with("  workload") && row.contains(" ms "))
    });
}

#[test]
fn a_bus_that_is_started_anew_is_found_again() {
    let mut machine = Machine::new();
    let log = machine.home(ALICE).join("log");
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let pid = workload.id().to_string();
    let words = ["attach", "--quiet", &pid, "--log", log.to_str().unwrap()];
    let _onbeat = Mortal::spawn(&mut alices(&machine, &words));
    let thread = reserved_thread(workload.id());
    // The service's word has reached it.
    until("a line in its log", || {
        fs::metadata(&log).is_ok_and(|log| log.len() > 0)
    });
    machine.end_bus();
    machine.ended();
    assert!(is_ordinary(thread));
    machine.start_bus();
    machine.start();
    until("another reservation", || is_reserved(thread));
}

#[test]
fn who_waits_for_a_service_that_hangs_may_be_interrupted() {
    let machine = Machine::new();
    let mark = machine.path("mark");
    let touch = ["run", "--", "touch", mark.to_str().unwrap()];
    machine.signal(libc::SIGSTOP);
    let mut onbeat = Mortal::spawn(&mut alices(&machine, &touch));
    let children = format!("/proc/{0}/task/{0}/children", onbeat.id());
    // It listens for signals before it has any.
    until("the process that waits for the service's word", || {
        fs::read_to_string(&children).is_ok_and(|children| !children.trim().is_empty())
    });
    onbeat.signal(libc::SIGINT);
    // Not 125, as after a wait in vain.
    assert_eq!(onbeat.status(), Some(128 + libc::SIGINT));
    assert!(!mark.exists());
    machine.signal(libc::SIGCONT);
}

#[test]
fn a_user_reserves_for_a_program_within_his_quota() {
    let machine = Machine::new();
    let reserve = |runtime: &str| {
        let times = ["reserve", "--runtime", runtime, "--period", "20ms"];
        let mut command = alices(&machine, &times);
        command.args(["--", "sleep", "1000"]);
        command
    };
    let mut onbeat = as_itself(Mortal::spawn(&mut reserve("2ms")), "onbeat");
    let (runtime, _, period) = times(child_of(onbeat.id(), "sleep"));
    // The program, too: it would keep its reservation, for the service ends with the test.
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(128 + libc::SIGTERM));
    assert_eq!((runtime, period), (2_000_000, 20_000_000));
    let refused = reserve("15ms").output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    has(stderr(&refused), &["may reserve"]);
}

#[test]
fn without_a_service_and_for_what_it_decides_itself_a_user_is_told_what_to_do() {
    let machine = Machine::bus();
    for (words, told) in [
        ("run --", &["systemctl start onbeat"][..]),
        ("run --service --cap=50% --", &["onbeat.toml", "sudo"]),
        ("run --always --hard --", &["onbeat.toml", "sudo"]),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let output = alices(&machine, &words)
            .args(["sleep", "0"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(125));
        has(stderr(&output), told);
    }
}

#[test]
fn a_user_gets_the_report_and_the_log_that_root_gets() {
    let machine = Machine::new();
    let folder = machine.home(ALICE);
    let [report, log, page] = ["report.json", "log", "page.html"].map(|name| folder.join(name));
    let [report, log, page] = [&report, &log, &page].map(|path| path.to_str().unwrap());
    let workload = machine.path("workload");
    let told = eventually("jobs in a report", || {
        let mut run = alices(&machine, &["run", "--report", report, "--log", log, "--"]);
        let run = run
            .arg(&workload)
            .args(["--jobs", "150", "beat:20000/1000"]);
        let output = run.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let told: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
        let (thread, history) = (&told["threads"][0], &told["history"][0]);
        assert_eq!(history["tid"], thread["tid"]);
        let ended = history["recent_jobs"]["ended_ns"].as_array()?;
        let ended: Vec<u64> = ended.iter().filter_map(Value::as_u64).collect();
        assert!(ended.len() as u64 <= thread["jobs"].as_u64()?, "{told}");
        assert!(ended.is_sorted_by(|one, next| one < next), "{told}");
        let is_whole = ended.len() > 20 && thread["response_time"]["p99_ns"].is_u64();
        is_whole.then_some(told)
    });
    let documented = documented("What `--report` writes");
    for field in written(&told).union(&written(&told["threads"][0])) {
        assert!(documented.contains(field), "{field}");
    }
    let log = fs::read_to_string(log).unwrap();
    let mut lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let first = lines.find(|line: &Value| line["what"] == "reserved");
    assert_eq!(first.as_ref(), told["decisions"].get(0));
    let output = alices(&machine, &["report", report, "-o", page])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    has(
        fs::read_to_string(page).unwrap(),
        &["Distribution of response times"],
    );
}

#[test]
fn a_user_whose_quota_is_too_small_is_told_once_which_line_would_change_it() {
    let machine = Machine::with("[quota]\nbandwidth = \"20%\"\n");
    let mut run = alices(&machine, &["run", "--"]);
    let run = run.arg(machine.path("workload")).arg("beat:20000/8000");
    let run = run.stdout(Stdio::null()).stderr(machine.file("said"));
    let mut onbeat = Mortal::spawn(run);
    let line = "under [quota] in /etc/onbeat/onbeat.toml";
    for what in ["may reserve 20.0% of a CPU", "has used up the CPU time"] {
        for (place, file) in [
            ("word on the terminal", "said"),
            ("a line in the journal", "log"),
        ] {
            until(place, || {
                let text = fs::read_to_string(machine.path(file)).unwrap();
                let about = |text: &&str| text.contains(what) && text.contains(line);
                let count = text.lines().filter(about).count();
                assert!(count <= 1, "{text}");
                count == 1
            });
        }
    }
    until("a row of top", || {
        let rows = alices(&machine, &["top", "--once"]).output().unwrap();
        stdout(&rows).contains(line)
    });
    // It ends its program; a kill would leave that running.
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(128 + libc::SIGTERM));
}
