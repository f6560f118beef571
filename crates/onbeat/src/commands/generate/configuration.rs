//! The man page of the service's configuration, made from the comments of the installed example.

use clap_mangen::roff::{Roff, roman};

const EXAMPLE: &str = include_str!("../../../../../packaging/onbeat.toml");

pub(super) fn page() -> Roff {
    page_of(EXAMPLE)
}

/// Each table is a section, each comment a paragraph; defaults and examples (`#:`) stay as they
/// are.
fn page_of(example: &str) -> Roff {
    let mut page = Roff::new();
    page.control("TH", ["ONBEAT.TOML", "5", "", "onbeat"]);
    page.control("SH", ["NAME"]);
    page.text([roman(
        "onbeat.toml - limits, quotas and rules of onbeat's service",
    )]);
    page.control("SH", ["DESCRIPTION"]);
    for block in example.split("\n\n") {
        let lines: Vec<&str> = block.lines().collect();
        for heading in lines.iter().filter(|line| line.starts_with('[')) {
            page.control("SH", [*heading]);
        }
        for part in lines.chunk_by(|one, next| kind(one) == kind(next)) {
            match part.first().map(|line| kind(line)) {
                Some(LineKind::Comment) => {
                    let words: Vec<&str> = part.iter().map(|line| line[1..].trim()).collect();
                    page.control("PP", []).text([roman(words.join(" "))]);
                }
                Some(LineKind::Value) => {
                    page.control("RS", []).control("EX", []);
                    for line in part {
                        page.text([roman(*line)]);
                    }
                    page.control("EE", []).control("RE", []);
                }
                Some(LineKind::Nothing) | None => {}
            }
        }
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([roman("onbeat-daemon(1)")]);
    page
}

#[derive(PartialEq)]
enum LineKind {
    Comment,
    Value,
    Nothing,
}

fn kind(line: &str) -> LineKind {
    if line.starts_with("#:") {
        LineKind::Value
    } else if line.starts_with("# ") {
        LineKind::Comment
    } else {
        LineKind::Nothing
    }
}
