//! The wishes of a task: when its jobs are released, and how much each has to compute.

mod arrival;
mod demand;
mod film;

use std::sync::Arc;

use onbeat_model::{Instant, Span};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Work;
pub use arrival::Arrival;
pub use demand::{Demand, Frames};
pub use film::Film;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// When it is due to begin; its response time counts from here.
    pub release: Instant,
    /// When its task can begin it: its release, or later if that has jitter.
    pub ready: Instant,
    /// The time for which the task sets the timer that it sleeps on until then; none if something
    /// else wakes it.
    pub expiry: Option<Instant>,
    pub deadline: Instant,
    pub demand: Work,
    /// In how many equal bursts; at least one.
    pub bursts: u32,
    /// For how long the task blocks between two of them; zero: it calls `sched_yield()`.
    pub pause: Span,
}

/// The source of a task's jobs.
///
/// Random draws come from a generator of the task's own, so what one task does never depends on
/// which other tasks there are.
#[derive(Clone, Debug)]
pub struct Workload {
    source: JobSource,
    relative_deadline: Option<Span>,
    bursts: u32,
    pause: Span,
    notifies: Notifies,
    marks: Option<u32>,
    later: Option<Box<(Instant, Workload)>>,
    random: Xoshiro256PlusPlus,
}

#[derive(Clone, Debug)]
enum JobSource {
    Drawn(Arrival, Demand),
    Listed {
        jobs: SharedList<JobSpec>,
        over: usize,
        period: Option<Span>,
    },
}

/// When a task says `mdn()`: that it has missed a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notifies {
    #[default]
    Never,
    /// At the end of each job that is late.
    WhenLate,
    /// Whenever it has computed so much, late or not.
    Every(Work),
}

impl Workload {
    /// Jobs that arrive and demand as given, drawn from the random sequence 0 of seed 0.
    pub fn new(arrival: Arrival, demand: Demand) -> Self {
        Self::from_source(JobSource::Drawn(arrival, demand))
    }

    /// These jobs one after the other, as a recording has them, of a task with this period, if it
    /// has one.
    pub fn listed(jobs: SharedList<JobSpec>, period: Option<Span>) -> Self {
        Self::from_source(JobSource::Listed {
            jobs,
            over: 0,
            period,
        })
    }

    fn from_source(source: JobSource) -> Self {
        Self {
            source,
            relative_deadline: None,
            bursts: 1,
            pause: Span::ZERO,
            notifies: Notifies::Never,
            marks: None,
            later: None,
            random: generator(0, 0),
        }
    }

    /// The same, drawn from another random sequence: those of one run share the seed, and each task
    /// has a stream of its own.
    pub fn seeded(mut self, seed: u64, stream: u64) -> Self {
        self.random = generator(seed, stream);
        self.later = self.later.map(|mut later| {
            later.1 = later.1.seeded(seed, !stream);
            later
        });
        self
    }

    /// `demand` at the beats of `period`, each job due by the next.
    pub fn periodic(period: Span, demand: Demand) -> Self {
        Self::new(Arrival::periodic(period), demand)
    }

    /// Each job is due this long after its release; otherwise one of a periodic task is due at the
    /// next release, any other never.
    pub const fn with_deadline(mut self, relative_deadline: Span) -> Self {
        self.relative_deadline = Some(relative_deadline);
        self
    }

    pub const fn in_bursts(mut self, bursts: u32, pause: Span) -> Self {
        self.bursts = if bursts == 0 { 1 } else { bursts };
        self.pause = pause;
        self
    }

    pub const fn is_cpu_bound(&self) -> bool {
        matches!(self.source, JobSource::Drawn(Arrival::Always, _))
    }

    pub const fn period(&self) -> Option<Span> {
        match &self.source {
            JobSource::Drawn(arrival, _) => arrival.period(),
            JobSource::Listed { period, .. } => *period,
        }
    }

    pub const fn notifying(mut self, notifies: Notifies) -> Self {
        self.notifies = notifies;
        self
    }

    /// The task says where its jobs begin and end (AQuoSA, `qmgr_begin_cycle` and
    /// `qmgr_end_cycle`), and before the first one its period, if it has one, and how many of a
    /// thousand jobs are to be in time.
    pub const fn marking(mut self, permille: u32) -> Self {
        self.marks = Some(permille);
        self
    }

    pub fn then(mut self, at: Instant, other: Workload) -> Self {
        self.later = Some(Box::new((at, other)));
        self
    }

    pub(crate) const fn notifies(&self) -> Notifies {
        self.notifies
    }

    pub(crate) const fn marks(&self) -> Option<u32> {
        self.marks
    }

    /// The next job, after the one before it ended at `ended`; none if there are no more.
    pub fn next(&mut self, ended: Instant) -> Option<JobSpec> {
        if let Some(later) = self.later.take_if(|later| later.0 <= ended) {
            *self = later.1;
        }
        let (arrival, demand) = match &mut self.source {
            JobSource::Drawn(arrival, demand) => (arrival, demand),
            JobSource::Listed { jobs, over, .. } => {
                let job = *jobs.get(*over)?;
                *over += 1;
                return Some(job);
            }
        };
        let (release, ready) = arrival.next(ended, &mut self.random)?;
        let relative = self.relative_deadline.or(arrival.period());
        Some(JobSpec {
            release,
            ready,
            expiry: arrival.sets_timer(release, ended).then_some(release),
            deadline: relative.map_or(NEVER, |relative| release + relative),
            demand: demand.next(&mut self.random)?,
            bursts: self.bursts,
            pause: self.pause,
        })
    }
}

/// The deadline of a job that has none.
pub const NEVER: Instant = Instant::from_ns(u64::MAX);

fn generator(seed: u64, stream: u64) -> Xoshiro256PlusPlus {
    // A state that is mostly zeros gives poor numbers at first: the rest is digits of pi, and the
    // jump mixes.
    let words = [seed, stream, 0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
    let mut state = [0; 32];
    for (bytes, word) in state.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let mut random = Xoshiro256PlusPlus::from_seed(state);
    random.jump();
    random
}

/// A list that several tasks, and several runs, can read at once.
pub type SharedList<T> = Arc<[T]>;

#[cfg(test)]
mod tests;
