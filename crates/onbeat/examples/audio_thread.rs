//! A program whose audio thread is promoted by the library that Firefox and cubeb use,
//! audio_thread_priority.
//!
//! It prints the thread's number, or the error; the thread then works for 1 ms every 10 ms.

use std::time::{Duration, Instant};

use audio_thread_priority::promote_current_thread_to_real_time;

const RATE_HZ: u32 = 48_000;
const PERIOD: Duration = Duration::from_millis(10);
const WORK: Duration = Duration::from_millis(1);

fn main() {
    let audio = std::thread::spawn(|| {
        // As many frames as are played in a period.
        match promote_current_thread_to_real_time(RATE_HZ / 100, RATE_HZ) {
            // SAFETY: gettid takes nothing and always succeeds.
            Ok(_) => println!("{}", unsafe { libc::gettid() }),
            Err(error) => println!("error {error:?}"),
        }
        let mut next = Instant::now();
        loop {
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
