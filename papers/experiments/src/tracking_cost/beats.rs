//! A program of many periodic threads and nothing else: one sleep and one busy loop a job.

use std::thread;

use anyhow::Context;
use onbeat_model::Span;

use crate::clock::{execute, now, sleep_until};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many threads
    #[arg(long, value_name = "N")]
    pub(crate) threads: u32,
    /// The period of each, in microseconds
    #[arg(long, value_name = "US")]
    pub(crate) period: u64,
    /// The CPU time of each job, in microseconds
    #[arg(long, value_name = "US")]
    pub(crate) run: u64,
    /// For how long
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: u64,
}

/// A thread needs little.
const STACK: usize = 64 << 10;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let begin = now() + Span::from_ms(500);
    let period = Span::from_us(args.period);
    let end = begin + Span::from_secs(args.seconds);
    let threads: Vec<_> = (0..args.threads)
        .map(|number| {
            let first = begin + period * u64::from(number) / u64::from(args.threads);
            let work = Span::from_us(args.run);
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
fn beat(first: Span, end: Span, period: Span, work: Span) {
    let mut release = first;
    while release < end {
        sleep_until(release);
        execute(work);
        release += period;
    }
}
