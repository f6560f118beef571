use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use onbeat_sense::recording::Facts;

use crate::{bursts, check, is_refused, read_bytes, text_of, trace};

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn samples() -> Vec<String> {
    let head = |text: String, lines: usize| {
        text.lines()
            .take(lines)
            .fold(String::new(), |text, line| text + line + "\n")
    };
    let facts = serde_json::to_string(&Facts::gather(&["a b".into()])).unwrap();
    let burst = r#"{"event":"burst","tid":7,"started_ticks":1,"woke_ns":9,"first_ran_ns":9,"blocked_ns":10,"executed_ns":1,"preempted":0,"waker":0,"exhausted":false}"#;
    let csv = trace("lime/periodic/p-10task_u60_mu15_ms_v10_task=00_period=13000000.csv");
    vec![
        head(text_of("apps/mplayer25.l0.txt.gz"), 40),
        head(text_of("perf/rtapp10.sched.txt.gz"), 30),
        head(std::fs::read_to_string(csv).unwrap(), 20),
        format!("{facts}\n{burst}\n{burst}\n{burst}\n"),
    ]
}

#[test]
fn an_event_that_cannot_be_read_counts_as_lost_and_is_told_with_its_place_and_what_to_do() {
    let text = text_of("apps/mplayer25.l0.txt.gz");
    for (broken, said) in [
        (
            "x-1 [000] d..2. 99999999999.5: sched_wakeup: comm=a pid=1",
            "this event cannot be read: 'x-1 [000]",
        ),
        (
            "x-1 [000] d..2. 12345: sched_wakeup: comm=a pid=1",
            "with the clock 'mono'",
        ),
        (
            "x-1 [000] d..2. 1.5: sched_wakeup: comm=a pid=-3 prio=1",
            "the fields of sched_wakeup",
        ),
        (
            "x-1 [000] d..2. 1.5: sched_switch: prev_comm=a",
            "the fields of sched_switch",
        ),
    ] {
        let mut lines: Vec<_> = text.lines().collect();
        lines.insert(500, broken);
        let recording = read_bytes(lines.join("\n") + "\n").unwrap();
        let warning = &recording.warnings[0];
        assert!(
            warning.contains("the first in line 501: ") && warning.contains(said),
            "{warning}"
        );
        assert_eq!(recording.lost, 1, "{broken}");
        // Where that is most of the file, none of it is trusted.
        is_refused(format!("# tracer: nop\n{broken}\n"), "made:2: ", &[said]);
    }
}

#[test]
fn lines_that_are_no_events_are_passed_over_and_told_if_they_are_more_than_a_few() {
    let text = text_of("apps/mplayer25.l0.txt.gz");
    let expected = read_bytes(&text).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    for number in 0..9 {
        let recording = read_bytes(lines.join("\n") + "\n").unwrap();
        assert_eq!(recording, expected, "{number}");
        lines.insert(500 + 100 * number, "what is this");
    }
    let recording = read_bytes(lines.join("\n") + "\n").unwrap();
    assert_eq!(recording.events, expected.events);
    assert_eq!(
        recording.warnings,
        ["9 lines that are no events were passed over, the first is line 501: 'what is this'"]
    );
}

#[test]
fn a_row_that_is_no_time_is_told_with_its_place() {
    let begin = "made:3: the first column is no time";
    is_refused("1000\n2000\n-3000\n4000\n", begin, &[]);
}

#[test]
fn a_recording_cut_off_anywhere_is_read_up_to_there() {
    for text in samples() {
        let whole = bursts(&read_bytes(&text).unwrap());
        let first_line = text.find('\n').unwrap() + 1;
        for cut in first_line..text.len() {
            let recording = read_bytes(&text.as_bytes()[..cut])
                .unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
            check(&recording);
            let got = bursts(&recording);
            // A wakeup whose switches are cut off may stand as a burst of its own at the very end.
            let same = got.iter().zip(&whole).take_while(|(a, b)| a == b).count();
            assert!(same + 1 >= got.len(), "cut at {cut}: {got:?}");
        }
    }
}

#[test]
fn a_cut_off_last_line_is_left_out_with_a_warning() {
    let text = text_of("apps/mplayer25.l0.txt.gz");
    let recording = read_bytes(&text.as_bytes()[..text.len() - 20]).unwrap();
    let last = text.lines().count();
    assert_eq!(
        recording.warnings,
        [format!(
            "line {last} is cut off: it is left out, and the recording ends before it"
        )]
    );
    let csv = read_bytes("1000,5\n2000,5\n3000").unwrap();
    assert_eq!((bursts(&csv).len(), csv.warnings.len()), (2, 1));
}

#[test]
fn a_compressed_recording_cut_off_anywhere_is_read_up_to_there_with_a_warning() {
    for text in samples() {
        let whole = gzipped(text.as_bytes());
        let mut read_some = false;
        for cut in 0..whole.len() {
            match read_bytes(&whole[..cut]) {
                Ok(recording) => {
                    check(&recording);
                    assert!(
                        recording
                            .warnings
                            .iter()
                            .any(|w| w.contains("compressed data is cut"))
                    );
                    read_some = true;
                }
                Err(error) => assert!(error.to_string().contains("is no recording"), "{error}"),
            }
        }
        assert!(read_some);
    }
}

#[test]
fn compressed_data_that_is_damaged_is_told_as_such() {
    let mut bytes = gzipped(text_of("apps/mplayer25.l0.txt.gz").as_bytes());
    let checksum = bytes.len() - 6;
    bytes[checksum] ^= 0xff;
    is_refused(&bytes, "", &["is damaged", "gzip -t"]);
}

#[test]
fn a_line_that_never_ends_is_refused_after_a_bounded_part_of_it() {
    let mut taken = 0_usize;
    let endless = io::repeat(b'x').take(1 << 30);
    let counted = Counted(b"# tracer: nop\n".chain(endless), &mut taken);
    let error = onbeat_sense::recording::read_from(counted, "made")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("made:2: the line is longer than"),
        "{error}"
    );
    assert!(taken < 4 << 20, "{taken} bytes were read");
    is_refused([b'7'; 1 << 17], "", &["is no recording"]);
}

struct Counted<'a, R>(R, &'a mut usize);

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        *self.1 += read;
        Ok(read)
    }
}

/// Each with some bytes set, taken away or repeated: a sound recording, or an error that names the
/// file. The fuzz targets go on from here.
#[test]
fn a_damaged_recording_is_answered() {
    let mut seed: u64 = 1;
    let mut below = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % most
    };
    let plain = samples().into_iter().map(String::into_bytes);
    let samples: Vec<_> = plain.flat_map(|text| [gzipped(&text), text]).collect();
    for _ in 0..800 {
        let mut bytes = samples[below(samples.len())].clone();
        for _ in 0..1 + below(5) {
            let from = below(bytes.len());
            let to = (from + below(200)).min(bytes.len() - 1);
            match below(3) {
                0 => bytes[from] = b"0123456789.-:[]={}\"\n \t\0\xff"[below(24)],
                1 if from < to => drop(bytes.drain(from..to)),
                _ => bytes.extend_from_within(from..to.max(from)),
            }
        }
        match read_bytes(&bytes) {
            Ok(recording) => check(&recording),
            Err(error) => assert!(error.to_string().contains("made"), "{error}"),
        }
    }
}
