//! The kernel's record of a task in `/proc/TID/stat`.

use crate::Name;

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
