//! Names of other people's programs, made harmless.

use ratatui::text::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A character that cannot be seen, or would change the next ones, as a middle dot: a thread may
/// call itself what it likes.
pub fn harmless(text: &str) -> String {
    let is_unseen = |c: char| {
        c.is_control()
            || matches!(c,
                '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202f}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    let combines = |c: char| width(c.encode_utf8(&mut [0; 4])) == 0;
    let shown = |c: char| if is_unseen(c) || combines(c) { '·' } else { c };
    text.chars().map(shown).collect()
}

pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_move_the_cursor_or_turn_the_writing_is_a_dot() {
        assert_eq!(harmless("a\x1b[2Jb\n\u{202e}c\u{301}"), "a·[2Jb··c·");
        assert_eq!(harmless("mplayer/日本"), "mplayer/日本");
    }
}
