//! The terminal: taken, drawn on until the user has seen enough, and given back as it was.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::draw::draw;
use crate::keys::KeyEffect;
use crate::symbols::Symbols;
use crate::{Feed, Model};

/// How long to wait for a key before it is looked for news, a signal, or another size of the
/// terminal.
const TURN: Duration = Duration::from_millis(100);
/// What poll says of a terminal that was closed.
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenLook {
    pub has_colour: bool,
    /// Blocks and arrows; without them, what every terminal has.
    pub has_unicode: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Title,
    Heading,
    Sorted,
    Key,
    Faint,
    Good,
    Warn,
    Bad,
    News,
    Selected,
    Bars,
}

impl ScreenLook {
    /// As the environment says: NO_COLOR, TERM, and the character set of the locale.
    pub fn of_environment() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL")
            .or_else(|| set("LC_CTYPE"))
            .or_else(|| set("LANG"));
        let locale = locale.unwrap_or_default().to_lowercase().replace('-', "");
        Self {
            has_colour: set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb"),
            has_unicode: locale.contains("utf8"),
        }
    }

    pub(crate) const fn symbols(self) -> Symbols {
        Symbols::new(self.has_unicode)
    }

    pub(crate) fn style(self, tone: Tone) -> Style {
        let (colour, modifier) = match tone {
            Tone::Plain => (None, Modifier::empty()),
            Tone::Title | Tone::Key => (None, Modifier::BOLD),
            Tone::Heading => (Some(Color::Cyan), Modifier::empty()),
            Tone::Sorted => (Some(Color::Cyan), Modifier::BOLD),
            Tone::Faint => (None, Modifier::DIM),
            Tone::Good => (Some(Color::Green), Modifier::empty()),
            Tone::Warn => (Some(Color::Yellow), Modifier::empty()),
            Tone::Bad => (Some(Color::Red), Modifier::BOLD),
            Tone::News => (None, Modifier::BOLD.union(Modifier::UNDERLINED)),
            Tone::Selected => (None, Modifier::REVERSED),
            Tone::Bars => (Some(Color::Blue), Modifier::empty()),
        };
        let style = Style::new().add_modifier(modifier);
        match colour.filter(|_| self.has_colour) {
            Some(colour) => style.fg(colour),
            None => style,
        }
    }
}

/// Takes the terminal on standard output, and shows `model` as it is fed, until a key says to quit,
/// `stop` does, the feed ends, or the terminal is gone. However that comes about, it is as it was.
pub fn show(
    model: &mut Model,
    feed: &Feed,
    look: &ScreenLook,
    stop: impl FnMut() -> bool,
) -> io::Result<()> {
    let keys = keys()?;
    let mut terminal = ratatui::try_init()?;
    let _back = GivesBack;
    let shown = show_on(&mut terminal, &keys, (model, feed, look), stop);
    if !turn(&keys, Duration::ZERO)?.intersects(GONE) {
        return shown;
    }
    // What is printed from now on has no reader, for which the macros would panic: also what gives
    // the terminal back.
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}

fn show_on(
    terminal: &mut DefaultTerminal,
    keys: &OwnedFd,
    (model, feed, look): (&mut Model, &Feed, &ScreenLook),
    mut stop: impl FnMut() -> bool,
) -> io::Result<()> {
    let mut is_new = true;
    let mut drawn = Rect::default();
    while !stop() {
        loop {
            match feed.try_recv() {
                Ok(news) => {
                    model.update(news);
                    is_new = true;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
        let area = Rect::from((ratatui::layout::Position::ORIGIN, terminal.size()?));
        if is_new || area != drawn {
            terminal.draw(|frame| draw(model, look, frame.area(), frame.buffer_mut()))?;
            (is_new, drawn) = (false, area);
        }
        let pressed = turn(keys, TURN)?;
        if pressed.intersects(GONE) {
            return Ok(());
        }
        if !pressed.is_empty() && event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()?
                && model.key(key) == KeyEffect::Quit
            {
                return Ok(());
            }
            is_new = true;
        }
    }
    Ok(())
}

/// Where crossterm reads keys.
fn keys() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        stdin.as_fd().try_clone_to_owned()
    } else {
        File::open("/dev/tty").map(OwnedFd::from)
    }
}

/// Waits for a key, or a turn's time. crossterm alone would read from a terminal that is gone for
/// ever.
fn turn(keys: &OwnedFd, time: Duration) -> io::Result<PollFlags> {
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    let mut keys = [PollFd::new(keys, PollFlags::IN)];
    match rustix::event::poll(&mut keys, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(keys[0].revents()),
        Err(error) => Err(error.into()),
    }
}

struct GivesBack;

impl Drop for GivesBack {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}
