//! Logs of numbers, as programs leave them.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// The lines of a log, each of `N` numbers with spaces or commas between; one that does not begin
/// with a number is a heading.
pub(crate) fn numbers<const N: usize>(path: &Path) -> anyhow::Result<Vec<[f64; N]>> {
    let text = fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    let row = |line: &str| {
        let cells = line.split([' ', ',']).filter(|cell| !cell.is_empty());
        let cells: Result<Vec<f64>, _> = cells.map(str::parse).collect();
        cells.ok()?.try_into().ok()
    };
    let lines = text.lines().map(str::trim_start);
    let lines = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
    lines
        .map(row)
        .collect::<Option<_>>()
        .with_context(|| format!("{} is damaged", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_numbers_below_a_heading_and_a_line_that_was_cut_short_damages_it() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        fs::write(&path, "release,used\n100,50\n  7   -1\n").unwrap();
        assert_eq!(numbers(&path).unwrap(), [[100.0, 50.0], [7.0, -1.0]]);
        fs::write(&path, "100,50\n110\n").unwrap();
        assert!(numbers::<2>(&path).is_err());
    }
}
