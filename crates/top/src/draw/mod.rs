//! Puts the model on a screen of any size: the table, or one thread, or the help.

use onbeat_model::Bandwidth;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span as Words};
use ratatui::widgets::{Row, Table, Widget};

use crate::Model;
use crate::columns::{Column, fitting};
use crate::keys::{HELP, LEGEND};
use crate::model::ThreadRow;
use crate::page;
use crate::screen::{ScreenLook, Tone};
use crate::text::{harmless, width};

/// The lines above the rows: the state of everything, and the headings.
const ABOVE: u16 = 2;
/// The lines below the rows: the selection and the keys.
const BELOW: u16 = 3;

fn rows_of(height: u16) -> usize {
    usize::from(height.saturating_sub(ABOVE + BELOW))
}

pub fn draw(model: &Model, look: &ScreenLook, area: Rect, buffer: &mut Buffer) {
    let Rect { width, height, .. } = area;
    if width == 0 || height == 0 {
        return;
    }
    let mut sheet = Sheet { area, buffer, look };
    sheet.header(model);
    if model.view.has_help {
        sheet.help();
    } else if let Some(thread) = model.chosen().filter(|_| model.view.is_drilled) {
        page::draw(model, thread, &mut sheet);
    } else {
        sheet.table(model);
    }
    sheet.keys(model);
}

pub(crate) struct Sheet<'a> {
    pub(crate) area: Rect,
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) look: &'a ScreenLook,
}

impl Sheet<'_> {
    pub(crate) fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    /// Writes a line, if there is such a one, as far as it fits.
    pub(crate) fn line(&mut self, row: u16, line: &Line<'_>) {
        if row < self.area.height {
            let (x, y) = (self.area.x, self.area.y + row);
            self.buffer.set_line(x, y, line, self.area.width);
        }
    }

    pub(crate) fn text(&mut self, row: u16, text: &str, style: Style) {
        self.line(row, &Line::styled(text, style));
    }

    fn header(&mut self, model: &Model) {
        let count = model.threads.len();
        let threads = if count == 1 { "thread" } else { "threads" };
        let percent = |share: Bandwidth| share.as_cpus() * 100.0;
        let (reserved, total) = (percent(model.reserved), percent(model.total));
        let facts = [
            format!("{count} {threads}, {} reserved for", model.reserved_for()),
            if model.total == Bandwidth::ZERO {
                format!("{reserved:.0}% reserved")
            } else {
                format!("{reserved:.0}% of {total:.0}% reserved")
            },
        ];
        let state = match (&model.trouble, model.view.is_paused) {
            (_, true) => Some(("PAUSED".to_owned(), Tone::Warn)),
            (Some(why), _) => Some((harmless(why), Tone::Bad)),
            _ => None,
        };
        let mut line = vec![Words::styled("onbeat top  ", self.look.style(Tone::Title))];
        if let Some((state, tone)) = state {
            line.push(Words::styled(state, self.look.style(tone)));
            line.push(Words::raw("  "));
        }
        let mut taken: usize = line.iter().map(Words::width).sum();
        for fact in facts.into_iter().chain([harmless(&model.source)]) {
            if taken + width(&fact) + 2 <= self.width() {
                taken += width(&fact) + 2;
                line.push(Words::raw(format!("{fact}  ")));
            }
        }
        self.line(0, &Line::from(line));
    }

    fn table(&mut self, model: &Model) {
        let columns = fitting(self.width());
        let look = self.look;
        let header = columns.iter().map(|&(column, wide)| {
            let descends = column.descends() != model.view.is_reversed;
            let (tone, mark) = if column == model.view.sort {
                (Tone::Sorted, look.symbols().arrow(descends))
            } else {
                (Tone::Heading, "")
            };
            column.heading(wide, mark).patch_style(look.style(tone))
        });
        let rows = model.visible(rows_of(self.area.height));
        if rows.is_empty() {
            self.nothing(model);
        }
        let rows = rows.into_iter().filter_map(|row| match row {
            ThreadRow::Application(pid) => {
                let application = model.applications.get(&pid)?;
                let cells = columns.iter();
                let cells = cells.map(|&(column, wide)| column.sum(application, wide, look));
                Some(Row::new(cells).style(look.style(Tone::Title)))
            }
            ThreadRow::Thread(id) => {
                let thread = model.threads.get(&id)?;
                let cells = columns.iter().map(|&(column, wide)| match column {
                    Column::Thread => model.indented(thread).into(),
                    _ => column.cell(thread, wide, look, model.at),
                });
                let is_selected = model.view.selected == Some(id);
                let tone = if is_selected {
                    Tone::Selected
                } else {
                    Tone::Plain
                };
                Some(Row::new(cells).style(look.style(tone)))
            }
        });
        let widths = columns.iter().map(|&(_, wide)| wide as u16);
        let below = Rect {
            y: self.area.y.saturating_add(1),
            height: self.area.height.saturating_sub(1),
            ..self.area
        };
        Table::new(rows, widths)
            .header(Row::new(header))
            .render(below, self.buffer);
        self.chosen(model);
    }

    fn nothing(&mut self, model: &Model) {
        let text = if model.threads.is_empty() {
            "No thread is tracked yet."
        } else {
            "No thread passes the filter: Esc clears it."
        };
        if self.area.height > ABOVE + BELOW {
            self.text(ABOVE, text, self.look.style(Tone::Faint));
        }
    }

    fn chosen(&mut self, model: &Model) {
        let row = self.area.height.saturating_sub(BELOW);
        if self.area.height <= ABOVE + BELOW {
            return;
        }
        let filter = harmless(&model.view.filter);
        if model.view.is_typing {
            let cursor = self.look.symbols().cursor();
            let text = format!("Filter: {filter}{cursor}");
            self.text(row, &text, self.look.style(Tone::Title));
            self.text(
                row + 1,
                "Enter: keep it   Esc: no filter",
                self.look.style(Tone::Faint),
            );
        } else if let Some(thread) = model.chosen() {
            let held = thread.seen.present.reservation;
            let held = held.map_or_else(|| "nothing reserved".to_owned(), |r| r.to_string());
            let who = format!("{}: {held}", page::title(thread));
            self.text(row, &who, Style::new());
            self.text(
                row + 1,
                &harmless(&thread.reason()),
                self.look.style(Tone::Faint),
            );
        } else if !filter.is_empty() {
            let text = format!(
                "Filter: {filter} ({} of {} threads)",
                model.rows.len(),
                model.threads.len()
            );
            self.text(row, &text, self.look.style(Tone::Faint));
        }
    }

    fn keys(&mut self, model: &Model) {
        let pause = if model.view.is_paused {
            "go on"
        } else {
            "pause"
        };
        let keys: &[(&str, &str)] = if model.view.has_help {
            &[("any key", "back")]
        } else if model.view.is_drilled {
            &[
                ("Esc", "back"),
                ("up/down", "other thread"),
                ("p", pause),
                ("?", "help"),
                ("q", "quit"),
            ]
        } else {
            &[
                ("q", "quit"),
                ("?", "help"),
                ("Enter", "one thread"),
                ("/", "filter"),
                ("< >", "sort"),
                ("r", "reverse"),
                ("p", pause),
            ]
        };
        let mut line = Vec::new();
        let mut taken = 0;
        for (key, does) in keys {
            taken += key.len() + does.len() + 3;
            if taken > self.width() + 2 {
                break;
            }
            line.push(Words::styled((*key).to_owned(), self.look.style(Tone::Key)));
            line.push(Words::raw(format!(" {does}  ")));
        }
        if self.area.height > 2 {
            self.line(self.area.height - 1, &Line::from(line));
        }
    }

    fn help(&mut self) {
        let last = self.area.height.saturating_sub(1);
        for (row, (keys, does)) in (ABOVE..last).zip(HELP) {
            let line = Line::from(vec![
                Words::styled(format!("{keys:13}"), self.look.style(Tone::Key)),
                Words::raw(does),
            ]);
            self.line(row, &line);
        }
        let below = ABOVE + HELP.len() as u16 + 1;
        for (row, text) in (below..last).zip(LEGEND) {
            self.text(row, text, self.look.style(Tone::Faint));
        }
    }
}

#[cfg(test)]
mod tests;
