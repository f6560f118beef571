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
