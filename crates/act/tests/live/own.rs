use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use onbeat_act::attributes::{Attributes, Policy, RealTime};
use onbeat_act::own::{Precedence, go_first, load_first, start_ahead};

use crate::common::{Process, attributes, eventually, scheduling};

#[test]
fn the_loop_goes_first_and_the_programs_it_starts_do_not() {
    let thread = std::thread::spawn(|| {
        assert_eq!(go_first(3).unwrap(), Precedence::RealTime);
        let own = Attributes::get(0).unwrap();
        let child = Process::start(Command::new("sleep").arg("1000"));
        (own, scheduling(child.task()))
    });
    let (own, child) = thread.join().unwrap();
    let first = attributes(Policy::Fifo(RealTime { priority: 3 }), true);
    assert_eq!(own, first);
    assert!(matches!(child.policy, Policy::Other(_)), "{child}");
}

#[test]
fn a_helper_that_is_waited_for_goes_first_too_and_what_is_started_after_it_does_not() {
    let start = || Process::start(Command::new("sleep").arg("1000"));
    let thread = std::thread::spawn(move || {
        assert_eq!(load_first().unwrap(), Precedence::RealTime);
        let helper = start_ahead(start);
        let program = start();
        (scheduling(helper.task()), scheduling(program.task()))
    });
    let (helper, program) = thread.join().unwrap();
    assert!(matches!(helper.policy, Policy::Fifo(_)), "{helper}");
    assert!(matches!(program.policy, Policy::Other(_)), "{program}");
}

#[test]
fn who_goes_first_gives_way_while_it_computes_without_a_pause() {
    static PAUSES: AtomicBool = AtomicBool::new(false);
    static ENDS: AtomicBool = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        assert_eq!(go_first(3).unwrap(), Precedence::RealTime);
        // A second time is no second look.
        assert_eq!(go_first(4).unwrap(), Precedence::RealTime);
        tell.send(own_tid()).unwrap();
        while !ENDS.load(Ordering::Relaxed) {
            if PAUSES.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let tid = told.recv().unwrap();
    let policy = || Attributes::get(tid).unwrap().policy;
    eventually("it gives way", || {
        matches!(policy(), Policy::Other(_)).then_some(())
    });
    PAUSES.store(true, Ordering::Relaxed);
    let first = Policy::Fifo(RealTime { priority: 4 });
    eventually("it goes first again", || (policy() == first).then_some(()));
    ENDS.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

/// The kernel waits, without sleeping, for an ending thread to remove its entries from `/proc`.
/// With both on one CPU, and the looking thread's priority the higher one, that is for ever.
#[test]
fn who_looks_up_threads_that_are_ending_goes_on() {
    static TID: AtomicU32 = AtomicU32::new(0);
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    static ENDS: AtomicBool = AtomicBool::new(false);
    let ended = || ENDS.load(Ordering::Relaxed);
    let short = std::thread::spawn(move || {
        stay_on_the_first_cpu();
        while !ended() {
            let live_shortly = || {
                let boosted = attributes(Policy::RoundRobin(RealTime { priority: 1 }), true);
                boosted.set(0).unwrap();
                TID.store(own_tid(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(300));
            };
            std::thread::spawn(live_shortly).join().unwrap();
        }
    });
    let (tell, told) = mpsc::channel();
    let looking = std::thread::spawn(move || {
        stay_on_the_first_cpu();
        assert_eq!(go_first(3).unwrap(), Precedence::RealTime);
        tell.send(own_tid()).unwrap();
        while !ended() {
            let tid = TID.load(Ordering::Relaxed);
            for path in [
                format!("/proc/{tid}/stat"),
                format!("/proc/{tid}/task/{tid}/stat"),
            ] {
                drop(std::fs::read(path));
            }
            LOOKS.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(150));
        }
    });
    let _rescue = Rescue(told.recv().unwrap());
    for _ in 0..10 {
        let before = LOOKS.load(Ordering::Relaxed);
        eventually("100 more looks", || {
            (LOOKS.load(Ordering::Relaxed) > before + 100).then_some(())
        });
    }
    ENDS.store(true, Ordering::Relaxed);
    looking.join().unwrap();
    short.join().unwrap();
}

/// Makes a thread ordinary: one that looks for ever could not even be killed.
struct Rescue(u32);

impl Drop for Rescue {
    fn drop(&mut self) {
        let _ = Attributes::ordinary(0, true).set(self.0);
    }
}

fn own_tid() -> u32 {
    // SAFETY: gettid takes nothing and always succeeds.
    unsafe { libc::gettid() }.unsigned_abs()
}

fn stay_on_the_first_cpu() {
    // SAFETY: a set of this function's, of the size that is told.
    unsafe {
        let mut first: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut first);
        libc::sched_setaffinity(0, size_of_val(&first), &raw const first);
    }
}
