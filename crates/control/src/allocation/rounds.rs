//! Arbitrates in rounds if there are 100 requests or more and they do not fit.
//!
//! A changed request changes every thread's share a little, and with hundreds of requests one
//! changes all the time. But all shares follow from one number, the supervisor's level, which
//! hardly moves. A round looks at all requests, sets the level and leaves a twentieth of the total
//! free. Until the next round a thread that wants more, or another period, gets what follows from
//! this level at once, if that is worth a system call. A thread that wants less waits for the next
//! round. That comes at once when the room is used up, otherwise after 500 ms if a thread waits.

use onbeat_decide::supervisor::Level;
use onbeat_model::{Bandwidth, Instant};

use super::arbiter::Adjustment;
use super::bandwidth;
use super::filter::{is_another, is_small};
use crate::slots::Slot;
use crate::tuning::requests::ROUND;

/// The last round, and when the next one is due.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    level: Option<Level>,
    next: Instant,
    waiting: Vec<Slot>,
    /// There is room for more, although no request asks for it.
    leaves_room: bool,
}

impl Rounds {
    /// There was a round: `level` is what came of it; none if there is no crowd.
    pub(crate) fn held(&mut self, level: Option<Level>, now: Instant) {
        self.level = level;
        self.next = now + ROUND;
        self.leaves_room = false;
    }

    /// The thread in `slot` waits for the next round.
    pub(crate) fn wait(&mut self, slot: Slot) {
        self.waiting.push(slot);
    }

    /// The threads that waited for a round that has been held.
    pub(crate) fn take_waiting(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.waiting)
    }

    /// The thread in `slot` is no more.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.waiting.retain(|&other| other != slot);
    }

    /// A wish was taken back. True if others hear of that in the next round.
    pub(crate) const fn leave_room(&mut self) -> bool {
        self.leaves_room = self.level.is_some();
        self.leaves_room
    }

    pub(crate) const fn level(&self) -> Option<Level> {
        self.level
    }

    /// Whether it is time for another round, because of those who wait or because all `fits` again.
    pub(crate) fn is_due(&self, now: Instant, fits: bool) -> bool {
        let is_news = self.leaves_room || !self.waiting.is_empty() || fits;
        self.level.is_some() && is_news && now >= self.next
    }
}

/// The `steps` of a round that are worth a system call. Threads that would have less give way only
/// until no more than `total` is in force, those with the most above their share first; those with
/// little only if there is more than `most` otherwise.
pub(crate) fn no_more_than_it_takes(
    steps: Vec<Adjustment>,
    in_force: Bandwidth,
    (total, most): (Bandwidth, Bandwidth),
) -> Vec<Adjustment> {
    let less = |step: &Adjustment| bandwidth(step.held) - bandwidth(step.target);
    let more = |step: &Adjustment| bandwidth(step.target) - bandwidth(step.held);
    let falls = |step: &Adjustment| less(step) > Bandwidth::ZERO;
    let is_small = |step: &Adjustment| is_small(step.held, step.target);
    let (mut falling, mut others): (Vec<Adjustment>, Vec<Adjustment>) =
        steps.into_iter().partition(falls);
    others.retain(|step| !is_small(step));
    falling.sort_by_key(|step| (is_small(step), std::cmp::Reverse(less(step))));
    let must = |step: &&Adjustment| is_another(step.held, step.target);
    let mut left =
        in_force + others.iter().map(more).sum() - falling.iter().filter(must).map(less).sum();
    let mut is_scarce = None;
    falling.retain(|step| {
        if must(&step) {
            return true;
        }
        let may = !is_small(step) || *is_scarce.get_or_insert(left > most);
        let gives_way = may && left > total;
        if gives_way {
            left = left - less(step);
        }
        gives_way
    });
    falling.append(&mut others);
    falling
}

#[cfg(test)]
mod tests {
    use onbeat_decide::supervisor::Limits;

    use onbeat_model::{Reservation, Span};

    use super::*;
    use crate::Why;

    fn of_us(runtime: u64) -> Option<Reservation> {
        Reservation::implicit(Span::from_us(runtime), Span::from_ms(10)).ok()
    }

    /// The threads whose budgets change; each is (microseconds held, microseconds to have) in 10
    /// ms.
    fn who_changes(threads: &[(u64, u64)], total_us: u64, most_us: u64) -> Vec<Slot> {
        let steps = threads
            .iter()
            .zip(0..)
            .map(|(&(held, target), slot)| Adjustment {
                slot,
                held: of_us(held),
                target: of_us(target),
                why: Why::RoomAgain,
            });
        let share = |us| bandwidth(of_us(us));
        let in_force = threads.iter().map(|&(held, _)| share(held)).sum();
        let kept =
            no_more_than_it_takes(steps.collect(), in_force, (share(total_us), share(most_us)));
        kept.iter().map(|step| step.slot).collect()
    }

    #[test]
    fn no_thread_gives_way_before_there_is_too_much() {
        assert_eq!(who_changes(&[(500, 400), (300, 350)], 900, 950), [1]);
        assert_eq!(who_changes(&[(500, 400), (300, 310)], 700, 850), [0]);
    }

    #[test]
    fn who_has_most_above_its_share_gives_way_first_and_before_anybody_is_raised() {
        let threads = [(100, 200), (300, 280), (500, 400), (300, 250), (100, 98)];
        assert_eq!(who_changes(&threads, 1300, 1400), [2, 0]);
        assert_eq!(who_changes(&threads, 1250, 1400), [2, 3, 0]);
        assert_eq!(who_changes(&threads, 1200, 1400), [2, 3, 1, 0]);
    }

    #[test]
    fn a_little_is_given_back_only_where_there_is_no_room_at_all_otherwise() {
        let threads = [(100, 98), (200, 195), (300, 400)];
        assert_eq!(who_changes(&threads, 650, 700), [2]);
        assert_eq!(who_changes(&threads, 650, 699), [1, 0, 2]);
    }

    #[test]
    fn rounds_come_when_a_thread_waits_and_half_a_second_after_the_last() {
        let start = Instant::ZERO + Span::from_secs(1);
        let round = Span::from_ms(500);
        let level = supervisor_level();
        let mut rounds = Rounds::default();
        assert!(!rounds.leave_room(), "there is no crowd");
        rounds.held(Some(level), start);
        assert!(!rounds.is_due(start + round, false));
        assert!(rounds.is_due(start + round, true));
        assert!(rounds.leave_room());
        assert!(!rounds.is_due(start + Span::from_ms(499), true));
        assert!(rounds.is_due(start + round, false));
        rounds.held(Some(level), start + round);
        rounds.waiting.push(7);
        assert!(rounds.is_due(start + round * 2, false));
        rounds.forget(7);
        assert!(!rounds.is_due(start + round * 2, false));
    }

    fn supervisor_level() -> Level {
        let limits = Limits {
            total: Bandwidth::ONE,
            per_task: Bandwidth::ONE,
            shortest_runtime: Span::from_ns(1024),
        };
        onbeat_decide::supervisor::arbitrate(&[], &limits).level
    }
}
