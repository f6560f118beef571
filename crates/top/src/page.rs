//! One thread: its figures, how its response times and demand are distributed, and what changed.

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
use crate::text::harmless;
use crate::thread::ShownThread;

const FIGURES: u16 = 5;
/// A chart is worth drawing from this height on, with its title and axis.
const LOWEST_CHART: u16 = 5;
const SIDE_BY_SIDE: u16 = 60;
/// So much room is left for changes where there is plenty.
const CHANGES: u16 = 8;

struct Chart {
    title: String,
    heights: Vec<f64>,
    /// A place on the axis, which the title names.
    mark: Option<f64>,
    right: String,
}

pub(crate) fn draw(model: &Model, thread: &ShownThread, sheet: &mut Sheet<'_>) {
    figures(model, thread, sheet);
    let area = sheet.area;
    let room = Rect {
        y: area.y + (FIGURES + 1).min(area.height),
        height: area.height.saturating_sub(FIGURES + 2),
        ..area
    };
    let changes = if room.height >= LOWEST_CHART + CHANGES {
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
    if charts.width < SIDE_BY_SIDE {
        response_times(thread, charts.width, sheet).draw(charts, sheet);
        return;
    }
    let halves = Layout::horizontal([Constraint::Fill(1); 2]).spacing(1);
    let [left, right] = halves.areas(charts);
    response_times(thread, left.width, sheet).draw(left, sheet);
    demand(thread, right.width, sheet).draw(right, sheet);
}

/// Its name, number, process and user.
pub(crate) fn title(thread: &ShownThread) -> String {
    let seen = &thread.seen;
    let user = seen.present.user;
    let whose = user.map_or_else(String::new, |uid| format!(", user {uid}"));
    format!(
        "{} {} of process {}{whose}",
        name(seen),
        seen.task.id.tid,
        seen.task.pid
    )
}

fn figures(model: &Model, thread: &ShownThread, sheet: &mut Sheet<'_>) {
    let seen = &thread.seen;
    sheet.text(1, &title(thread), sheet.look.style(Tone::Title));
    let style = sheet.look.style(tone(seen.state));
    let state = Words::styled(columns::state(seen.state), style);
    let why = harmless(&format!(": {}", thread.reason()));
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
    let held = seen.present.reservation;
    let held = held.map_or("nothing".to_owned(), |held| held.to_string());
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
    let counted = seen.counted.counted_from.map(|from| model.at.since(from));
    let counted = counted.map_or_else(String::new, |over| {
        format!(" in {:.0} s", over.as_secs_f64())
    });
    let times = format!(
        "response p50 {}, p95 {}, p99 {}, max {}   missed {} of {}{counted}, budget ran out {}",
        at(0.50),
        at(0.95),
        at(0.99),
        at(1.0),
        seen.counted.missed,
        seen.counted.jobs,
        seen.reservations.exhaustions
    );
    sheet.text(4, &times, Style::new());
    let label = "response, by second ";
    let mut line = vec![Words::styled(label, sheet.look.style(Tone::Faint))];
    let room = sheet.width().saturating_sub(label.len());
    line.extend(responses(thread, room, sheet.look, model.at));
    sheet.line(5, &Line::from(line));
}

fn response_times(thread: &ShownThread, width: u16, sheet: &Sheet<'_>) -> Chart {
    let period = thread.seen.period.map(|period| ("period", period));
    let of = |done: &DoneJob| done.response;
    histogram(thread, "response time", of, period, width, sheet)
}

fn demand(thread: &ShownThread, width: u16, sheet: &Sheet<'_>) -> Chart {
    let period = thread.seen.period.unwrap_or_default();
    let budget = thread
        .reserved()
        .map(|reserved| ("budget", reserved.runtime_in(period)));
    let budget = budget.filter(|(_, budget)| !budget.is_zero());
    histogram(thread, "demand", |done| done.executed, budget, width, sheet)
}

/// How many of the last jobs took how long; the axis reaches to the longest of them, or to what is
/// to be marked.
fn histogram(
    thread: &ShownThread,
    what: &str,
    of: impl Fn(&DoneJob) -> Span,
    mark: Option<(&str, Span)>,
    width: u16,
    sheet: &Sheet<'_>,
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
    let pointer = sheet.look.symbols().pointer();
    let marked = mark.map(|(label, at)| format!(", {pointer} {label} {at}"));
    Chart {
        title: format!(
            "{what}, {} jobs{}",
            thread.jobs.len(),
            marked.unwrap_or_default()
        ),
        heights,
        mark: mark.map(|(_, at)| at.ratio(right)),
        right: right.to_string(),
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
        Line::styled(&self.title, sheet.look.style(Tone::Heading)).render(title, sheet.buffer);
        // Whole numbers, fine enough for eighths of a row; the least is to be seen.
        let least = 10_000_u64.div_ceil(u64::from(bars.height.max(1)) * 8);
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
        let faint = sheet.look.style(Tone::Faint);
        Line::styled("0", faint).render(axis, sheet.buffer);
        let right = Line::styled(&self.right, faint).right_aligned();
        right.render(axis, sheet.buffer);
        if let Some(at) = self.mark {
            let place = (at.clamp(0.0, 1.0) * f64::from(axis.width)) as u16;
            let x = axis.x + place.min(axis.width.saturating_sub(1));
            let pointer = sheet.look.symbols().pointer();
            sheet.buffer.set_string(x, axis.y, pointer, faint);
        }
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
