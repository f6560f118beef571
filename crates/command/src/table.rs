//! A table a person wants to read: columns as wide as they need to be, numbers to the right.

use std::fmt;

use onbeat_top::{Align, harmless};

#[derive(Debug)]
pub struct TextTable {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// One more row; cells beyond the columns are left out, missing ones are blank. A thread may
    /// call itself what it likes: what would tell the terminal something is not written.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| harmless(&cell));
        self.rows.push(cells.collect());
    }

    fn cell(row: &[String], column: usize) -> &str {
        row.get(column).map_or("", String::as_str)
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize, heading: &str| {
            self.rows
                .iter()
                .map(|row| Self::cell(row, column).chars().count())
                .chain([heading.chars().count()])
                .max()
                .unwrap_or(0)
        };
        let columns: Vec<(Align, usize)> = self
            .columns
            .iter()
            .enumerate()
            .map(|(column, (heading, align))| (*align, width(column, heading)))
            .collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for (cell, &(align, width)) in cells.zip(&columns) {
                if !text.is_empty() {
                    text.push_str("  ");
                }
                text.push_str(&match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                });
            }
            writeln!(f, "{}", text.trim_end())
        };
        line(&mut self.columns.iter().map(|(heading, _)| *heading))?;
        for row in &self.rows {
            line(&mut (0..columns.len()).map(|column| Self::cell(row, column)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_terminal_nothing() {
        let mut table = TextTable::new(&[("thread", Align::Left), ("tid", Align::Right)]);
        table.row(["\x1b]0;root\x07".to_owned(), "7".to_owned()]);
        let text = table.to_string();
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
        assert!(text.contains("·]0;root·"), "{text:?}");
    }
}
