//! The characters of bars: eighths of a block, or what every terminal can show.

use ratatui::symbols::bar;

const PLAIN: bar::Set<'static> = bar::Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "+",
    five_eighths: "+",
    half: "=",
    three_eighths: "-",
    one_quarter: ":",
    one_eighth: ".",
    empty: " ",
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbols {
    unicode: bool,
}

impl Symbols {
    pub(crate) const fn new(unicode: bool) -> Self {
        Self { unicode }
    }

    pub(crate) const fn upright(self) -> bar::Set<'static> {
        if self.unicode {
            bar::NINE_LEVELS
        } else {
            PLAIN
        }
    }

    /// A column that is filled up to this share; something is always seen of more than nothing.
    pub(crate) fn column(self, share: f64) -> &'static str {
        let set = self.upright();
        let eighths = (share.clamp(0.0, 1.0) * 8.0).ceil() as u8;
        match eighths {
            0 => set.empty,
            1 => set.one_eighth,
            2 => set.one_quarter,
            3 => set.three_eighths,
            4 => set.half,
            5 => set.five_eighths,
            6 => set.three_quarters,
            7 => set.seven_eighths,
            _ => set.full,
        }
    }

    pub(crate) fn bar(self, share: f64, width: usize) -> String {
        let filled = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
        let (full, empty) = if self.unicode {
            ("█", "░")
        } else {
            ("#", ".")
        };
        full.repeat(filled) + &empty.repeat(width.saturating_sub(filled))
    }

    pub(crate) const fn pointer(self) -> &'static str {
        if self.unicode { "▲" } else { "^" }
    }

    pub(crate) const fn cursor(self) -> &'static str {
        if self.unicode { "▏" } else { "_" }
    }

    pub(crate) const fn arrow(self, descending: bool) -> &'static str {
        match (self.unicode, descending) {
            (true, true) => "▼",
            (true, false) => "▲",
            (false, true) => "v",
            (false, false) => "^",
        }
    }
}
