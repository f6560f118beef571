//! The results of an experiment: tables in Markdown, and where they come from.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a row for each of `rows`: every cell, with the heading of its column.
    pub(crate) fn of<'a, R, const N: usize>(
        rows: impl IntoIterator<Item = R>,
        cells: impl Fn(R) -> [(&'a str, String); N],
    ) -> Self {
        let mut table = Self { rows: Vec::new() };
        for row in rows {
            let (headings, cells): (Vec<&str>, Vec<String>) = cells(row).into_iter().unzip();
            if table.rows.is_empty() {
                table.cells(headings.into_iter().map(str::to_owned).collect());
            }
            table.cells(cells);
        }
        table
    }

    /// A table whose columns are counted at run time.
    pub(crate) fn of_columns(headings: Vec<String>) -> Self {
        Self {
            rows: vec![headings],
        }
    }

    /// Adds a row of as many cells as there are headings.
    pub(crate) fn cells(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table in Markdown, its columns aligned: the first to the left, figures to the right.
    pub(crate) fn to_markdown(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (n, row) in self.rows.iter().enumerate() {
            text.push('|');
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    text.push_str(&format!(" {cell:<width$} |"));
                } else {
                    text.push_str(&format!(" {cell:>width$} |"));
                }
            }
            text.push('\n');
            if n == 0 {
                text.push('|');
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width + 1);
                    let end = if column == 0 { "-" } else { ":" };
                    text.push_str(&format!("{dashes}{end}|"));
                }
                text.push('\n');
            }
        }
        text
    }
}

/// Where figures come from.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Ran {
    /// What ran; nothing for programs on the kernel itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) how: String,
    /// The kernel that they ran on, or which the computation did.
    pub(crate) kernel: String,
    pub(crate) cpu: String,
    /// The load average before.
    #[serde(default)]
    pub(crate) load: String,
}

impl Ran {
    pub(crate) fn live(machine: &Machine) -> Self {
        let [kernel, cpu, load] = machine.facts();
        Self {
            how: String::new(),
            kernel,
            cpu,
            load,
        }
    }

    /// No kernel: from formulas or recordings, which are named.
    pub(crate) fn computed(machine: &Machine, from: impl Into<String>) -> Self {
        Self {
            how: from.into(),
            ..Self::live(machine)
        }
    }
}

impl Machine {
    /// Prints the table, and keeps it until [`take_tables`](Self::take_tables).
    pub(crate) fn publish(&self, ran: &Ran, name: &str, table: &Table) {
        let table = table.to_markdown();
        println!("\n{table}");
        self.keep(name, table, ran);
    }
}

/// A share in per cent, with `digits` digits behind the point.
pub(crate) fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$}%", share * 100.0)
}

pub(crate) fn or_dash<T>(figure: Option<T>, cell: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), cell)
}

pub(crate) fn yes_no(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}
