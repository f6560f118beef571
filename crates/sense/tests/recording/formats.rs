use onbeat_model::Instant;
use onbeat_sense::recording::Format;

use crate::{bursts, check, read_bytes, text_of};

#[test]
fn a_name_may_look_like_other_fields_and_a_time_have_nanoseconds() {
    let event = "sched_wakeup: comm=a b=c pid=7 prio=120 target_cpu=000\n";
    for head in [
        "# tracer: nop\n      my-app 2.0-7     (      5) [001] d..2.   951.557256: ",
        "# tracer: nop\n           <...>-7       [001] d..2.   951.557256000: ",
        "# tracer: nop\n  a [b] 1: c-d-7  [001] d..2.   951.557256: ",
        "   my app 2.0     8/9 [000]   951.557256: sched:",
        "         swapper     0 [000]   951.557256000:          1 sched:",
        "             :-1 29310/-1    [001]   951.557256: sched:",
    ] {
        let recording = read_bytes(format!("{head}{event}")).unwrap();
        check(&recording);
        let [burst] = bursts(&recording)[..] else {
            panic!("{head}");
        };
        let woke = Instant::from_ns(951_557_256_000);
        assert_eq!((burst.woke, burst.task.tid), (woke, 7), "{head}");
    }
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
