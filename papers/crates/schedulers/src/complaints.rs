//! libbpf's and the verifier's messages when a scheduler is refused: their last words, for the
//! error's message.

use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::PrintLevel;

const MOST_LINES: usize = 6;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From now on warnings are kept instead of being written to standard error.
pub(crate) fn keep() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, note)));
    lines().clear();
}

pub(crate) fn last() -> String {
    lines().join("; ")
}

fn note(_: PrintLevel, said: String) {
    push(&mut lines(), &said);
}

fn push(lines: &mut Vec<String>, said: &str) {
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if lines.len() == MOST_LINES {
            lines.remove(0);
        }
        lines.push(line.to_owned());
    }
}

fn lines() -> MutexGuard<'static, Vec<String>> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_whole_and_empty_ones_are_not() {
        let mut lines = Vec::new();
        for n in 0..20 {
            push(&mut lines, &format!("line {n}\n\n  "));
        }
        push(&mut lines, "one\ntwo\n");
        let kept = ["line 16", "line 17", "line 18", "line 19", "one", "two"];
        assert_eq!(lines, kept);
    }
}
