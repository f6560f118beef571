//! The pauses between turns, which grow with the number of threads.
//!
//! Most of a job's cost is fetching its thread's record into the processor's caches. Several jobs
//! of a thread that are taken in together cost that once. The pauses do not grow while a thread is
//! new, because its period is to be found soon, nor while the CPUs' speed follows the turns. An
//! exhausted budget ends a pause, unless 100 threads or more do not fit.

use onbeat_model::Instant;

use crate::tuning::batching::{FEW_THREADS, LONGEST_PAUSE, NEW, OF_A_CROWD};

/// The factor by which pauses grow with the number of threads.
pub(crate) fn crowd(threads: usize) -> u64 {
    (threads as u64 / FEW_THREADS).clamp(1, LONGEST_PAUSE)
}

/// The time since which no thread is new.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnPace {
    calm_from: Instant,
    turned: Instant,
}

impl TurnPace {
    /// Notes a new thread.
    pub(crate) fn hurry(&mut self, at: Instant) {
        self.calm_from = self.calm_from.max(at + NEW);
    }

    pub(crate) fn turn(&mut self, now: Instant) {
        self.turned = now;
    }

    /// How many times as long as usual the loop may wait for events, with this number of `threads`.
    pub(crate) fn pauses(&self, threads: usize) -> u64 {
        if self.turned >= self.calm_from {
            crowd(threads)
        } else {
            1
        }
    }

    /// How many rhythms a turn may verify, `most` with few threads. Among many some always wait,
    /// and none needs it soon.
    pub(crate) fn verifications(most: usize, threads: usize) -> usize {
        if crowd(threads) > 1 {
            most.min(OF_A_CROWD)
        } else {
            most
        }
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::{Bandwidth, Capacity, Event, Name, Span, Task, TaskId};

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
    fn a_turn_verifies_four_rhythms_of_a_crowd_at_most() {
        assert_eq!(TurnPace::verifications(16, 399), 16);
        assert_eq!(TurnPace::verifications(16, 400), 4);
    }

    #[test]
    fn pauses_grow_with_the_number_of_threads_once_none_is_new() {
        let start = Instant::ZERO + Span::from_secs(1);
        let usual = Span::from_ms(20);
        for (threads, times) in [(1, 1), (399, 1), (400, 2), (1000, 5), (3000, 5)] {
            let mut controller = crowd_of(threads, start);
            assert_eq!(controller.pace(), usual, "{threads} are new");
            controller.turn(&[], start + Span::from_ms(2999), &mut |_| None);
            assert_eq!(controller.pace(), usual, "{threads} are new");
            controller.turn(&[], start + Span::from_secs(3), &mut |_| None);
            assert_eq!(controller.pace(), usual * times, "{threads}");
        }
    }
}
