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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_shows_something_of_more_than_nothing_and_is_full_at_the_whole() {
        for symbols in [Symbols::new(true), Symbols::new(false)] {
            assert_eq!(symbols.column(0.0), " ");
            assert_ne!(symbols.column(1e-9), " ");
            assert_eq!(symbols.column(1.0), symbols.column(7.0));
            assert_eq!(symbols.column(f64::NAN), " ");
        }
    }

    #[test]
    fn a_bar_is_as_wide_as_it_is_to_be_whatever_its_share() {
        for share in [-1.0, 0.0, 0.4, 1.0, 9.0, f64::NAN] {
            assert_eq!(Symbols::new(true).bar(share, 7).chars().count(), 7);
        }
        assert_eq!(Symbols::new(false).bar(0.5, 6), "###...");
    }
}
