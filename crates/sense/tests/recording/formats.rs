//! The shapes that a line may have, how the format is told, and what is said of what is none.

use onbeat_model::Instant;
use onbeat_sense::recording::Format;

use crate::{bursts, check, read_bytes, text_of};

fn ftrace_line(head: &str) -> String {
    format!("# tracer: nop\n{head} sched_wakeup: comm=a b=c pid=7 prio=120 target_cpu=000\n")
}

fn is_told_as(text: &str, format: Format) {
    let recording = read_bytes(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    check(&recording);
    assert_eq!(recording.format, format, "{text}");
    let bursts = bursts(&recording);
    assert_eq!(bursts.len(), 1, "{text}");
    assert_eq!(bursts[0].woke, Instant::from_ns(951_557_256_000), "{text}");
    assert_eq!(bursts[0].task.tid, 7, "{text}");
}

#[test]
fn ftrace_lines_are_read_with_and_without_flags_processes_and_nanoseconds() {
    for head in [
        "          <idle>-0       [000] dNh4.   951.557256:",
        "          <idle>-0       [000]   951.557256:",
        "          <idle>-0     (-------) [000] dNh4.   951.557256:",
        "      my-app 2.0-7     (      5) [001] d..2.   951.557256:",
        "           <...>-7       [001] d..2.   951.557256000:",
        "  a [b] 1: c-d-7  [001] d..2.   951.557256:",
    ] {
        is_told_as(&ftrace_line(head), Format::Ftrace);
    }
}

#[test]
fn perf_lines_are_read_with_processes_periods_and_without_cpus() {
    let event = "sched:sched_wakeup: comm=a b=c pid=7 prio=120 target_cpu=000\n";
    for head in [
        "         swapper     0 [000]   951.557256:       ",
        "   my app 2.0     8/9 [000]   951.557256: ",
        "         swapper     0 [000]   951.557256000:          1 ",
        "         swapper     0   951.557256: ",
        "             :-1 29310/-1    [001]   951.557256: ",
    ] {
        is_told_as(&format!("{head}{event}"), Format::PerfScript);
    }
    let with_calls = format!(
        "swapper 0 [000] 951.557256: {event}\tffffffff8109a2b4 try_to_wake_up+0x1f4 ([kernel])\n\
         \t    7f2c0 main (/bin/a)\n\n"
    );
    is_told_as(&with_calls, Format::PerfScript);
}

#[test]
fn events_that_ftrace_overwrote_are_counted_from_its_header() {
    let text = text_of("apps/poisson.l0.txt.gz").replace("2613/2613", "2613/3000");
    let recording = read_bytes(text).unwrap();
    assert_eq!(recording.lost, 387);
    assert!(
        recording.warnings[0].contains("387 events"),
        "{:?}",
        recording.warnings
    );
    assert!(recording.warnings[0].contains("larger buffer"));
}

#[test]
fn a_csv_may_have_a_heading_comments_and_other_separators() {
    for text in [
        "951557256000\n951557256001\n",
        "release,lo,hi\n951557256000,1,2\n951557256001,1,2\n",
        "# made by hand\n951557256000;1\n\n951557256001;1",
        "951557256001\r\n951557256000\r\n",
    ] {
        let recording = read_bytes(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(recording.format, Format::Csv);
        let at: Vec<_> = bursts(&recording).iter().map(|b| b.woke.as_ns()).collect();
        assert_eq!(at, [951_557_256_000, 951_557_256_001], "{text}");
    }
}

#[test]
fn what_is_no_recording_is_told_as_such_with_what_to_do() {
    for (bytes, said) in [
        (&b""[..], "it is empty"),
        (b"\n\n", "begins with ''"),
        (
            b"Dear diary,\ntoday nothing woke.\n",
            "begins with 'Dear diary,'",
        ),
        (b"\x7fELF\x02\x01\x01\0\0\0", "nor onbeat's own recording"),
        (
            b"{\"format\":\"something-else\"}\n",
            "it is JSON without ftrace's text",
        ),
        (b"PERFILE2\x68\0\0\0", "it is perf's data, which is broken"),
        (b"\x17\x08\x44tracing6\0", "trace-cmd report -i FILE"),
        (b"\x1f\x8b\x08", "cut off before the first line"),
    ] {
        let error = read_bytes(bytes).unwrap_err().to_string();
        assert!(error.starts_with("made is no recording"), "{error}");
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_file_that_is_not_there_and_a_folder_are_told_with_their_names() {
    for path in ["/nonexistent/recording.gz", "/"] {
        let error = onbeat_sense::recording::read(path).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot read {path}: ")),
            "{error}"
        );
    }
}
