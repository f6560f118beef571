//! One thread: its figures, how its response times and demand are distributed, the spectrum of its
//! wakeups, and what changed.

use onbeat_control::DoneJob;
use onbeat_model::Span;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span as Words};
use ratatui::widgets::{Sparkline, Widget};

use crate::Model;
use crate::columns::{self, confidence, name, responses, tone};
use crate::draw::Sheet;
use crate::screen::Tone;
use crate::text::{Align, fitted, harmless};
use crate::thread::ShownThread;

const FIGURES: u16 = 5;
/// A chart is worth drawing from this height on, with its title and axis.
const LOWEST_CHART: u16 = 5;
/// Two stand side by side from this width on.
const SIDE_BY_SIDE: u16 = 60;
/// So much room is left for changes where there is plenty.
const CHANGES: u16 = 8;

struct AxisMark {
    at: f64,
    label: String,
}

struct Chart {
    title: String,
    heights: Vec<f64>,
    marks: Vec<AxisMark>,
    right: String,
    /// Whether a bar is to be seen wherever there is more than nothing.
    shows_all: bool,
}

pub(crate) fn draw(model: &Model, thread: &ShownThread, sheet: &mut Sheet<'_>) {
    figures(model, thread, sheet);
    let area = sheet.area;
    let room = Rect {
        y: area.y + (FIGURES + 1).min(area.height),
        height: area.height.saturating_sub(FIGURES + 2),
        ..area
    };
    let changes = if room.height >= 2 * LOWEST_CHART + CHANGES {
        CHANGES
    } else {
        0
    };
    let [charts, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(changes)]).areas(room);
    if changes > 0 {
        list(model, thread, below, sheet);
    }
    if charts.height < LOWEST_CHART {
        return;
    }
    let gap = |left: Rect| Rect {
        width: left.width.saturating_sub(1),
        ..left
    };
    let rows = if charts.height >= 2 * LOWEST_CHART {
        2
    } else {
        1
    };
    let parts = Layout::vertical(vec![Constraint::Fill(1); rows]).split(charts);
    for (row, &part) in parts.iter().enumerate() {
        let halves = [Constraint::Fill(1); 2];
        if row > 0 {
            spectrum(model, thread, part.width).draw(part, sheet);
        } else if part.width >= SIDE_BY_SIDE {
            let [left, right] = Layout::horizontal(halves).areas(part);
            response_times(thread, gap(left).width).draw(gap(left), sheet);
            demand(thread, right.width).draw(right, sheet);
        } else {
            response_times(thread, part.width).draw(part, sheet);
        }
    }
}

fn figures(model: &Model, thread: &ShownThread, sheet: &mut Sheet<'_>) {
    let seen = &thread.seen;
    let whose = seen
        .user
        .map_or_else(String::new, |uid| format!(", user {uid}"));
    let title = format!(
        "{} {} of process {}{whose}",
        name(seen),
        seen.task.id.tid,
        seen.task.pid
    );
    sheet.text(1, &title, sheet.look.style(Tone::Title));
    let style = sheet.look.style(tone(seen.state));
    let state = Words::styled(columns::state(seen.state), style);
    let why = harmless(&format!(": {}", seen.reason()));
    sheet.line(2, &Line::from(vec![state, Words::raw(why)]));
    let rhythm = match seen.period {
        None => "no period".to_owned(),
        Some(period) => format!(
            "period {period}, confidence {}",
            confidence(seen.confidence)
        ),
    };
    let used = thread
        .used()
        .map_or("-".to_owned(), |used| used.to_string());
    let held = seen
        .held
        .map_or("nothing".to_owned(), |held| held.to_string());
    sheet.text(
        3,
        &format!("{rhythm}   used {used}, reserved {held}"),
        Style::new(),
    );
    let at = |quantile| {
        thread
            .response(quantile)
            .map_or("-".to_owned(), |span| span.to_string())
    };
    let times = format!(
        "response p50 {}, p95 {}, p99 {}, max {}   jobs {}, missed {}, budget ran out {}",
        at(0.50),
        at(0.95),
        at(0.99),
        at(1.0),
        seen.jobs,
        seen.missed,
        seen.exhaustions
    );
    sheet.text(4, &times, Style::new());
    let label = "response, by second ";
    let mut line = vec![Words::styled(label, sheet.look.style(Tone::Faint))];
    let room = sheet.width().saturating_sub(label.len());
    line.extend(responses(thread, room, sheet.look, model.at));
    sheet.line(5, &Line::from(line));
}

fn response_times(thread: &ShownThread, width: u16) -> Chart {
    let period = thread.seen.period.map(|period| ("period", period));
    histogram(thread, "response time", |done| done.response, period, width)
}

fn demand(thread: &ShownThread, width: u16) -> Chart {
    let period = thread.seen.period.unwrap_or_default();
    let budget = thread
        .reserved()
        .map(|reserved| ("budget", reserved.runtime_in(period)));
    let budget = budget.filter(|(_, budget)| !budget.is_zero());
    histogram(thread, "demand", |done| done.executed, budget, width)
}

/// How many of the last jobs took how long; the axis reaches to the longest of them, or to what is
/// to be marked.
fn histogram(
    thread: &ShownThread,
    what: &str,
    of: impl Fn(&DoneJob) -> Span,
    mark: Option<(&str, Span)>,
    width: u16,
) -> Chart {
    let columns = usize::from(width);
    let longest = thread.jobs.iter().map(&of).max().unwrap_or_default();
    let right = longest
        .max(mark.map_or(Span::ZERO, |(_, at)| at))
        .scale(1.05);
    let mut heights = vec![0.0; columns];
    for done in &thread.jobs {
        let place = (of(done).ratio(right) * columns as f64) as usize;
        if let Some(height) = heights.get_mut(place) {
            *height += 1.0;
        }
    }
    let marks = mark.map(|(label, at)| AxisMark {
        at: at.ratio(right),
        label: format!("{label} {at}"),
    });
    Chart {
        title: format!("{what} of the last {} jobs", thread.jobs.len()),
        heights,
        marks: marks.into_iter().collect(),
        right: right.to_string(),
        shows_all: true,
    }
}

fn spectrum(model: &Model, thread: &ShownThread, width: u16) -> Chart {
    let of = model.spectrum.as_ref();
    let Some(spectrum) = of.filter(|spectrum| spectrum.tid == thread.seen.task.id.tid) else {
        return Chart {
            title: "spectrum of the wakeups: none yet".to_owned(),
            heights: Vec::new(),
            marks: Vec::new(),
            right: String::new(),
            shows_all: false,
        };
    };
    let frequency = thread.seen.period.filter(|period| !period.is_zero());
    let mark = frequency.map(|period| {
        let hz = 1.0 / period.as_secs_f64();
        AxisMark {
            at: hz / spectrum.highest_hz,
            label: format!("{hz:.1} Hz"),
        }
    });
    Chart {
        title: format!("spectrum of the last {} wakeups", spectrum.wakeups),
        heights: spectrum.columns(usize::from(width)),
        marks: mark.into_iter().collect(),
        right: format!("{:.0} Hz", spectrum.highest_hz),
        shows_all: false,
    }
}

impl Chart {
    fn draw(&self, area: Rect, sheet: &mut Sheet<'_>) {
        let [title, bars, axis] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        let wide = usize::from(area.width);
        let head = Line::styled(
            fitted(&self.title, wide, Align::Left),
            sheet.look.style(Tone::Heading),
        );
        sheet.buffer.set_line(title.x, title.y, &head, title.width);
        // In whole numbers, fine enough for eighths of a row on any screen.
        let least = match bars.height {
            rows if self.shows_all && rows > 0 => 10_000_u64.div_ceil(u64::from(rows) * 8),
            _ => 0,
        };
        let highest = self
            .heights
            .iter()
            .copied()
            .fold(f64::MIN_POSITIVE, f64::max);
        let scaled = |height: &f64| match (height / highest * 10_000.0).ceil() as u64 {
            0 => 0,
            scaled => scaled.max(least),
        };
        Sparkline::default()
            .data(self.heights.iter().map(scaled).collect::<Vec<u64>>())
            .max(10_000)
            .bar_set(sheet.look.symbols().upright())
            .style(sheet.look.style(Tone::Bars))
            .render(bars, sheet.buffer);
        let axis_line = Line::styled(self.axis(wide, sheet), sheet.look.style(Tone::Faint));
        sheet
            .buffer
            .set_line(axis.x, axis.y, &axis_line, axis.width);
    }

    /// Zero to the left, the end to the right, and what is marked as far as there is room between.
    fn axis(&self, wide: usize, sheet: &Sheet<'_>) -> String {
        let mut cells = vec![" ".to_owned(); wide];
        let mut write = |from: usize, text: &str| {
            let to = from + text.chars().count();
            let free = cells
                .get(from..to)
                .is_some_and(|cells| cells.iter().all(|cell| cell == " "));
            if free {
                for (cell, c) in cells.iter_mut().skip(from).zip(text.chars()) {
                    *cell = c.to_string();
                }
            }
            free
        };
        for AxisMark { at, label } in &self.marks {
            let place = (at.clamp(0.0, 1.0) * wide as f64) as usize;
            let place = place.min(wide.saturating_sub(1));
            let pointer = sheet.look.symbols().pointer();
            let after = write(place, &format!("{pointer} {label}"));
            let before = place.checked_sub(label.chars().count() + 1);
            if !after && before.is_none_or(|from| !write(from, &format!("{label} {pointer}"))) {
                write(place, pointer);
            }
        }
        write(0, "0 ");
        let right = wide.checked_sub(self.right.chars().count() + 1);
        if let Some(from) = right {
            write(from, &format!(" {}", self.right));
        }
        cells.concat()
    }
}

fn list(model: &Model, thread: &ShownThread, area: Rect, sheet: &mut Sheet<'_>) {
    let top = area.y - sheet.area.y;
    sheet.text(
        top,
        "what changed while you looked",
        sheet.look.style(Tone::Heading),
    );
    for (row, change) in (top + 1..top + area.height).zip(thread.changes.iter().rev()) {
        let ago = model.at.since(change.at).as_secs_f64();
        let held = change
            .held
            .map_or("nothing".to_owned(), |held| held.to_string());
        let text = format!(
            "{ago:5.0} s ago  {:9} {held}  {}",
            columns::state(change.state),
            harmless(&change.why)
        );
        sheet.text(row, &text, Style::new());
    }
}
