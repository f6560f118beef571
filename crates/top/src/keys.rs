//! The meaning of keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::Model;

pub(crate) const HELP: [(&str, &str); 9] = [
    (
        "up down k j",
        "select a thread; Page Up, Page Down, Home, End too",
    ),
    ("Enter", "its histograms; again, or Esc: back"),
    ("< >", "sort by the column to the left or to the right"),
    ("r", "reverse the order"),
    ("/", "show threads with this in their name, number or state"),
    ("Esc", "no filter, no selection"),
    ("p, Space", "pause, and go on"),
    ("?, h", "this help"),
    ("q, Ctrl-C", "quit"),
];

pub(crate) const LEGEND: [&str; 3] = [
    "The bar is what a thread used lately, of what is reserved for it.",
    "RESPONSE: the longest response time of each second, the last one to the right;",
    "full at the period, and red or bold where a job missed its deadline.",
];

const PAGE: isize = 10;
const LONGEST_FILTER: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyEffect {
    GoOn,
    Quit,
}

impl Model {
    pub(crate) fn key(&mut self, key: KeyEvent) -> KeyEffect {
        if key.kind == KeyEventKind::Release {
            return KeyEffect::GoOn;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => KeyEffect::Quit,
                _ => KeyEffect::GoOn,
            };
        }
        if self.view.has_help {
            self.view.has_help = false;
            return KeyEffect::GoOn;
        }
        if self.view.is_typing {
            self.type_filter(key.code);
            return KeyEffect::GoOn;
        }
        match key.code {
            KeyCode::Char('q') => return KeyEffect::Quit,
            KeyCode::Char('?' | 'h') => self.view.has_help = true,
            KeyCode::Char('p' | ' ') => self.view.is_paused = !self.view.is_paused,
            KeyCode::Char('/') => {
                self.view.is_typing = true;
                self.view.is_drilled = false;
            }
            KeyCode::Char('<') => self.sort_by(false),
            KeyCode::Char('>') => self.sort_by(true),
            KeyCode::Char('r') => {
                self.view.is_reversed = !self.view.is_reversed;
                self.arrange();
            }
            KeyCode::Esc => self.back(),
            KeyCode::Enter => self.drill(),
            code => self.select(code),
        }
        KeyEffect::GoOn
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.view.is_typing = false,
            KeyCode::Esc => {
                self.view.is_typing = false;
                self.view.filter.clear();
            }
            KeyCode::Backspace => drop(self.view.filter.pop()),
            KeyCode::Char(c) if !c.is_control() && self.view.filter.len() < LONGEST_FILTER => {
                self.view.filter.push(c);
            }
            _ => {}
        }
        self.arrange();
    }

    fn sort_by(&mut self, right: bool) {
        self.view.sort = self.view.sort.beside(right);
        self.view.is_reversed = false;
        self.arrange();
    }

    /// One step back: out of the thread, then the filter, then the selection.
    fn back(&mut self) {
        if self.view.is_drilled {
            self.view.is_drilled = false;
        } else if self.view.filter.is_empty() {
            self.view.selected = None;
        } else {
            self.view.filter.clear();
            self.arrange();
        }
    }

    fn drill(&mut self) {
        if self.view.selected.is_none() {
            self.step(0);
        }
        self.view.is_drilled = !self.view.is_drilled && self.view.selected.is_some();
    }

    fn select(&mut self, code: KeyCode) {
        let steps = match code {
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::PageDown => PAGE,
            KeyCode::PageUp => -PAGE,
            KeyCode::Home => isize::MIN,
            KeyCode::End => isize::MAX,
            _ => return,
        };
        self.step(steps);
    }
}
