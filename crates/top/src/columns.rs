//! The table's columns: which of them a screen has room for, what is in them, and how they are
//! sorted.

use std::cmp::Ordering;

use onbeat_control::{State, ThreadReport};
use onbeat_model::Bandwidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span as Words};

use crate::application::ShownApplication;
use crate::screen::{ScreenLook, Tone};
use crate::text::harmless;
use crate::thread::ShownThread;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    Thread,
    Tid,
    #[default]
    State,
    Period,
    Confidence,
    Share,
    Missed,
    Response,
    Why,
}

/// `12.3/15.0%`
const NUMBERS: usize = 10;
const WITH_BAR: usize = 63;

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

    /// Numbers are aligned to the right.
    fn aligned(self, line: Line<'static>) -> Line<'static> {
        match self {
            Self::State | Self::Thread | Self::Response | Self::Why => line,
            Self::Tid | Self::Period | Self::Confidence | Self::Share | Self::Missed => {
                line.right_aligned()
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
                let key = |seen: &ThreadReport| (seen.period.is_none(), seen.period);
                key(one).cmp(&key(other))
            }
            Self::Confidence => one.confidence.total_cmp(&other.confidence),
            Self::Share => a.used().cmp(&b.used()),
            Self::Missed => one.counted.missed.cmp(&other.counted.missed),
        }
    }

    pub(crate) fn cell(
        self,
        thread: &ShownThread,
        width: usize,
        look: &ScreenLook,
        now: onbeat_model::Instant,
    ) -> Line<'static> {
        let seen = &thread.seen;
        self.aligned(match self {
            Self::Thread => name(seen).into(),
            Self::Tid => seen.task.id.tid.to_string().into(),
            Self::State => {
                let mut style = look.style(tone(seen.state));
                if thread.is_news(now) {
                    style = style.patch(look.style(Tone::News));
                }
                Line::styled(state(seen.state), style)
            }
            Self::Period => seen
                .period
                .map_or_else(dash, |period| period.to_string())
                .into(),
            Self::Confidence if seen.period.is_none() => dash().into(),
            Self::Confidence => confidence(seen.confidence).into(),
            Self::Share => share((thread.used(), thread.reserved()), width, look),
            Self::Missed if seen.counted.jobs == 0 => dash().into(),
            Self::Missed => missed(seen.counted.missed, look),
            Self::Response => responses(thread, width, look, now).into(),
            Self::Why => harmless(&thread.reason()).into(),
        })
    }

    pub(crate) fn sum(
        self,
        application: &ShownApplication,
        width: usize,
        look: &ScreenLook,
    ) -> Line<'static> {
        let sums = &application.sums;
        self.aligned(match self {
            Self::Thread => application.name().into(),
            Self::Tid => sums.pid.to_string().into(),
            Self::Share => {
                let used = Some(application.used());
                share((used, application.reserved), width, look)
            }
            Self::Missed if sums.jobs > 0 => missed(sums.missed, look),
            Self::Why => sums.served().into(),
            Self::State | Self::Period | Self::Confidence | Self::Missed | Self::Response => {
                Line::default()
            }
        })
    }

    /// `mark` says that rows are sorted by it, and how.
    pub(crate) fn heading(self, width: usize, mark: &str) -> Line<'static> {
        let title = match self {
            Self::Share if width <= self.title().len() => "USED/RSVD",
            _ => self.title(),
        };
        self.aligned(format!("{title}{mark}").into())
    }
}

/// The columns that there is room for in `width`, each with its own width, and one column between
/// two.
pub(crate) fn fitting(width: usize) -> Vec<(Column, usize)> {
    let bar = if width < WITH_BAR { 0 } else { 7 };
    // In the order in which they get room.
    let room = [
        (Column::Thread, 10),
        (Column::State, 9),
        (Column::Share, NUMBERS + bar),
        (Column::Period, 8),
        (Column::Missed, 7),
        (Column::Tid, 7),
        (Column::Response, 8),
        (Column::Confidence, 5),
        (Column::Why, 34),
    ];
    let mut left = width + 1;
    let fits = |&(_, wide): &(Column, usize)| {
        let has_room = wide < left;
        left -= if has_room { wide + 1 } else { 0 };
        has_room
    };
    let mut columns: Vec<(Column, usize)> = room.into_iter().take_while(fits).collect();
    columns.sort();
    let mut add = |to: Column, most: usize| {
        if let Some((_, wide)) = columns.iter_mut().find(|(column, _)| *column == to) {
            *wide += most.min(left);
            left -= most.min(left);
        }
    };
    add(Column::Thread, 5);
    add(Column::Response, 22);
    add(Column::Why, usize::MAX);
    columns
}

pub(crate) fn name(seen: &ThreadReport) -> String {
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
        State::Kept | State::AskedFor | State::Raised | State::NoNeed => Tone::Good,
        State::NoBetter => Tone::Warn,
        State::Refused | State::TakenOver => Tone::Bad,
        State::Released | State::Watched | State::Ended | State::Recorded => Tone::Faint,
    }
}

pub(crate) fn state(state: State) -> &'static str {
    match state {
        State::AskedFor => "asked",
        State::TakenOver => "taken",
        state => state.name(),
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn missed(missed: u64, look: &ScreenLook) -> Line<'static> {
    let tone = if missed > 0 { Tone::Bad } else { Tone::Plain };
    Line::styled(missed.to_string(), look.style(tone))
}

fn share(
    (used, reserved): (Option<Bandwidth>, Option<Bandwidth>),
    width: usize,
    look: &ScreenLook,
) -> Line<'static> {
    let percent = |share: Bandwidth| share.as_cpus() * 100.0;
    let number = |share: Option<Bandwidth>| {
        share.map_or_else(dash, |share| format!("{:.1}", percent(share)))
    };
    let unit = if reserved.is_some() { "%" } else { "" };
    let numbers = format!("{}/{}{unit}", number(used), number(reserved));
    let bar = width.saturating_sub(NUMBERS + 1);
    let Some(reserved) = reserved.filter(|_| bar > 0) else {
        return numbers.into();
    };
    let of = used.map_or(0.0, percent) / percent(reserved).max(1e-9);
    let tone = if of > 1.0 { Tone::Warn } else { Tone::Good };
    Line::from(vec![
        Words::styled(look.symbols().bar(of, bar), look.style(tone)),
        Words::raw(format!(" {numbers:>NUMBERS$}")),
    ])
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
