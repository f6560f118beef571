//! Which system calls are told: a bit for each number.

/// As many as the programs know (`CALLS` in `tracer.bpf.c`).
const WORDS: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSet([u64; WORDS]);

impl CallSet {
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub(super) const fn words(self) -> [u64; WORDS] {
        self.0
    }
}

impl FromIterator<u32> for CallSet {
    /// Those of the numbers that the kernel has; it has none above 1023.
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut set = Self::default();
        for number in numbers {
            if let Some(word) = set.0.get_mut(number as usize / 64) {
                *word |= 1 << (number % 64);
            }
        }
        set
    }
}
