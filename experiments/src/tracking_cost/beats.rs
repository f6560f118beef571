//! A program of many periodic threads and nothing else: one sleep and one busy loop a job.
//!
//! rt-app does as much again around each job as what it is told to do, and crashes now and then
//! when it starts hundreds of threads; where a thousand threads are to be there, and as little else
//! as possible, this one is run.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// What it is run with.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many threads
    #[arg(long, value_name = "N")]
    pub(crate) threads: u32,
    /// The period of each, in microseconds
    #[arg(long, value_name = "US")]
    pub(crate) period: u64,
    /// What each job takes of CPU time, in microseconds
    #[arg(long, value_name = "US")]
    pub(crate) run: u64,
    /// For how long
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: u64,
}

/// A thread needs little.
const STACK: usize = 64 << 10;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let begin = now(ClockId::Monotonic) + Duration::from_millis(500);
    let period = Duration::from_micros(args.period);
    let end = begin + Duration::from_secs(args.seconds);
    let threads: Vec<_> = (0..args.threads)
        .map(|number| {
            let first = begin + period * number / args.threads;
            let work = Duration::from_micros(args.run);
            let thread = thread::Builder::new().stack_size(STACK);
            thread.spawn(move || beat(first, end, period, work))
        })
        .collect::<Result<_, _>>()
        .context("cannot start so many threads")?;
    for thread in threads {
        // It cannot panic.
        let _ = thread.join();
    }
    Ok(())
}

/// A job at `first` and after each `period`; what is overdue at once.
fn beat(first: Duration, end: Duration, period: Duration, work: Duration) {
    let mut release = first;
    while release < end {
        let until = Timespec {
            tv_sec: release.as_secs().cast_signed(),
            tv_nsec: release.subsec_nanos().into(),
        };
        // A signal only makes it early.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
        let done = now(ClockId::ThreadCPUTime) + work;
        while now(ClockId::ThreadCPUTime) < done {}
        release += period;
    }
}

fn now(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32)
}
