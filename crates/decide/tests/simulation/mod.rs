//! A periodic thread in a hard constant bandwidth server, in virtual time: as the kernel's
//! SCHED_DEADLINE serves one task on a CPU that no task of higher priority wants.
//!
//! The rules, as in the kernel: a task that wakes keeps its deadline and what is left of its budget
//! if both together do not exceed its bandwidth, and gets a new deadline and the whole budget
//! otherwise; at an empty budget it waits until its deadline, where it gets the budget again, less
//! what it overran; a new runtime counts from the next such time. Enforcement is either exact (a
//! high resolution tick) or happens at the next scheduler tick, or when the task blocks.

use onbeat_decide::hysteresis::Hysteresis;
use onbeat_decide::predictor::{Parameters, Predictor};
use onbeat_model::{Burst, Demand, Instant, Job, Reservation, Span, TaskId};

pub(crate) struct Scene {
    pub(crate) period: Span,
    pub(crate) jobs: Vec<Span>,
    /// How many of the last jobs the predictor is shown.
    pub(crate) window: usize,
    /// By how much the server's period differs from the thread's.
    pub(crate) server_period_error: f64,
    /// The scheduler tick at which budgets are enforced; zero: exactly.
    pub(crate) tick: Span,
    /// The first reservation comes into force so far into the 17th job.
    pub(crate) out_of_step: Span,
    /// For how long the CPU is stolen from the job, if at all, by its index.
    pub(crate) stolen: fn(usize) -> Span,
}

impl Scene {
    pub(crate) fn of(period: Span, jobs: Vec<Span>) -> Self {
        Self {
            period,
            jobs,
            window: Parameters::default().window,
            server_period_error: 0.0,
            tick: Span::ZERO,
            out_of_step: Span::ZERO,
            stolen: |_| Span::ZERO,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) misses: f64,
    pub(crate) reserved_over_used: f64,
    pub(crate) changes: usize,
    pub(crate) exhaustions: usize,
    pub(crate) longest_run_of_misses: usize,
}

#[derive(Default)]
struct Server {
    held: Option<Reservation>,
    left: i64,
    deadline: u64,
}

impl Server {
    fn wake(&mut self, now: u64) -> u64 {
        let Some(held) = self.held else { return now };
        let (runtime, period) = (ns(held.runtime()), held.period().as_ns());
        if self.left <= 0 {
            let from = now.max(self.deadline);
            self.replenish();
            return from;
        }
        let room = i128::from(self.deadline) - i128::from(now);
        let too_much =
            i128::from(self.left) * i128::from(period) > room.max(0) * i128::from(runtime);
        if room <= 0 || too_much {
            self.deadline = now + period;
            self.left = runtime;
        }
        now
    }

    fn replenish(&mut self) {
        if let Some(held) = self.held {
            while self.left <= 0 {
                self.deadline += held.period().as_ns();
                self.left += ns(held.runtime());
            }
        }
    }
}

fn ns(span: Span) -> i64 {
    i64::try_from(span.as_ns()).unwrap()
}

pub(crate) fn play(scene: &Scene, predictor: &mut dyn Predictor) -> Outcome {
    const UNRESERVED_JOBS: usize = 16;
    let server_period = scene.period.scale(1.0 + scene.server_period_error);
    let mut world = World::new(server_period, scene.window, predictor);
    let mut free_at = 0;
    let mut merged: Option<(u64, u64, Span, bool)> = None;
    for (index, &demand) in scene.jobs.iter().enumerate() {
        let release = 1_000_000_000 + index as u64 * scene.period.as_ns();
        let slept = free_at < release;
        if slept && let Some((woke, due, executed, exhausted)) = merged.take() {
            world.job_seen(woke, free_at, due, executed, exhausted);
        }
        let mut now = if slept {
            world.server.wake(release)
        } else {
            free_at
        };
        if index == UNRESERVED_JOBS {
            now += scene.out_of_step.as_ns();
            world.reserve_at(now);
        }
        let exhausted_before = world.result.exhaustions;
        now = world.run(now, demand, scene.tick) + (scene.stolen)(index).as_ns();
        let exhausted = world.result.exhaustions > exhausted_before;
        free_at = now;
        if index > UNRESERVED_JOBS {
            world.account(demand, scene.period, now > release + scene.period.as_ns());
        }
        let due = release + scene.period.as_ns();
        let (woke, due, so_far, any) = merged.unwrap_or((release, due, Span::ZERO, false));
        merged = Some((woke, due, so_far + demand, any || exhausted));
    }
    world.finish()
}

struct World<'a> {
    predictor: &'a mut dyn Predictor,
    hysteresis: Hysteresis,
    demand: Demand,
    server: Server,
    server_period: Span,
    result: Outcome,
    jobs: usize,
    missed: usize,
    run_of_misses: usize,
    reserved: f64,
    used: f64,
}

impl<'a> World<'a> {
    fn new(server_period: Span, window: usize, predictor: &'a mut dyn Predictor) -> Self {
        Self {
            predictor,
            hysteresis: Hysteresis::default(),
            demand: Demand::new(window),
            server: Server::default(),
            server_period,
            result: Outcome::default(),
            jobs: 0,
            missed: 0,
            run_of_misses: 0,
            reserved: 0.0,
            used: 0.0,
        }
    }

    fn wanted(&self) -> Option<Reservation> {
        let runtime = self.predictor.runtime(self.server_period)?;
        Reservation::implicit(runtime, self.server_period).ok()
    }

    fn reserve_at(&mut self, now: u64) {
        self.server.held = self.wanted();
        if let Some(held) = self.server.held {
            self.server.left = ns(held.runtime());
            self.server.deadline = now + held.period().as_ns();
        }
    }

    fn adapt(&mut self) {
        if self.server.held.is_some()
            && let Some(wanted) = self.wanted()
            && let Some(change) = self.hysteresis.consider(self.server.held, wanted)
        {
            self.server.held = Some(change);
            self.result.changes += 1;
        }
    }

    /// Executes `demand` from `now` on; gives the time when it is done.
    fn run(&mut self, mut now: u64, demand: Span, tick: Span) -> u64 {
        let mut rest = ns(demand);
        while self.server.held.is_some() && rest > 0 {
            if self.server.left <= 0 {
                self.exhausted(now);
                now = now.max(self.server.deadline);
                self.server.replenish();
            }
            let mut slice = self.server.left;
            if !tick.is_zero() {
                let empty_at = now + slice.unsigned_abs();
                slice = i64::try_from(empty_at.next_multiple_of(tick.as_ns()) - now).unwrap();
            }
            let slice = slice.min(rest);
            now += slice.unsigned_abs();
            rest -= slice;
            self.server.left -= slice;
        }
        if self.server.held.is_some() && self.server.left <= 0 {
            self.exhausted(now);
        }
        now + u64::try_from(rest).unwrap()
    }

    fn exhausted(&mut self, now: u64) {
        if let Some(held) = self.server.held {
            self.result.exhaustions += 1;
            self.predictor.exhausted(Instant::from_ns(now), held);
            self.adapt();
        }
    }

    fn job_seen(&mut self, woke: u64, ended: u64, due: u64, executed: Span, exhausted: bool) {
        self.demand.record(executed);
        let job = Job {
            ended: Instant::from_ns(ended),
            exhausted,
            ..Job::of(
                &Burst::alone(TaskId::recorded(1), Instant::from_ns(woke), executed),
                Instant::from_ns(woke),
                Instant::from_ns(due),
            )
        };
        self.predictor.job(&job, &self.demand);
        self.adapt();
    }

    fn account(&mut self, demand: Span, period: Span, missed: bool) {
        let Some(held) = self.server.held else { return };
        self.jobs += 1;
        self.missed += usize::from(missed);
        self.run_of_misses = if missed { self.run_of_misses + 1 } else { 0 };
        self.result.longest_run_of_misses =
            self.result.longest_run_of_misses.max(self.run_of_misses);
        self.reserved += held.bandwidth().as_cpus() * period.as_secs_f64();
        self.used += demand.as_secs_f64();
    }

    fn finish(mut self) -> Outcome {
        self.result.misses = self.missed as f64 / self.jobs as f64;
        self.result.reserved_over_used = self.reserved / self.used;
        self.result
    }
}

/// Reproducible noise: a linear congruential generator (Knuth, MMIX).
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The next number of a standard normal distribution (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().max(1e-12).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}
