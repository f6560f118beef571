//! Threads of 50 Hz that the loop keeps, without a kernel: for what a job costs it, in time and in
//! memory.

use std::convert::Infallible;

use onbeat_control::{Controller, DryRun, Settings};
use onbeat_model::{
    Bandwidth, Burst, Capacity, Event, Flow, Follow, Instant, Name, Sensor, Span, Task, TaskId,
};

pub(crate) const PERIOD: Span = Span::from_ms(20);
/// Until all are kept, and their rhythms have been verified for a while, the last time from 16 s
/// on, one after the other: the next time is after 32 s.
const SETTLE: Span = Span::from_secs(28);

/// Room for all, and no system call.
fn roomy() -> DryRun {
    DryRun::new(Capacity {
        cpus: 64,
        admissible: Bandwidth::from_cpus(60.0),
        shortest_runtime: Span::from_ns(1024),
        shortest_period: Span::from_us(100),
        longest_period: Span::from_secs(4),
    })
}

struct Silent;

impl Sensor for Silent {
    type Error = Infallible;

    fn track(&mut self, _tid: u32, _follow: Follow) -> Result<(), Infallible> {
        Ok(())
    }

    fn untrack(&mut self, _tasks: &[TaskId]) -> Result<(), Infallible> {
        Ok(())
    }

    fn poll(&mut self, _timeout: Span, _events: &mut Vec<Event>) -> Result<Flow, Infallible> {
        Ok(Flow::Open)
    }

    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn executed(&mut self, _task: TaskId) -> Option<Span> {
        None
    }
}

/// The threads' jobs, up to 100 us off the beat, and the loop that hears them.
pub(crate) struct Crowd {
    controller: Controller<DryRun>,
    now: Instant,
    threads: u32,
    turn: Span,
    by_thread: bool,
    seed: u64,
}

impl Crowd {
    /// After they have been found; it hears them once in a `turn`, in the order of time or one
    /// thread after another.
    pub(crate) fn new(threads: u32, turn: Span, by_thread: bool) -> Self {
        let mut crowd = Self {
            controller: Controller::new(Settings::default(), roomy()),
            now: Instant::ZERO + Span::from_secs(1),
            threads,
            turn,
            by_thread,
            seed: 1,
        };
        let tracked: Vec<Event> = (0..threads)
            .map(|number| Event::Tracked {
                at: crowd.now,
                task: Task {
                    id: id(number),
                    pid: 1,
                    comm: Name::default(),
                },
            })
            .collect();
        crowd.hear(&[tracked]);
        let warm = crowd.turns(SETTLE);
        crowd.hear(&warm);
        assert_eq!(crowd.controller.held().count(), threads as usize);
        crowd
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.seed >> 33) % below
    }

    pub(crate) fn turns(&mut self, time: Span) -> Vec<Vec<Event>> {
        let turns = time.as_ns() / self.turn.as_ns();
        (0..turns)
            .map(|turn| self.heard_in(self.now + self.turn * turn))
            .collect()
    }

    fn heard_in(&mut self, begin: Instant) -> Vec<Event> {
        let jobs = self.turn.as_ns() / PERIOD.as_ns();
        let mut bursts: Vec<Burst> = Vec::new();
        for number in 0..self.threads {
            for job in 0..jobs {
                let phase = PERIOD.as_ns() * u64::from(number) / (2 * u64::from(self.threads));
                let woke = begin + PERIOD * job + Span::from_ns(phase + self.random(100_000));
                let executed = Span::from_ns(20_000 + self.random(2_000));
                bursts.push(Burst {
                    woke,
                    ..Burst::alone(id(number), woke + Span::from_us(5), executed)
                });
            }
        }
        if !self.by_thread {
            bursts.sort_by_key(|burst| burst.blocked);
        }
        bursts.into_iter().map(Event::Burst).collect()
    }

    pub(crate) fn hear(&mut self, turns: &[Vec<Event>]) {
        turns.iter().for_each(|events| self.hear_turn(events));
    }

    pub(crate) fn hear_turn(&mut self, events: &[Event]) {
        self.now = self.now + self.turn;
        self.controller.turn(events, self.now, &mut Silent);
        drop(self.controller.journal());
    }
}

fn id(number: u32) -> TaskId {
    TaskId {
        tid: 1000 + number,
        started_ticks: 7,
    }
}
