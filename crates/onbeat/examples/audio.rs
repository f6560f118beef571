//! A program that asks for real-time scheduling as a browser's audio thread does, by the protocol of
//! RealtimeKit: it reads what is granted, limits itself accordingly, and has another thread asked for by
//! process and thread number.
//!
//! ```text
//! audio beat      the thread then works for 1 ms every 10 ms
//! audio idle      it only sleeps, as one without a stream does
//! ```
//!
//! It prints the thread's number when it was granted, or the error.

use std::time::{Duration, Instant};

use zbus::blocking::{Connection, Proxy};

fn main() -> zbus::Result<()> {
    let beats = std::env::args().nth(1).as_deref() == Some("beat");
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        // SAFETY: gettid takes nothing and always succeeds.
        let _ = tell.send(unsafe { libc::gettid() });
        work(beats)
    });
    let Ok(tid) = told.recv() else {
        return Ok(());
    };
    let bus = Connection::system()?;
    let name = "org.freedesktop.RealtimeKit1";
    let kit = Proxy::new(&bus, name, "/org/freedesktop/RealtimeKit1", name)?;
    let most: i32 = kit.get_property("MaxRealtimePriority")?;
    let limit: i64 = kit.get_property("RTTimeUSecMax")?;
    limit_own_rttime(limit.unsigned_abs());
    let arguments = (
        u64::from(std::process::id()),
        u64::from(tid.unsigned_abs()),
        most.min(10).unsigned_abs(),
    );
    match kit.call::<_, _, ()>("MakeThreadRealtimeWithPID", &arguments) {
        Ok(()) => println!("{tid}"),
        Err(error) => println!("error {error}"),
    }
    let _ = thread.join();
    Ok(())
}

fn limit_own_rttime(us: u64) {
    let limit = libc::rlimit {
        rlim_cur: us,
        rlim_max: us,
    };
    // SAFETY: a valid structure that setrlimit only reads.
    unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) };
}

fn work(beats: bool) {
    let mut next = Instant::now();
    loop {
        next += Duration::from_millis(if beats { 10 } else { 100_000 });
        let until = Instant::now() + Duration::from_millis(u64::from(beats));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}
