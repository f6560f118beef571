//! The name of a task: a thread, named so that a reused number is never taken for it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thread, for as long as it lives: its number and when it started.
///
/// Thread numbers are reused; the pair is not. `started_ticks` is field 22 of
/// `/proc/TID/stat`: clock ticks (1/100 s) since boot. In a recording that does not tell it, it is
/// zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct TaskId {
    pub tid: u32,
    pub started_ticks: u64,
}

impl TaskId {
    /// The thread `tid` of a recording that does not tell when threads started.
    #[must_use]
    pub const fn recorded(tid: u32) -> Self {
        Self {
            tid,
            started_ticks: 0,
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.tid, f)
    }
}

/// A thread's name as the kernel keeps it: at most 15 bytes, no allocation.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Name([u8; 16]);

impl Name {
    /// The first 15 bytes of `name`, up to a NUL byte if there is one.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        let mut bytes = [0; 16];
        let length = name
            .iter()
            .position(|&b| b == 0)
            .unwrap_or(name.len())
            .min(15);
        bytes[..length].copy_from_slice(&name[..length]);
        Self(bytes)
    }

    /// The name as text; a byte that is no UTF-8 shows as U+FFFD.
    #[must_use]
    pub fn to_text(self) -> String {
        let length = self.0.iter().position(|&b| b == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..length]).into_owned()
    }
}

impl From<&str> for Name {
    /// As many whole characters as find room: what is written and read again is the same.
    fn from(name: &str) -> Self {
        let fits = |end: &usize| name.is_char_boundary(*end);
        let end = (0..=name.len().min(15)).rev().find(fits).unwrap_or(0);
        Self::new(&name.as_bytes()[..end])
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_text())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_text(), f)
    }
}

impl Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Self::from(&*text))
    }
}

/// A thread, the process it belongs to, and its name when last heard of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Task {
    #[serde(flatten)]
    pub id: TaskId,
    /// The number of its process (the thread group's leader).
    pub pid: u32,
    pub comm: Name,
}

/// Which tasks to follow beside the one asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Follow {
    Alone,
    /// The threads that a tracked process starts.
    #[default]
    Threads,
    /// Those, and the processes that it starts.
    Children,
}

impl Follow {
    #[must_use]
    pub const fn with(children: bool) -> Self {
        if children {
            Self::Children
        } else {
            Self::Threads
        }
    }
}

/// The kernel's flag of its own threads, which is part of its interface with `ps`.
const PF_KTHREAD: u32 = 0x0020_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub comm: Name,
    /// The task's state: `R` runs or is runnable, `S` and `D` wait, `Z` and `X` are dead.
    pub state: char,
    /// Whether it is one of the kernel's own, which runs no program.
    pub is_of_kernel: bool,
    pub policy: u32,
    /// When it started, in clock ticks since boot: the second half of its
    /// [identity](crate::TaskId).
    pub started_ticks: u64,
}

impl Stat {
    /// Parses the file's bytes. The name, in parentheses, may hold anything, parentheses and blanks
    /// too: what follows counts from the last one.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let name_begin = bytes.iter().position(|&byte| byte == b'(')? + 1;
        let name_end = bytes.iter().rposition(|&byte| byte == b')')?;
        let comm = Name::new(bytes.get(name_begin..name_end)?);
        let rest = std::str::from_utf8(bytes.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        // The numbers are those of proc(5), which counts from 1; the state is field 3.
        let state = fields.next()?.chars().next()?;
        let mut field = |number: usize, after: usize| fields.nth(number - after - 1);
        let flags: u32 = field(9, 3)?.parse().ok()?;
        Some(Self {
            comm,
            state,
            is_of_kernel: flags & PF_KTHREAD != 0,
            started_ticks: field(22, 9)?.parse().ok()?,
            policy: field(41, 22)?.parse().ok()?,
        })
    }

    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_fifteen_bytes_and_is_text_in_json() {
        let name = Name::from("a-name-that-is-too-long");
        assert_eq!(name.to_text(), "a-name-that-is-");
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"a-name-that-is-\"");
        assert_eq!(
            serde_json::from_str::<Name>("\"mplayer\"").unwrap(),
            Name::from("mplayer")
        );
        assert_eq!(Name::new(b"\xff\0rest").to_text(), "\u{fffd}");
        let whole = Name::from("fourteen-byte-\u{e9}clair");
        assert_eq!(whole.to_text(), "fourteen-byte-");
    }
}

#[cfg(test)]
mod stat_tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_and_blanks_does_not_shift_the_fields() {
        let line = b"42 (a) R (b 1 2) S 1 42 42 0 -1 4194304 97 0 0 0 0 0 0 0 20 0 1 0 26743 \
                     231 0 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 6 0 0 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat.comm.to_text(), "a) R (b 1 2");
        assert_eq!(stat.state, 'S');
        assert_eq!(stat.started_ticks, 26743);
        assert_eq!(stat.policy, 6);
        assert!(!stat.is_of_kernel);
    }
}
