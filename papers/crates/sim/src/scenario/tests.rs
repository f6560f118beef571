use std::path::Path;

use super::*;

const PLAYER: &str = r#"
duration = "10s"
seed = 7

[[task]]
name = "player"
arrival = { periodic = "40ms" }
demand = { normal = { mean = "10ms", deviation = "2ms", most = "20ms" } }
scheduling = { deadline = { runtime = "25ms", period = "40ms" } }

[[task]]
name = "hog"
arrival = "always"
demand = "endless"
"#;

fn scenario(text: &str) -> Scenario {
    parse(text, Path::new("test.toml")).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> ScenarioFigures {
    ScenarioRun::new(scenario)
        .run(Outputs::default(), |_| {})
        .unwrap()
}

#[test]
fn a_reserved_player_beside_a_hog_misses_nothing_and_nothing_is_left_idle() {
    let figures = run(&scenario(PLAYER));
    let [player, hog] = &figures.tasks[..] else {
        panic!("two groups: {figures:?}");
    };
    assert_eq!((player.jobs, player.missed), (250, 0));
    assert_eq!(hog.jobs, 0);
    let times = player.response_time.unwrap();
    let median_ms = times.p50_ns.as_ms_f64();
    assert!((9.0..11.0).contains(&median_ms), "{median_ms}");
    assert!(times.p50_ns < times.p99_ns && times.p99_ns <= times.max_ns);
    assert_eq!(
        player.executed_ns + hog.executed_ns,
        figures.duration_ns,
        "the CPU is never idle"
    );
    assert_eq!(figures.cpus[0].busy, 1.0);
    assert!((figures.energy - 10.0).abs() < 1e-9);
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_a_remedy() {
    #[rustfmt::skip]
    let rows = [
        ("\"40ms\" }\ndemand", "\"40\" }\ndemand", 7, "a number and its unit"),
        ("duration = \"10s\"", "duration = \"0s\"", 2, "as in \"60s\""),
        ("runtime = \"25ms\"", "runtime = \"50ms\"", 5, "does not fit"),
        ("\"endless\"", "\"endles\"", 14, "endless"),
        ("arrival = \"always\"", "arival = \"always\"", 13, "arrival"),
        ("name = \"hog\"", "name = \"hog\"\ncpu = 1", 11, "leave cpu out"),
        ("[[task]]\nname = \"hog\"", "[machine]\ncpus = 0\n[[task]]\nname = \"hog\"", 12, "1 to"),
    ];
    for (from, to, line, remedy) in rows {
        let text = PLAYER.replacen(from, to, 1);
        assert_ne!(text, PLAYER, "{from}");
        let error = parse(&text, Path::new("test.toml"))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("test.toml:{line}: ")),
            "{line}: {error}"
        );
        assert!(error.contains(remedy), "{remedy}: {error}");
    }
}

#[test]
fn onbeat_lowers_the_speed_where_little_is_to_do_and_saves_energy() {
    let text = r#"
duration = "30s"
[machine]
speeds_mhz = [300, 500, 600, 700, 800, 1000]
[onbeat]
power = true
[[task]]
name = "player"
arrival = { periodic = "40ms" }
demand = { uniform = ["2ms", "3ms"] }
"#;
    let slow = run(&scenario(text));
    let fast = run(&scenario(&text.replace("power = true", "power = false")));
    let [player] = &slow.tasks[..] else {
        panic!("one group: {slow:?}");
    };
    assert!(slow.cpus[0].speed_changes > 0);
    assert!(
        slow.energy < 0.5 * fast.energy,
        "{} of {}",
        slow.energy,
        fast.energy
    );
    assert!(player.missed * 100 <= player.jobs, "{player:?}");
}

const CODECS: &str = r#"
duration = "20s"
policy = "grace"
[grace]
scheme = "grace-os"
[machine]
speeds_mhz = [300, 500, 600, 700, 800, 1000]
[[task]]
name = "video"
arrival = { periodic = "30ms" }
demand = { uniform = ["3ms", "11ms"] }
rho = 0.9
[[task]]
name = "batch"
arrival = { poisson = "1s" }
demand = { constant = "5ms" }
"#;

#[test]
fn on_a_partitioned_machine_each_cpu_has_its_own_queue_and_speed() {
    let text = CODECS.replace(
        "[machine]",
        "[machine]\ncpus = 2\nscheduling = \"partitioned\"",
    );
    let text = text.replace("[[task]]", "[[task]]\ncpu = 1");
    let figures = run(&scenario(&text));
    assert_eq!(figures.cpus[0].busy, 0.0);
    assert!(figures.cpus[1].busy > 0.2 && figures.cpus[1].speed_changes > 0);
}

const DECODER: &str = r#"
policy = "linux24"
duration = "30s"

[[task]]
name = "decoder"
arrival = { paced = "40ms" }
demand = { decoder = { mean = "20ms", seed = 1, variation = 1400 } }
mdn = true

[[task]]
name = "hog"
arrival = "always"
demand = "endless"
scheduling = { nice = 0 }
"#;

#[test]
fn under_the_policies_of_schedulers_a_slice_ends_at_a_tick() {
    let text = r#"
duration = "990ms"
[[task]]
name = "hog"
count = 2
arrival = "always"
demand = "endless"
"#;
    for policy in ["linux24", "best", "berate"] {
        let text = format!("policy = \"{policy}\"\n{text}");
        let switches = |text: &str| run(&scenario(text)).switches;
        let exactly = switches(&text);
        let ticking = switches(&text.replace("[[task]]", "[machine]\ntick = \"50ms\"\n[[task]]"));
        // A slice of 60 ms takes 100: two ticks.
        assert_eq!((exactly, ticking), (17, 10), "{policy}");
    }
}

#[test]
fn what_does_not_go_together_is_told_with_a_remedy() {
    const GRACE: &str = "policy = \"grace\"\n[grace]\nscheme = \"grace-os\"\n";
    #[rustfmt::skip]
    let rows = [
        (CODECS, "\"grace-os\"", "\"grace\"", "write one of worst-uniform"),
        (CODECS, "policy = \"grace\"\n", "", "write policy = \"grace\" at the top"),
        (CODECS, GRACE, "policy = \"best\"\n", "leave it out"),
        (CODECS, "rho = 0.9", "rho = 1.5", "from 0 to 1"),
        (CODECS, "rho = 0.9", "scheduling = { fifo = 5 }", "leave it out"),
        (CODECS, "[machine]", "[machine]\ncpus = 2", "partitioned"),
        (CODECS, "[machine]", "[onbeat]\n[machine]", "leave out [onbeat]"),
        (CODECS, "[machine]", "rounding = \"down\"\n[machine]", "expected one of `up`, `two`, `exact`"),
        (CODECS, "[machine]", "groups = 0\n[machine]", "above zero"),
        (CODECS, "[machine]", "[feedback]\nmethod = \"lfs\"\n[machine]", "leave out [onbeat] and [feedback]"),
        (PLAYER, "seed = 7", "[feedback]\nmethod = \"lfs+\"", "lfs, lfs++, adaptive"),
        (PLAYER, "seed = 7", "[feedback]\nmethod = \"lfs++\"\nf_max_hz = 1", "f_min must be"),
        (PLAYER, "seed = 7", "[feedback]\nmethod = \"lfs++\"\nspread = -1", "a number from 0 on"),
        (PLAYER, "seed = 7", "[feedback]\nmethod = \"lfs\"\n[onbeat]", "one loop at a time"),
        (DECODER, "scheduling = { nice = 0 }", "scheduling = { rr = 5 }", "a nice value"),
        (DECODER, "mdn = true", "mdn = { every = \"0s\" }", "between two of its notifications"),
        (DECODER, "[[task]]", "[machine]\nscheduling = \"partitioned\"\n[[task]]", "one queue"),
        (DECODER, "[[task]]", "[onbeat]\n[[task]]", "leave out [onbeat]"),
    ];
    for (base, from, to, remedy) in rows {
        let text = base.replacen(from, to, 1);
        assert_ne!(text, base, "{from}");
        let error = parse(&text, Path::new("test.toml")).unwrap_err();
        assert!(error.to_string().contains(remedy), "{remedy}: {error}");
    }
}

#[test]
fn under_schedutil_the_speed_is_the_bandwidth_in_use_and_no_deadline_is_missed() {
    let text = r#"
duration = "10s"
[machine]
speeds_mhz = [1, 1000]
continuous = true
runtimes_follow_speed = true
governor = "schedutil"
[[task]]
name = "a"
arrival = { periodic = "20ms" }
demand = { constant = "6ms" }
deadline = "20001us"
scheduling = { deadline = { runtime = "6ms", period = "20ms" } }
[[task]]
name = "b"
arrival = { periodic = "50ms" }
phase = "7ms"
demand = { constant = "10ms" }
deadline = "50001us"
scheduling = { deadline = { runtime = "10ms", period = "50ms" } }
"#;
    let proportional = run(&scenario(text));
    for task in &proportional.tasks {
        assert_eq!(task.missed, 0, "{task:?}");
    }
    // Half of the bandwidth is in use all the time but for the begin: half the speed, an eighth of
    // the power.
    assert!(
        (proportional.energy - 10.0 / 8.0).abs() < 0.02,
        "{}",
        proportional.energy
    );
    let full = run(&scenario(&text.replace("schedutil", "performance")));
    assert!((full.energy - 5.0).abs() < 0.02, "{}", full.energy);
    // A task that uses half of what was reserved lets the CPU slow down further, from the zero-lag
    // time on.
    let less = run(&scenario(
        &text.replace("\"6ms\" }\ndeadline", "\"3ms\" }\ndeadline"),
    ));
    assert!(less.energy < 0.9 * proportional.energy, "{}", less.energy);
    assert!(less.tasks.iter().all(|task| task.missed == 0));
}
