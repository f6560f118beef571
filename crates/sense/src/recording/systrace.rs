//! Android's systrace: a page of HTML in which ftrace's text stands between
//! `<script class="trace-data" ...>` and `</script>`, beside other data and the viewer itself.

use super::collected::Collected;
use super::lines::Lines;
use super::sched_text::{Content, excerpt, take};
use super::{Format, ReadError, Recording, ftrace};

const BEGIN: &str = "class=\"trace-data\"";
const END: &str = "</script>";

/// The file that begins so is a page of HTML.
pub(super) fn is_page(head: &str) -> bool {
    let begins_with = |tag: &str| {
        let head = head.trim_start_matches('\u{feff}').trim_start();
        head.get(..tag.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(tag))
    };
    begins_with("<!doctype html") || begins_with("<html")
}

/// Where in the page the reader is.
enum PagePart {
    /// Outside of any data.
    Page,
    /// In data that did not show yet whether it is ftrace's text.
    Data,
    /// In ftrace's text.
    Ftrace,
}

/// Reads a whole recording.
pub(super) fn read(lines: &mut Lines<'_>) -> Result<Recording, ReadError> {
    let path = lines.path().to_owned();
    let mut collected = Collected::default();
    let mut place = PagePart::Page;
    let mut found = false;
    loop {
        let line = match place {
            PagePart::Ftrace => lines.next()?,
            PagePart::Page | PagePart::Data => lines.next_piece()?,
        };
        let Some(line) = line else { break };
        let mut text: &str = &line.text;
        if let PagePart::Page = place {
            let Some((_, data)) = text
                .split_once(BEGIN)
                .and_then(|(_, rest)| rest.split_once('>'))
            else {
                continue;
            };
            place = PagePart::Data;
            text = data;
        }
        let (data, ends) = match text.split_once(END) {
            Some((data, _)) => (data, true),
            None => (text, false),
        };
        let content = ftrace::content(data);
        if let PagePart::Data = place
            && (data.starts_with("# tracer:") || matches!(content, Content::Event(_)))
        {
            place = PagePart::Ftrace;
            found = true;
        }
        if let PagePart::Ftrace = place {
            if !line.ended && !ends {
                collected.cut_off(&format!("line {}", line.number));
                break;
            }
            take(content, &mut collected).map_err(|problem| ReadError::BrokenLine {
                path: path.clone(),
                line: line.number,
                problem: format!("{problem}: '{}'; {}", excerpt(data), ftrace::ADVICE),
            })?;
        }
        if ends {
            place = PagePart::Page;
        }
    }
    if !found {
        return Err(ReadError::NotARecording {
            path,
            reason: "it is a page of HTML without ftrace's text in a <script class=\"trace-data\">, as systrace \
                     writes it"
                .into(),
        });
    }
    Ok(collected.into_recording(Format::Systrace))
}
