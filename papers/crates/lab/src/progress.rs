//! One line that rewrites itself: how much of the virtual time of all runs is over.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use onbeat_model::Span;

pub(crate) struct ProgressLine {
    all: Span,
    over_ns: AtomicU64,
    shown: Mutex<u64>,
    visible: bool,
}

impl ProgressLine {
    /// None of `all` is over. Nothing is shown if `quiet`, or without a terminal.
    pub(crate) fn new(all: Span, quiet: bool) -> Self {
        Self {
            all,
            over_ns: AtomicU64::new(0),
            shown: Mutex::new(0),
            visible: !quiet && io::stderr().is_terminal(),
        }
    }

    pub(crate) fn advance(&self, by: Span) {
        let over = self.over_ns.fetch_add(by.as_ns(), Ordering::Relaxed) + by.as_ns();
        if !self.visible {
            return;
        }
        let permille = (Span::from_ns(over).ratio(self.all) * 1000.0) as u64;
        if let Ok(mut shown) = self.shown.try_lock()
            && permille > *shown
        {
            *shown = permille;
            eprint!("\r{:.1}% of {} simulated", permille as f64 / 10.0, self.all);
        }
    }

    pub(crate) fn end(&self) {
        if self.visible {
            eprint!("\r\x1b[K");
        }
    }
}
