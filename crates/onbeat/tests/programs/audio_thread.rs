//! A program whose audio thread is promoted by the library that Firefox and cubeb use,
//! audio_thread_priority, or with a budget in microseconds as its argument by onbeat-client, and
//! then, with a number of jobs as another one, until it has done these.
//!
//! It prints the thread's number, or the error; the thread then works for 1 ms every 10 ms.

use std::time::{Duration, Instant};

use audio_thread_priority::promote_current_thread_to_real_time;

const RATE_HZ: u32 = 48_000;
const PERIOD: Duration = Duration::from_millis(10);
const WORK: Duration = Duration::from_millis(1);

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| {
        let number: Result<u64, _> = number.parse();
        number.expect("a number")
    });
    let (budget, jobs) = (numbers.next().map(Duration::from_micros), numbers.next());
    let audio = std::thread::spawn(move || {
        // As many frames as are played in a period.
        let frames = RATE_HZ / 100;
        let mut kept = None;
        let promoted = if budget.is_some() {
            let asked = onbeat_client::keep_audio_thread(frames, RATE_HZ, budget);
            asked
                .map(|it| kept = Some(it))
                .map_err(|error| error.to_string())
        } else {
            let asked = promote_current_thread_to_real_time(frames, RATE_HZ);
            asked.map(drop).map_err(|error| format!("{error:?}"))
        };
        match promoted {
            // SAFETY: gettid takes nothing and always succeeds.
            Ok(()) => println!("{}", unsafe { libc::gettid() }),
            Err(error) => println!("error {error}"),
        }
        let mut next = Instant::now();
        for job in 0_u64.. {
            if Some(job) == jobs {
                drop(kept.take());
            }
            let until = Instant::now() + WORK;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            next += PERIOD;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    });
    let _ = audio.join();
}
