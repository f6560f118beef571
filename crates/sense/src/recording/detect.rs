//! Tells what a file is from how it begins.

use super::lines::Lines;
use super::text::{Content, content};
use super::{ReadError, Recording, csv, own, perf_data, perfetto, text};

/// The lines that are looked at for a time in nanoseconds, if no event is among them.
const LOOKED_AT: usize = 8;

type Reader = fn(&mut Lines<'_>) -> Result<Recording, ReadError>;

/// What a file of other kinds begins with, and what to do about it.
const OTHERS: [(&[u8], &str); 6] = [
    (
        b"\x17\x08\x44tracing",
        "trace-cmd's binary data: 'trace-cmd report -i FILE > FILE.txt'",
    ),
    (
        b"\xff\xfe",
        "text in UTF-16: 'iconv -f UTF-16 -t UTF-8 FILE > FILE.txt'",
    ),
    (b"\xfd7zXZ", "compressed with xz: 'xz -d FILE'"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: 'zstd -d FILE'"),
    (b"BZh", "compressed with bzip2: 'bzip2 -d FILE'"),
    (b"PK\x03\x04", "a zip archive: 'unzip FILE'"),
];

pub(super) fn reader(lines: &Lines<'_>) -> Result<Reader, ReadError> {
    let head = lines.head();
    let no = |reason: &str| lines.refused(reason);
    if head.is_empty() {
        return Err(no(if lines.is_cut() {
            "its compressed data is cut off before the first line; copy or record it again"
        } else {
            "it is empty"
        }));
    }
    if let Some((_, reason)) = OTHERS.iter().find(|(begin, _)| head.starts_with(begin)) {
        return Err(no(&format!("it is {reason} makes a recording of it")));
    }
    // What zlib's data begins with.
    if let Some(at) = head.windows(7).position(|bytes| bytes == b"TRACE:\n")
        && head
            .get(at + 7..)
            .is_some_and(|data| data.starts_with(b"\x78"))
    {
        return Err(no(
            "it is what 'atrace -z' compressed: record again without -z",
        ));
    }
    if head.starts_with(b"PERFILE2") {
        return Ok(perf_data::read);
    }
    if perfetto::is_trace(head) {
        return Ok(perfetto::read);
    }
    let begin = String::from_utf8_lossy(head);
    let begins_with = |tag: &str| {
        let first = begin.trim_start().get(..tag.len());
        first.is_some_and(|first| first.eq_ignore_ascii_case(tag))
    };
    if begin.contains("sch delay") && begin.contains("wait time") {
        return Err(no(
            "it is what 'perf sched timehist' says about perf's data; take 'perf script' of the same data",
        ));
    }
    Ok(if begins_with("<!doctype html") || begins_with("<html") {
        text::read_page
    } else if begin.lines().any(own::is_first_line) {
        own::read
    } else if begins_with("{") || begins_with("[{") {
        text::read_json
    } else if begin
        .lines()
        .any(|line| matches!(content(line), Content::Event(_)))
    {
        text::read
    } else if begin.lines().take(LOOKED_AT).any(csv::is_row) {
        csv::read
    } else {
        text::read
    })
}
