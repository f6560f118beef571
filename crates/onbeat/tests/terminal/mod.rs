//! A terminal for a program under test: a pseudo-terminal whose screen can be read as a person
//! reads it.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, ExitStatus};

use crate::common::{Mortal, eventually, until};

const ROWS: NonZero<u16> = NonZero::new(24).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(80).unwrap();

/// A program with the terminal that it runs on.
pub(crate) struct Terminal {
    pub(crate) process: Mortal,
    ours: File,
    theirs: OwnedFd,
    screen: vt100::Parser,
    before: Vec<u32>,
}

impl Terminal {
    /// Starts a program on a new terminal of 80 by 24.
    pub(crate) fn start(command: &mut Command) -> Self {
        let (ours, theirs) = open();
        let stream = || theirs.try_clone().expect("there is room for a descriptor");
        command
            .stdin(stream())
            .stdout(stream())
            .stderr(stream())
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8");
        let before = modes(&theirs);
        Self {
            process: Mortal::spawn(command),
            ours: File::from(ours),
            theirs,
            screen: vt100::Parser::new(ROWS, COLUMNS, 0),
            before,
        }
    }

    /// The present screen.
    pub(crate) fn text(&mut self) -> String {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = self.ours.read(&mut bytes) {
            self.screen.process(&bytes[..count]);
        }
        self.screen.screen().contents()
    }

    /// The line that begins with this, after its indentation, once it has this in it.
    pub(crate) fn line_with(&mut self, beginning: &str, part: &str) -> String {
        eventually(part, || {
            let text = self.text();
            let mut lines = text.lines();
            let line =
                lines.find(|line| line.trim_start().starts_with(beginning) && line.contains(part));
            line.map(str::to_owned)
        })
    }

    /// Waits until this is on the screen.
    pub(crate) fn shows(&mut self, part: &str) {
        until(part, || self.text().contains(part));
    }

    pub(crate) fn press(&mut self, keys: &str) {
        let written = self.ours.write_all(keys.as_bytes());
        written.expect("the terminal takes keys");
    }

    /// Closes the terminal, and waits for the program's end.
    pub(crate) fn closes(self) -> ExitStatus {
        let Self {
            mut process,
            ours,
            theirs,
            ..
        } = self;
        drop((ours, theirs));
        eventually("the end", || process.0.try_wait().unwrap())
    }

    /// Waits for the program's end; the terminal must then be as it was before.
    pub(crate) fn ends(&mut self) -> ExitStatus {
        let status = eventually("the end", || {
            self.text();
            self.process.0.try_wait().unwrap()
        });
        self.text();
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        assert_eq!(modes(&self.theirs), self.before);
        status
    }
}

/// Both ends of a new terminal; reading from ours never waits.
fn open() -> (OwnedFd, OwnedFd) {
    let size = libc::winsize {
        ws_row: ROWS.get(),
        ws_col: COLUMNS.get(),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let (mut ours, mut theirs) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: both numbers and the size outlive the call; a name and modes are not wanted. The
    // descriptors are new.
    unsafe {
        let made = libc::openpty(
            &raw mut ours,
            &raw mut theirs,
            none,
            std::ptr::null(),
            &raw const size,
        );
        assert_eq!(made, 0, "no terminal");
        libc::fcntl(ours, libc::F_SETFL, libc::O_NONBLOCK);
        for end in [ours, theirs] {
            libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
    }
}

/// How the terminal treats what is typed and printed.
fn modes(terminal: &OwnedFd) -> Vec<u32> {
    // SAFETY: the structure is plain data for which zeros are valid, and outlives the call.
    let modes = unsafe {
        let mut modes = std::mem::zeroed::<libc::termios>();
        let told = libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes);
        assert_eq!(told, 0, "it is a terminal");
        modes
    };
    vec![modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag]
}
