//! A program that asks for real-time scheduling as a browser's audio thread does, by the protocol
//! of RealtimeKit: it reads what is granted, limits itself accordingly, and has another thread
//! asked for by process and thread number.
//!
//! ```text
//! audio beat      the thread then works for 1 ms every 10 ms
//! audio idle      it only sleeps, as one without a stream does
//! audio busy      it computes, and sleeps before that would cost it its life, or others theirs
//! audio become PROGRAM    it executes that at the end of the input
//! ```
//!
//! It prints the thread's number when it was granted, or the error.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use zbus::blocking::{Connection, Proxy};

fn main() -> zbus::Result<()> {
    let how = std::env::args().nth(1).unwrap_or_default();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        // SAFETY: gettid takes nothing and always succeeds.
        let _ = tell.send(unsafe { libc::gettid() });
        match how.as_str() {
            "busy" => compute(),
            "become" => become_another(),
            how => work(how == "beat"),
        }
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

/// For half of the time, if it gets that: a real-time thread that never slept would keep all others
/// from working.
fn compute() -> ! {
    const TURN: Duration = Duration::from_millis(20);
    loop {
        let began = own_cpu_time();
        while own_cpu_time() - began < TURN {
            std::hint::spin_loop();
        }
        std::thread::sleep(TURN);
    }
}

fn become_another() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let program = std::env::args().nth(2).unwrap_or_default();
    let error = Command::new(program).arg("1000").exec();
    eprintln!("not executed: {error}");
}

fn own_cpu_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid structure for the result; a thread always has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
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
