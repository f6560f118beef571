use onbeat_model::Span;
use onbeat_sense::recording::Format;

use crate::{bursts, check, is_refused, read_bytes};

const NAMES: [&str; 2] = ["sched:sched_waking", "sched:sched_switch"];

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// `perf_event_attr` of a tracepoint, whose samples hold PERF_SAMPLE_TID, TIME, CPU, RAW and
/// IDENTIFIER.
fn attribute(event: u64) -> Vec<u8> {
    let kind = u64::from(2_u32) | 112 << 32;
    let sample_type = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10 | 1 << 16;
    let sample_id_all = 1 << 18;
    let fields = words(&[kind, event, 1, sample_type, 0, sample_id_all]);
    [fields, vec![0; 64]].concat()
}

fn comm(name: &str) -> Vec<u8> {
    format!("{name:\0<16}").into_bytes()
}

/// A sample of the event at `ns`, where the thread `tid` of the process 5 runs; `flags` are the
/// event's.
fn sample(event: u64, ns: u64, tid: u32, flags: u32, fields: &[u8]) -> Vec<u8> {
    let raw = [halves(&[flags << 16, tid]), fields.to_vec(), vec![0; 4]].concat();
    let body = [
        words(&[event]),
        halves(&[5, tid]),
        words(&[ns]),
        halves(&[0, 0, raw.len() as u32]),
        raw,
    ]
    .concat();
    let size = body.len() as u32 + 8;
    [halves(&[9, size << 16]), body].concat()
}

fn waking(ns: u64, by: u32, flags: u32) -> Vec<u8> {
    let fields = [comm("beat"), halves(&[7, 120, 0])].concat();
    sample(0, ns, by, flags, &fields)
}

fn switch(ns: u64, from: (&str, u32), state: u64, to: (&str, u32)) -> Vec<u8> {
    let from_fields = [comm(from.0), halves(&[from.1, 120]), words(&[state])].concat();
    let fields = [from_fields, comm(to.0), halves(&[to.1, 120])].concat();
    sample(1, ns, from.1, 0, &fields)
}

fn data(records: &[u8]) -> Vec<u8> {
    let begin = 104;
    let attributes =
        (0..2).flat_map(|event| [attribute(event), words(&[begin + 256 + 8 * event, 8])].concat());
    let attributes: Vec<u8> = attributes.chain(words(&[0, 1])).collect();
    let (data, size) = (begin + attributes.len() as u64, records.len() as u64);
    let described = (0..2).flat_map(|event: u64| {
        let name = format!("{:\0<64}", NAMES[event as usize]);
        [
            attribute(event),
            halves(&[1, 64]),
            name.into_bytes(),
            words(&[event]),
        ]
        .concat()
    });
    let described: Vec<u8> = halves(&[2, 112]).into_iter().chain(described).collect();
    let event_desc = 1 << 12;
    let sections = [begin, 272, data, size, 0, 0, event_desc, 0, 0, 0];
    let header = [b"PERFILE2".to_vec(), words(&[104, 128]), words(&sections)].concat();
    let place = words(&[data + size + 16, described.len() as u64]);
    [header, attributes, records.to_vec(), place, described].concat()
}

fn job() -> Vec<u8> {
    [
        waking(1000, 9, 0),
        switch(3000, ("idle", 0), 0, ("beat", 7)),
        switch(8000, ("beat", 7), 1, ("idle", 0)),
    ]
    .concat()
}

#[test]
fn the_samples_of_wakeups_and_switches_are_jobs() {
    let recording = read_bytes(data(&job())).unwrap();
    check(&recording);
    assert_eq!(recording.format, Format::PerfScript);
    assert_eq!(recording.tasks[0].comm.to_text(), "beat");
    assert_eq!(recording.tasks[0].pid, 5);
    let bursts = bursts(&recording);
    assert_eq!(bursts.len(), 1);
    assert_eq!(
        (bursts[0].woke.as_ns(), bursts[0].executed),
        (1000, Span::from_us(5))
    );
    assert_eq!(bursts[0].waker, 9);
    // In a timer's interrupt.
    let recording = read_bytes(data(&waking(1000, 9, 8))).unwrap();
    assert_eq!(crate::bursts(&recording)[0].waker, 0);
}

#[test]
fn data_without_events_of_the_scheduler_or_that_ends_in_its_header_is_told_so() {
    let whole = data(&[]);
    for (bytes, said) in [
        (&whole[..], "record with 'perf sched record'"),
        (&whole[..40], "is broken or cut off"),
    ] {
        is_refused(bytes, "made is no recording", &[said]);
    }
}

/// Recorded by perf itself, with `-z`, to a pipe, and both. perf lost some of the events.
#[test]
fn real_data_that_is_compressed_or_from_a_pipe_has_the_period() {
    for kind in ["compressed", "pipe", "pipe-compressed"] {
        let path = crate::trace(&format!("perf/beat10.{kind}.data.gz"));
        let recording = onbeat_sense::recording::read(path).unwrap();
        check(&recording);
        let woke = crate::bursts_of(&recording, "beat");
        let steps = woke.windows(2).map(|w| w[1].woke.since(w[0].woke));
        let of_10_ms = steps.filter(|step| step.as_ns().abs_diff(10_000_000) < 100_000);
        assert!(of_10_ms.count() >= 20, "{kind}");
    }
}

/// Without `-a`, perf hears only of what happens while the program runs: no switch to it, and no
/// wakeup.
#[test]
fn data_without_the_begins_of_bursts_is_told_so() {
    let ends = (1..30).flat_map(|n| switch(n * 8000, ("beat", 7), 1, ("idle", 0)));
    let recording = read_bytes(data(&ends.collect::<Vec<_>>())).unwrap();
    let [warning] = &recording.warnings[..] else {
        panic!("{:?}", recording.warnings);
    };
    assert!(warning.contains("perf record -a"), "{warning}");
}
