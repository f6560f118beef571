//! How often the loop turns: the more threads it keeps, the more jobs of each it hears together.
//!
//! Of a thread that runs now and then nothing stays in the processor's caches, and to fetch it is most of what a job
//! costs. Jobs of one thread that are heard together cost that once. So with hundreds of threads the pauses between turns
//! grow; but not while a thread is new, which is to be found soon, and not where the CPUs' speed follows the turns. A
//! budget that ran out ends any pause, unless not all of a crowd fits (`backlog`).

use onbeat_model::{Instant, Span};

/// With so many threads the pauses begin to grow.
pub(super) const FEW_THREADS: u64 = 200;
/// To so many times their length at the most.
pub(super) const LONGEST: u64 = 5;
/// Then a turn verifies no more rhythms than that: forty a second of a thousand threads.
pub(super) const OF_A_CROWD: usize = 4;
/// A thread is new for so long.
const NEW: Span = Span::from_secs(3);

/// Since when there has been nothing new.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    calm_from: Instant,
    turned: Instant,
}

impl Pace {
    /// A thread is heard of for the first time.
    pub(crate) fn hurry(&mut self, at: Instant) {
        self.calm_from = self.calm_from.max(at + NEW);
    }

    pub(crate) fn turn(&mut self, now: Instant) {
        self.turned = now;
    }

    pub(super) fn is_calm(&self) -> bool {
        self.turned >= self.calm_from
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Bandwidth, Capacity, Event, Name, Task, TaskId};

    use super::*;
    use crate::{Controller, DryRun, Settings};

    fn crowd_of(threads: u32, at: Instant) -> Controller<DryRun> {
        let actuator = DryRun::new(Capacity {
            cpus: 1,
            admissible: Bandwidth::from_cpus(0.95),
            shortest_runtime: Span::from_ns(1024),
            shortest_period: Span::from_us(100),
            longest_period: Span::from_secs(4),
        });
        let mut controller = Controller::new(Settings::default(), actuator);
        let tracked = |number| Event::Tracked {
            at,
            task: Task {
                id: TaskId::recorded(number),
                pid: 1,
                comm: Name::default(),
            },
        };
        let tracked: Vec<Event> = (1..=threads).map(tracked).collect();
        controller.turn(&tracked, at, &mut |_| None);
        controller
    }

    #[test]
    fn pauses_grow_with_the_number_of_threads_once_none_is_new() {
        let start = Instant::ZERO + Span::from_secs(1);
        let usual = Settings::default().pace;
        for (threads, times) in [(1, 1), (399, 1), (400, 2), (1000, 5), (3000, 5)] {
            let mut controller = crowd_of(threads, start);
            assert_eq!(controller.pace(), usual, "{threads} are new");
            controller.turn(&[], start + NEW, &mut |_| None);
            assert_eq!(controller.pace(), usual * times, "{threads}");
        }
    }
}
