//! The parts of the man pages beside the flags: exit statuses, files, environment, examples.
//!
//! They are in `manual.txt`. Each block is a section: the pages that have it, its title, and terms
//! with their texts, which are indented.

use onbeat_command::pages::{CHILD_EXIT_STATUS, EXIT_STATUS, Section};

const TEXT: &str = include_str!("manual.txt");

/// The sections of a page, in order: `onbeat`, or `onbeat-COMMAND`.
pub(crate) fn sections(page: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = TEXT
        .split("\n\n")
        .filter_map(|block| {
            let (head, entries) = block.split_once('\n')?;
            let (pages, title) = head.split_once(": ")?;
            let entries = entries_of(entries).leak();
            let has_it = pages.split(' ').any(|it| it == page);
            has_it.then_some(Section { title, entries })
        })
        .collect();
    let title = "EXIT STATUS";
    if sections.iter().all(|section| section.title != title) {
        let entries = match page {
            "onbeat-run" | "onbeat-watch" | "onbeat-reserve" => CHILD_EXIT_STATUS,
            _ => EXIT_STATUS,
        };
        sections.insert(0, Section { title, entries });
    }
    sections
}

fn entries_of(text: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut entries: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("    "), entries.last_mut()) {
            (Some(line), Some((_, lines))) => lines.push(line),
            _ => entries.push((line, Vec::new())),
        }
    }
    let entries = entries.into_iter();
    let joined = entries.map(|(term, lines)| (term, &*lines.join(" ").leak()));
    joined.collect()
}
