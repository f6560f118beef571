//! The table's columns: which of them a screen has room for, what is in them, and how they are
//! sorted.

use std::cmp::Ordering;

use onbeat_model::Bandwidth;
use ratatui::style::Style;
use ratatui::text::Span as Words;

use crate::application::ShownApplication;
use crate::screen::{ScreenLook, Tone};
use crate::text::{Align, fitted, harmless};
use crate::thread::ShownThread;
use crate::{State, ThreadSnapshot};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Column {
    #[default]
    State,
    Thread,
    Tid,
    Period,
    Confidence,
    Share,
    Missed,
    Response,
    Why,
}

/// In the order in which they stand.
const ALL: [Column; 9] = [
    Column::Thread,
    Column::Tid,
    Column::State,
    Column::Period,
    Column::Confidence,
    Column::Share,
    Column::Missed,
    Column::Response,
    Column::Why,
];
/// In the order in which they get room, each with how much: what comes twice gets more.
const ROOM: [(Column, usize); 13] = [
    (Column::Thread, 10),
    (Column::State, 9),
    (Column::Share, NUMBERS),
    (Column::Period, 8),
    (Column::Missed, 6),
    (Column::Share, NUMBERS + 7),
    (Column::Tid, 7),
    (Column::Response, 8),
    (Column::Confidence, 4),
    (Column::Thread, 15),
    (Column::Response, 10),
    (Column::Why, 34),
    (Column::Response, 30),
];
/// `12.3/15.0%`
const NUMBERS: usize = 10;

impl Column {
    /// Those that can be sorted by, in their order from left to right.
    const SORTED: [Self; 7] = [
        Self::Thread,
        Self::Tid,
        Self::State,
        Self::Period,
        Self::Confidence,
        Self::Share,
        Self::Missed,
    ];

    pub(crate) fn beside(self, right: bool) -> Self {
        let count = Self::SORTED.len();
        let place = Self::SORTED.iter().position(|&one| one == self);
        let step = if right { 1 } else { count - 1 };
        let next = (place.unwrap_or(0) + step) % count;
        Self::SORTED.get(next).copied().unwrap_or(self)
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::State => "STATE",
            Self::Thread => "THREAD",
            Self::Tid => "TID",
            Self::Period => "PERIOD",
            Self::Confidence => "CONF",
            Self::Share => "USED/RESERVED",
            Self::Missed => "MISSED",
            Self::Response => "RESPONSE",
            Self::Why => "WHY",
        }
    }

    const fn align(self) -> Align {
        match self {
            Self::State | Self::Thread | Self::Response | Self::Why => Align::Left,
            Self::Tid | Self::Period | Self::Confidence | Self::Share | Self::Missed => {
                Align::Right
            }
        }
    }

    pub(crate) const fn descends(self) -> bool {
        matches!(self, Self::Confidence | Self::Share | Self::Missed)
    }

    pub(crate) fn compare(self, a: &ShownThread, b: &ShownThread) -> Ordering {
        let (one, other) = (&a.seen, &b.seen);
        match self {
            Self::State => one.state.cmp(&other.state),
            Self::Thread => name(one).cmp(&name(other)),
            Self::Tid | Self::Response | Self::Why => one.task.id.cmp(&other.task.id),
            // Without a period, last.
            Self::Period => {
                let key = |seen: &ThreadSnapshot| (seen.period.is_none(), seen.period);
                key(one).cmp(&key(other))
            }
            Self::Confidence => one.confidence.total_cmp(&other.confidence),
            Self::Share => a.used().cmp(&b.used()),
            Self::Missed => one.missed.cmp(&other.missed),
        }
    }

    pub(crate) fn cell(
        self,
        thread: &ShownThread,
        width: usize,
        look: &ScreenLook,
        now: onbeat_model::Instant,
    ) -> Vec<Words<'static>> {
        let seen = &thread.seen;
        let plain = |text: String| vec![Words::raw(fitted(&text, width, self.align()))];
        match self {
            Self::Thread => plain(name(seen)),
            Self::Tid => plain(seen.task.id.tid.to_string()),
            Self::State => {
                let word = fitted(state(seen.state), width, Align::Left);
                let mut style = look.style(tone(seen.state));
                if thread.is_news(now) {
                    style = style.patch(look.style(Tone::News));
                }
                vec![Words::styled(word, style)]
            }
            Self::Period => plain(seen.period.map_or_else(dash, |period| period.to_string())),
            Self::Confidence if seen.period.is_none() => plain(dash()),
            Self::Confidence => plain(confidence(seen.confidence)),
            Self::Share => share((thread.used(), thread.reserved()), width, look),
            Self::Missed if seen.jobs == 0 => plain(dash()),
            Self::Missed => missed(seen.missed, width, look),
            Self::Response => responses(thread, width, look, now),
            Self::Why => plain(harmless(&seen.reason())),
        }
    }

    pub(crate) fn sum(
        self,
        application: &ShownApplication,
        width: usize,
        look: &ScreenLook,
    ) -> Vec<Words<'static>> {
        let sums = &application.sums;
        let plain = |text: String| vec![Words::raw(fitted(&text, width, self.align()))];
        match self {
            Self::Thread => plain(application.name()),
            Self::Tid => plain(sums.pid.to_string()),
            Self::Share => {
                let used = Some(application.used());
                share((used, application.reserved), width, look)
            }
            Self::Missed if sums.jobs > 0 => missed(sums.missed, width, look),
            Self::Why => plain(sums.served()),
            Self::State | Self::Period | Self::Confidence | Self::Missed | Self::Response => {
                plain(String::new())
            }
        }
    }

    pub(crate) fn heading(self, width: usize) -> String {
        let title = match self {
            Self::Share if width < self.title().len() => "USED/RSVD",
            _ => self.title(),
        };
        fitted(title, width, self.align())
    }
}

/// The columns that there is room for in `width`, each with its own width, and one column between
/// two.
pub(crate) fn fitting(width: usize) -> Vec<(Column, usize)> {
    let mut widths: Vec<(Column, usize)> = ALL.map(|column| (column, 0)).to_vec();
    let mut left = width + 1;
    for (column, room) in ROOM {
        let Some((_, has)) = widths.iter_mut().find(|(one, _)| *one == column) else {
            continue;
        };
        let gap = usize::from(*has == 0);
        let more = room + gap - *has;
        if more <= left {
            *has = room;
            left -= more;
        } else if *has > 0 {
            *has += left;
            left = 0;
        }
    }
    // The last one, if it is there, takes what is left over; else the name does.
    let whole = widths
        .iter()
        .rposition(|&(column, has)| column == Column::Why && has > 0);
    if let Some((_, has)) = widths
        .get_mut(whole.unwrap_or(0))
        .filter(|(_, has)| *has > 0)
    {
        *has += left;
    }
    widths.retain(|&(_, has)| has > 0);
    widths
}

pub(crate) fn name(seen: &ThreadSnapshot) -> String {
    let name = harmless(&seen.task.comm.to_text());
    if name.is_empty() {
        "?".to_owned()
    } else {
        name
    }
}

pub(crate) fn confidence(confidence: f64) -> String {
    let percent = confidence.clamp(0.0, 1.0) * 100.0;
    if percent > 99.0 && percent < 100.0 {
        ">99%".to_owned()
    } else {
        format!("{percent:.0}%")
    }
}

pub(crate) const fn tone(state: State) -> Tone {
    match state {
        State::Kept | State::AskedFor => Tone::Good,
        State::OnProbation => Tone::Warn,
        State::Refused | State::TakenOver => Tone::Bad,
        State::Released | State::Watched | State::Ended => Tone::Faint,
    }
}

pub(crate) const fn state(state: State) -> &'static str {
    match state {
        State::AskedFor => "asked",
        State::OnProbation => "probation",
        State::TakenOver => "taken",
        state => state.name(),
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn missed(missed: u64, width: usize, look: &ScreenLook) -> Vec<Words<'static>> {
    let tone = if missed > 0 { Tone::Bad } else { Tone::Plain };
    let text = fitted(&missed.to_string(), width, Align::Right);
    vec![Words::styled(text, look.style(tone))]
}

/// The bar, as far as there is room for one, then the numbers.
fn share(
    (used, reserved): (Option<Bandwidth>, Option<Bandwidth>),
    width: usize,
    look: &ScreenLook,
) -> Vec<Words<'static>> {
    let percent = |share: Bandwidth| share.as_cpus() * 100.0;
    let number = |share: Option<Bandwidth>| {
        share.map_or_else(dash, |share| format!("{:.1}", percent(share)))
    };
    let numbers = match reserved {
        Some(_) => format!("{}/{}%", number(used), number(reserved)),
        None => format!("{}/{}", number(used), number(reserved)),
    };
    let numbers = fitted(&numbers, NUMBERS.min(width), Align::Right);
    let Some(bar) = width.checked_sub(NUMBERS + 1).filter(|&bar| bar > 0) else {
        return vec![Words::raw(numbers)];
    };
    let Some(reserved) = reserved else {
        return vec![Words::raw(" ".repeat(bar + 1) + &numbers)];
    };
    let of = used.map_or(0.0, percent) / percent(reserved).max(1e-9);
    let tone = if of > 1.0 { Tone::Warn } else { Tone::Good };
    vec![
        Words::styled(look.symbols().bar(of, bar), look.style(tone)),
        Words::raw(" ".to_owned() + &numbers),
    ]
}

/// The longest response time of each second, the last one to the right; full at the period.
pub(crate) fn responses(
    thread: &ShownThread,
    width: usize,
    look: &ScreenLook,
    now: onbeat_model::Instant,
) -> Vec<Words<'static>> {
    let Some(period) = thread.seen.period else {
        return vec![Words::raw(" ".repeat(width))];
    };
    let (this, wide) = (now.as_ns() / 1_000_000_000, width as u64);
    let mut words = vec![Words::raw(" "); width];
    for second in &thread.seconds {
        let back = this.saturating_sub(second.number);
        let place = wide
            .checked_sub(back + 1)
            .and_then(|at| usize::try_from(at).ok());
        if let Some(word) = place.and_then(|place| words.get_mut(place)) {
            let style = if second.missed {
                look.style(Tone::Bad)
            } else {
                Style::new()
            };
            let height = second.longest.ratio(period);
            *word = Words::styled(look.symbols().column(height), style);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_width_the_columns_fill_it_and_no_more() {
        for width in 0..300 {
            let columns = fitting(width);
            let taken: usize = columns.iter().map(|(_, wide)| wide + 1).sum();
            assert!(taken <= width + 1, "{width}: {columns:?}");
            assert!(width < 10 || taken == width + 1, "{width}: {columns:?}");
        }
    }

    #[test]
    fn a_wider_screen_never_has_fewer_columns() {
        let counts: Vec<usize> = (0..300).map(|width| fitting(width).len()).collect();
        assert!(counts.is_sorted());
        let at = |width: usize| fitting(width).into_iter().map(|(column, _)| column);
        assert!(!at(80).any(|column| column == Column::Why));
        assert_eq!(at(80).count(), 8);
        assert_eq!(at(120).count(), 9);
    }

    #[test]
    fn sorting_goes_round_in_both_directions() {
        let mut column = Column::State;
        for _ in Column::SORTED {
            assert_eq!(column.beside(true).beside(false), column);
            column = column.beside(true);
        }
        assert_eq!(column, Column::State);
    }

    #[test]
    fn only_what_is_beyond_doubt_is_a_hundred_per_cent() {
        assert_eq!(confidence(0.999_999), ">99%");
        assert_eq!(confidence(0.5), "50%");
        assert_eq!(confidence(1.0), "100%");
    }
}
