use onbeat_model::{Burst, Span};
use onbeat_sense::recording::{Format, Recording, read};

use crate::{bursts_of, check, text_of, trace};

fn recorded(name: &str) -> Recording {
    let recording = read(trace(name)).unwrap();
    check(&recording);
    recording
}

/// How far the median distance of their wakeups is from this.
fn median_error(bursts: &[Burst], expected: Span) -> Span {
    let gaps = bursts.windows(2).map(|two| two[1].woke.since(two[0].woke));
    let mut gaps: Vec<Span> = gaps.collect();
    gaps.sort_unstable();
    gaps[gaps.len() / 2].abs_diff(expected)
}

#[test]
fn a_player_in_ftrace_has_one_burst_per_wakeup_and_no_task_but_its_own() {
    let recording = recorded("apps/mplayer25.l0.txt.gz");
    assert_eq!(recording.format, Format::Ftrace);
    assert_eq!(recording.warnings, Vec::<String>::new());
    let comms: Vec<_> = recording.tasks.iter().map(|t| t.comm.to_text()).collect();
    assert_eq!(comms, ["mplayer"]);
    let wakeups = text_of("apps/mplayer25.l0.txt.gz");
    let wakeups = wakeups.matches("sched_wakeup: comm=mplayer").count();
    assert_eq!(bursts_of(&recording, "mplayer").len(), wakeups);
}

#[test]
fn three_threads_of_a_program_are_told_apart_by_the_names_they_take() {
    let recording = recorded("apps/rtappTableI.l0.txt.gz");
    for (comm, us) in [("a", 3_505), ("b", 8_220), ("c", 100_000)] {
        let error = median_error(&bursts_of(&recording, comm), Span::from_us(us));
        // The first two are preempted by the hypervisor now and then; the median is not moved.
        assert!(error < Span::from_us(us / 2), "{comm}: {error} off {us} us");
    }
}

#[test]
fn a_thread_whose_switches_in_are_hidden_has_run_since_it_wrote_or_since_it_woke_an_idle_cpu() {
    let recording = recorded("apps/poisson.l0.txt.gz");
    let bursts = bursts_of(&recording, "python3");
    assert_eq!(bursts.len(), 290);
    assert!(bursts.iter().all(|burst| !burst.executed.is_zero()));
}

#[test]
fn the_execution_time_rebuilt_from_switches_is_the_kernels_own_account() {
    let recording = recorded("perf/rtapp10.sched.txt.gz");
    assert_eq!(recording.format, Format::PerfScript);
    let bursts = bursts_of(&recording, "ten");
    let rebuilt: Span = bursts.iter().map(|burst| burst.executed).sum();
    let accounted: u64 = text_of("perf/rtapp10.sched.txt.gz")
        .lines()
        .filter(|line| line.contains("sched_stat_runtime: comm=ten "))
        .filter_map(|line| line.split_once("runtime=")?.1.split_once(' '))
        .filter_map(|(runtime, _)| runtime.parse::<u64>().ok())
        .sum();
    let ratio = rebuilt.ratio(Span::from_ns(accounted));
    assert!((0.97..1.0).contains(&ratio), "{rebuilt} of {accounted} ns");
}

#[test]
fn both_ways_to_record_with_perf_give_the_thread_its_200_jobs() {
    for (name, jobs) in [
        ("perf/rtapp10.record.txt.gz", 199),
        ("perf/rtapp10.sched.txt.gz", 201),
    ] {
        let recording = recorded(name);
        let bursts = bursts_of(&recording, "ten");
        assert_eq!(bursts.len(), jobs, "{name}");
        let error = median_error(&bursts, Span::from_ms(10));
        assert!(error < Span::from_us(50), "{name}: {error}");
    }
}

#[test]
fn a_csv_is_one_task_with_a_burst_of_no_length_per_row() {
    for (ms, name) in [
        (1, "p-20task_u90_mu67_ms_v55_task=01_period=1000000.csv"),
        (97, "p-20task_u30_mu7_ms_v93_task=18_period=97000000.csv"),
    ] {
        let name = format!("lime/periodic/{name}");
        let recording = recorded(&name);
        assert_eq!(recording.format, Format::Csv);
        let rows = std::fs::read_to_string(trace(&name)).unwrap();
        let bursts = bursts_of(&recording, "csv");
        assert_eq!(bursts.len(), rows.lines().count());
        let is_moment = |burst: &Burst| *burst == Burst::pulse(burst.task, burst.woke);
        assert!(bursts.iter().all(is_moment), "{name}");
        let error = median_error(&bursts, Span::from_ms(ms));
        assert!(error < Span::from_us(10), "{name}: {error}");
    }
}
