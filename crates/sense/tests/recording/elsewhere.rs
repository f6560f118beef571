//! Recordings as other tools write them: 1.4 s of one program, in each format.
//!
//! `trace-cmd` recorded it, and its text is what it wrote, but for the names of other programs.
//! Perfetto's traces were made of the same events by its published schema, LTTng's text by
//! babeltrace2 from a trace of theirs.

use std::io::Write;

use onbeat_model::{Burst, Event, Instant, Span};
use onbeat_sense::recording::{Format, Recording, read};

use crate::{bursts, bursts_of, check, is_refused, read_bytes};

fn sample(name: &str) -> Recording {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recording/elsewhere/");
    let recording = read(format!("{folder}{name}")).unwrap_or_else(|error| panic!("{error}"));
    check(&recording);
    recording
}

/// The differences between the formats: the waker of the thread, and when the clock began.
fn alike(recording: &Recording) -> Vec<Burst> {
    let mut bursts = bursts_of(recording, "python3");
    let first = bursts[0].woke;
    for burst in &mut bursts {
        for at in [&mut burst.woke, &mut burst.first_ran, &mut burst.blocked] {
            *at = Instant::from_ns(at.since(first).as_ns());
        }
        burst.waker = 0;
    }
    bursts
}

#[test]
fn every_format_tells_the_same_bursts_of_a_program() {
    let expected = alike(&sample("beat.trace-cmd.txt.gz"));
    assert_eq!(expected.len(), 67);
    assert!(expected.iter().any(|burst| !burst.executed.is_zero()));
    for (name, format) in [
        ("beat.trace-cmd-R.txt.gz", Format::Ftrace),
        ("beat.systrace.html.gz", Format::Systrace),
        ("beat.babeltrace2.txt.gz", Format::Lttng),
        ("beat.pftrace", Format::Perfetto),
    ] {
        let recording = sample(name);
        assert_eq!(recording.format, format, "{name}");
        assert_eq!(alike(&recording), expected, "{name}");
        assert!(
            recording.warnings.is_empty(),
            "{name}: {:?}",
            recording.warnings
        );
    }
}

#[test]
fn perfettos_processes_are_told_and_timers_wake_nobody_elses_thread() {
    let recording = sample("beat.compact.pftrace");
    let mut tasks = recording.tasks.iter();
    let program = tasks.find(|task| task.comm.to_text() == "python3");
    assert_eq!(program.unwrap().pid, 11_289);
    let bursts = bursts_of(&recording, "python3");
    assert!(bursts.iter().all(|burst| burst.waker == 0));
}

const LTTNG: &str = "\
[23:59:59.999999000] (+?.?????????) board sched_waking: { cpu_id = 0 }, { comm = \"a\", tid = 7, prio = 20, target_cpu = 0 }
[23:59:59.999999500] (+0.000000500) board sched_switch: { cpu_id = 0 }, { prev_comm = \"swapper/0\", prev_tid = 0, prev_prio = 20, prev_state = 0, next_comm = \"a\", next_tid = 7, next_prio = 20 }
[00:00:00.000009500] (+0.000010000) board sched_switch: { cpu_id = 0 }, { prev_comm = \"a\", prev_tid = 7, prev_prio = 20, prev_state = 1, next_comm = \"swapper/0\", next_tid = 0, next_prio = 20 }
";

#[test]
fn a_kernel_trace_of_lttng_goes_on_over_midnight() {
    let recording = read_bytes(LTTNG).unwrap();
    let bursts = bursts_of(&recording, "a");
    assert_eq!(bursts.len(), 1);
    assert_eq!(
        bursts[0].blocked.since(bursts[0].woke),
        Span::from_ns(10_500)
    );
    assert_eq!(bursts[0].executed, Span::from_us(10));
}

#[test]
fn a_broken_line_of_lttng_is_told_with_its_place() {
    for (broken, said) in [
        (
            "[10:00:00.000000001] (+0.0) board sched_switch: { cpu_id = 0 }, { prev_comm = \"a\" }\n",
            "the fields of sched_switch",
        ),
        (
            "[10:00:00.000000001] (+0.0) board x: { cpu_id = 0 }, { \"a }\n",
            "the fields of x",
        ),
    ] {
        is_refused(format!("{LTTNG}{broken}"), "made:4: ", &[said]);
    }
}

#[test]
fn a_page_whose_trace_is_broken_is_told_so() {
    let page = "<html>\n<script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\nsched_switch: a\n</script>\n";
    is_refused(page, "made:4: this event cannot be read", &[]);
}

#[test]
fn a_page_may_have_lines_of_any_length_outside_of_its_trace() {
    let page = format!(
        "<html>\n<script>{}</script>\n<script class=\"trace-data\">\n\
         <idle>-0 [000] d.h. 1.000100: sched_wakeup: comm=a pid=7 prio=120 target_cpu=000\n</script>\n",
        "x".repeat(5 << 20)
    );
    let recording = read_bytes(page).unwrap();
    assert_eq!(
        (recording.format, bursts(&recording).len()),
        (Format::Systrace, 1)
    );
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = varint(u64::from(number) << 3 | 2);
    field.extend(varint(bytes.len() as u64));
    field.extend(bytes);
    field
}

fn number(number: u32, value: u64) -> Vec<u8> {
    [varint(u64::from(number) << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A packet with a waking of the thread 7 at `at`, where the thread 9 runs; `flags` are the
/// event's, `more` the bundle's.
fn packet_with(at: u64, flags: &[u8], more: &[u8]) -> Vec<u8> {
    let waking = [field(1, b"a\xff"), number(2, 7), number(3, 120)].concat();
    let event = [
        number(1, at),
        number(2, 9),
        flags.to_vec(),
        field(20, &waking),
    ]
    .concat();
    let bundle = [number(1, 0), field(2, &event), more.to_vec()].concat();
    field(1, &field(1, &bundle))
}

fn packet(at: u64, more: &[u8]) -> Vec<u8> {
    packet_with(at, &[], more)
}

#[test]
fn the_thread_that_runs_is_the_waker_unless_an_interrupt_is_or_nobody_knows() {
    for (flags, waker) in [
        (number(5, 1), 9),
        (number(5, 9), 0),
        (number(5, 0x11), 0),
        (Vec::new(), 0),
    ] {
        let recording = read_bytes(packet_with(1000, &flags, &[])).unwrap();
        assert_eq!(bursts(&recording)[0].waker, waker, "{flags:?}");
    }
}

#[test]
fn events_that_perfetto_lost_are_told() {
    let trace = [packet(1000, &[]), packet(5000, &number(3, 1))].concat();
    let recording = read_bytes(trace).unwrap();
    check(&recording);
    assert_eq!(recording.lost, 1);
    assert!(recording.events.contains(&Event::Lost {
        at: Instant::from_ns(5000),
        count: 1
    }));
}

#[test]
fn packets_that_perfetto_compressed_tell_the_same() {
    let whole = [packet(1000, &[]), packet(2000, &[])].concat();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&whole).unwrap();
    let mut zstd = Vec::with_capacity(zstd_safe::compress_bound(whole.len()));
    zstd_safe::compress(&mut zstd, &whole, 1).unwrap();
    let plain = read_bytes(&whole).unwrap();
    for (number, packets) in [(50, zlib.finish().unwrap()), (133, zstd)] {
        let recording = read_bytes(field(1, &field(number, &packets))).unwrap();
        assert_eq!(recording.events, plain.events, "{number}");
        let twice = field(1, &field(number, &field(1, &field(number, &packets))));
        is_refused(twice, "", &["compressed packets here"]);
    }
}

#[test]
fn a_perfetto_trace_cut_off_anywhere_is_read_up_to_there() {
    let first = packet(1000, &[]);
    let whole = [first.clone(), packet(2000, &[])].concat();
    for cut in first.len()..whole.len() {
        let recording = read_bytes(&whole[..cut]).unwrap();
        assert_eq!(bursts(&recording).len(), 1, "cut at {cut}");
        let warned = recording
            .warnings
            .iter()
            .any(|warning| warning.contains("is cut off"));
        assert_eq!(warned, cut > first.len(), "cut at {cut}");
    }
}

#[test]
fn a_broken_packet_is_told_with_its_place() {
    let first = packet(1000, &[]);
    let place = format!("made: at byte {}: ", first.len());
    let uneven = field(
        1,
        &field(1, &field(4, &[field(1, &[5, 5]), field(3, &[7])].concat())),
    );
    let zipped = field(1, &field(50, b"no zlib"));
    for (broken, said) in [
        (uneven, "the ftrace events of this packet are broken"),
        (zipped, "the compressed packets here are damaged"),
        (vec![0x0b], "no packet begins here"),
        (
            [vec![0x0a], varint(1 << 40)].concat(),
            "is longer than 67108864 bytes",
        ),
        (field(1, &[0x08]), "this packet is broken"),
    ] {
        is_refused([first.clone(), broken].concat(), &place, &[said]);
    }
}

#[test]
fn a_perfetto_trace_without_scheduling_events_says_what_to_record() {
    is_refused(field(1, &number(8, 1)), "", &["linux.ftrace"]);
}
