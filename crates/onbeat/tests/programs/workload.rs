//! A workload for tests and for trying onbeat out: threads that keep a beat, or none.
//!
//! ```text
//! workload [--jobs N] THREAD...
//!   beat:PERIOD_US/RUNTIME_US    wakes at absolute times, and counts the jobs that end too late
//!   random:MEAN_US/RUNTIME_US    sleeps of no pattern
//! ```
//!
//! Without `--jobs` the threads go on for ever. At the end each says in one line of JSON how it
//! went.

use std::process::ExitCode;

/// What a thread does with a time, a runtime and a number of jobs; the first two.
type Thread = (fn(u64, u64, u64), u64, u64);

fn thread(text: &str) -> Result<Thread, String> {
    let error = || format!("'{text}' is no thread, as in beat:20000/4000");
    let number = |text: &str| text.parse::<u64>().map_err(|_| error());
    let (kind, rest) = text.split_once(':').ok_or_else(error)?;
    let (time, runtime) = rest.split_once('/').ok_or_else(error)?;
    let run = match kind {
        "beat" => beat,
        "random" => random,
        _ => return Err(error()),
    };
    Ok((run, number(time)?, number(runtime)?))
}

fn beat(period_us: u64, runtime_us: u64, jobs: u64) {
    let mut release_ns = read(libc::CLOCK_MONOTONIC);
    let mut missed = 0_u64;
    for _ in 0..jobs {
        release_ns += period_us * 1000;
        sleep_until(release_ns);
        work(runtime_us);
        missed += u64::from(read(libc::CLOCK_MONOTONIC) > release_ns + period_us * 1000);
    }
    // SAFETY: takes nothing and always succeeds.
    let tid = unsafe { libc::gettid() };
    println!(r#"{{"tid":{tid},"period_us":{period_us},"jobs":{jobs},"missed":{missed}}}"#);
}

fn random(mean_us: u64, runtime_us: u64, jobs: u64) {
    let mut state = read(libc::CLOCK_MONOTONIC) | 1;
    for _ in 0..jobs {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let even = ((state >> 33) + 1) as f64 / (1_u64 << 31) as f64;
        let sleep_ns = -even.ln() * mean_us as f64 * 1000.0;
        sleep_until(read(libc::CLOCK_MONOTONIC) + sleep_ns as u64);
        work(runtime_us);
    }
}

/// Spins for so much CPU time of this thread.
fn work(runtime_us: u64) {
    let end_ns = read(libc::CLOCK_THREAD_CPUTIME_ID) + runtime_us * 1000;
    while read(libc::CLOCK_THREAD_CPUTIME_ID) < end_ns {
        std::hint::spin_loop();
    }
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec to where a live one is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

fn sleep_until(at_ns: u64) {
    let at = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000).cast_signed(),
        tv_nsec: (at_ns % 1_000_000_000).cast_signed(),
    };
    loop {
        // SAFETY: `at` is a live timespec that is only read; no remaining time is asked for.
        let interrupted = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const at,
                std::ptr::null_mut(),
            )
        };
        if interrupted != libc::EINTR {
            return;
        }
    }
}

fn parse(arguments: &[String]) -> Result<(u64, Vec<Thread>), String> {
    let (jobs, threads) = match arguments {
        [flag, jobs, threads @ ..] if flag == "--jobs" => {
            let jobs = jobs.parse().map_err(|_| format!("'{jobs}' is no number"))?;
            (jobs, threads)
        }
        threads => (u64::MAX, threads),
    };
    if threads.is_empty() {
        return Err("say which threads, as in beat:20000/4000".to_owned());
    }
    let threads = threads.iter().map(|text| thread(text));
    Ok((jobs, threads.collect::<Result<_, _>>()?))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (jobs, threads) = match parse(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("workload: {error}");
            return ExitCode::FAILURE;
        }
    };
    std::thread::scope(|scope| {
        for (run, time_us, runtime_us) in threads {
            scope.spawn(move || run(time_us, runtime_us, jobs));
        }
    });
    ExitCode::SUCCESS
}
