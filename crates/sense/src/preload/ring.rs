//! Reads what the preloaded library has written, by `ring.h`.
//!
//! The memory is shared with the programs that are heard, which may write whatever they like there,
//! also while it is read. So it is only ever read as single words, each of which may have any
//! value; and whatever they are, a pass over them ends, and gives no more records than there is
//! room for.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use onbeat_model::Name;

/// The passes for which a record may be in the making; then its writer was killed. A record takes
/// less than 1 us, and passes are milliseconds apart: only a writer that was stopped takes longer.
const PATIENCE: u32 = 20;

/// Records in the ring: `RING_RECORDS`.
pub(super) const RECORDS: usize = 16_384;
/// Words in a record, and in the header before the first one.
pub(super) const WORDS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreloadRecord {
    pub pid: u32,
    pub tid: u32,
    pub woke_ns: u64,
    pub blocked_ns: u64,
    pub executed_ns: u64,
    pub preempted: u32,
    /// For how long it waited for a CPU at first, in us.
    pub waited_us: u32,
    pub comm: Name,
}

#[derive(Debug, Default)]
pub struct Reader {
    /// Records that were read or given up.
    seen: u64,
    waited: u32,
}

impl Reader {
    /// Appends what was written since the last pass over `ring`, and gives how much was lost:
    /// written over before it was read, or never finished.
    pub fn read(&mut self, ring: &[AtomicU64], records: &mut Vec<PreloadRecord>) -> u64 {
        let (Some(begun), Some(body)) = (ring.first(), ring.get(WORDS..)) else {
            return 0;
        };
        let room = (body.len() / WORDS) as u64;
        let begun = begun.load(Ordering::Acquire);
        let oldest = begun.saturating_sub(room);
        let mut lost = oldest.saturating_sub(self.seen);
        // The count never goes down, unless a program writes what it should not.
        self.seen = self.seen.clamp(oldest, begun);
        while self.seen < begun {
            let slot = (self.seen % room) as usize * WORDS;
            let Some(words) = body.get(slot..slot + WORDS) else {
                break;
            };
            match read(words, self.seen + 1) {
                RingSlot::Whole(record) => records.push(record),
                RingSlot::WrittenOver => lost = lost.saturating_add(1),
                RingSlot::Unfinished if self.waited < PATIENCE => {
                    self.waited += 1;
                    break;
                }
                RingSlot::Unfinished => lost = lost.saturating_add(1),
            }
            self.waited = 0;
            self.seen += 1;
        }
        lost
    }
}

enum RingSlot {
    Whole(PreloadRecord),
    WrittenOver,
    Unfinished,
}

fn read(words: &[AtomicU64], number: u64) -> RingSlot {
    let [first, rest @ ..] = words else {
        return RingSlot::Unfinished;
    };
    let found = first.load(Ordering::Acquire);
    if found < number {
        return RingSlot::Unfinished;
    }
    let mut values = [0; WORDS - 1];
    for (value, word) in values.iter_mut().zip(rest) {
        *value = word.load(Ordering::Relaxed);
    }
    fence(Ordering::Acquire);
    if found > number || first.load(Ordering::Relaxed) != number {
        return RingSlot::WrittenOver;
    }
    let [who, woke_ns, blocked_ns, executed_ns, cpu, name, more] = values;
    let mut comm = [0; 16];
    let (begin, end) = comm.split_at_mut(8);
    begin.copy_from_slice(&name.to_ne_bytes());
    end.copy_from_slice(&more.to_ne_bytes());
    let [pid, tid] = halves(who);
    let [preempted, waited_us] = halves(cpu);
    RingSlot::Whole(PreloadRecord {
        pid,
        tid,
        woke_ns,
        blocked_ns,
        executed_ns,
        preempted,
        waited_us,
        comm: Name::new(&comm),
    })
}

const fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ring([AtomicU64; 5 * WORDS]);

    impl Ring {
        fn new() -> Self {
            Self(std::array::from_fn(|_| AtomicU64::new(0)))
        }

        fn begin(&self) -> u64 {
            self.0[0].fetch_add(1, Ordering::Relaxed)
        }

        fn finish(&self, begun: u64) {
            let words = &self.0[WORDS * (1 + (begun % 4) as usize)..][..WORDS];
            words[2].store(begun * 10, Ordering::Relaxed);
            words[0].store(begun + 1, Ordering::Release);
        }

        fn write(&self) {
            self.finish(self.begin());
        }
    }

    fn pass(reader: &mut Reader, ring: &Ring) -> (Vec<u64>, u64) {
        let mut records = Vec::new();
        let lost = reader.read(&ring.0, &mut records);
        (records.iter().map(|record| record.woke_ns).collect(), lost)
    }

    #[test]
    fn each_record_is_read_once_and_what_was_written_over_is_counted() {
        let (ring, mut reader) = (Ring::new(), Reader::default());
        assert_eq!(pass(&mut reader, &ring), (vec![], 0));
        ring.write();
        ring.write();
        assert_eq!(pass(&mut reader, &ring), (vec![0, 10], 0));
        (0..6).for_each(|_| ring.write());
        assert_eq!(pass(&mut reader, &ring), (vec![40, 50, 60, 70], 2));
        assert_eq!(pass(&mut reader, &ring), (vec![], 0));
    }

    #[test]
    fn a_record_in_the_making_is_waited_for_but_not_for_ever() {
        let (ring, mut reader) = (Ring::new(), Reader::default());
        let slow = ring.begin();
        ring.write();
        assert_eq!(pass(&mut reader, &ring), (vec![], 0));
        ring.finish(slow);
        assert_eq!(pass(&mut reader, &ring), (vec![0, 10], 0));
        ring.begin();
        ring.write();
        let passes: Vec<_> = (0..=PATIENCE).map(|_| pass(&mut reader, &ring)).collect();
        assert_eq!(passes.last(), Some(&(vec![30], 1)));
        assert!(passes.iter().rev().skip(1).all(|pass| pass == &(vec![], 0)));
    }

    #[test]
    fn a_count_that_goes_back_is_taken_as_it_is() {
        let (ring, mut reader) = (Ring::new(), Reader::default());
        (0..3).for_each(|_| ring.write());
        assert_eq!(pass(&mut reader, &ring), (vec![0, 10, 20], 0));
        ring.0[0].store(1, Ordering::Relaxed);
        assert_eq!(pass(&mut reader, &ring), (vec![], 0));
        // The record after that is one that was read, written by another program.
        ring.0[0].store(2, Ordering::Relaxed);
        assert_eq!(pass(&mut reader, &ring), (vec![10], 0));
    }
}
