use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use onbeat_kernel::{clock, proc::started_ticks};
use onbeat_model::{Follow, Sensor, Span, TaskId};
use onbeat_sense::bpf::{BpfOptions, Spender};

use crate::role::{Role, eventually, sensors, set_real_time, set_round_robin};

/// A lock whose owner inherits the priority of who waits for it.
struct Lock(UnsafeCell<MaybeUninit<libc::pthread_mutex_t>>);

// SAFETY: it is a lock between threads.
unsafe impl Sync for Lock {}
// SAFETY: it stays where it was made, in an `Arc`.
unsafe impl Send for Lock {}

impl Lock {
    fn new() -> Arc<Self> {
        let lock = Arc::new(Self(UnsafeCell::new(MaybeUninit::uninit())));
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: both are made here, and used by nobody yet.
        unsafe {
            libc::pthread_mutexattr_init(attributes.as_mut_ptr());
            let inherit = libc::PTHREAD_PRIO_INHERIT;
            libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), inherit);
            libc::pthread_mutex_init(lock.0.get().cast(), attributes.as_ptr());
        }
        lock
    }

    fn lock(&self) {
        // SAFETY: it was made, and stays where it is.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0.get().cast()) }, 0);
    }

    fn unlock(&self) {
        // SAFETY: the caller has it.
        let unlocked = unsafe { libc::pthread_mutex_unlock(self.0.get().cast()) };
        assert_eq!(unlocked, 0);
    }
}

/// The scheduler's account and the meter's are at most a tick apart.
const TICK: Span = Span::from_ms(10);

fn own_id() -> TaskId {
    // SAFETY: it takes nothing.
    let tid = unsafe { libc::gettid() }.unsigned_abs();
    let started_ticks = started_ticks(tid).unwrap();
    TaskId { tid, started_ticks }
}

fn spin(time: Span) -> Span {
    let before = clock::thread_cpu_time();
    while clock::thread_cpu_time() - before < time {}
    clock::thread_cpu_time() - before
}

#[test]
fn who_spins_with_a_priority_that_another_lends_is_charged_to_that_one_who_has_lent_too_much() {
    const USED: Span = Span::from_ms(60);
    for (hooks, sensor) in sensors(BpfOptions::default()) {
        let number = 7 + hooks as u32;
        let meter = sensor.meter();
        let lock = Lock::new();
        let waits = Arc::new(AtomicU32::new(0));
        lock.lock();
        let waiter = {
            let (lock, waits, meter) = (Arc::clone(&lock), Arc::clone(&waits), meter.clone());
            thread::spawn(move || {
                let id = own_id();
                set_round_robin(id.tid);
                meter.charge_to(id, number);
                meter.assign(id, number);
                meter.lends(id, Some(Span::from_ms(5)));
                waits.store(id.tid, Ordering::Release);
                lock.lock();
                lock.unlock();
                id
            })
        };
        let in_futex = format!("{} ", libc::SYS_futex);
        eventually("the waiter", || {
            let path = format!("/proc/{}/syscall", waits.load(Ordering::Acquire));
            std::fs::read_to_string(path).is_ok_and(|call| call.starts_with(&in_futex))
        });
        // It was raised while it looked: it is charged from its next time on the CPU on.
        thread::sleep(Duration::from_millis(1));
        let mut overdrawn = Vec::new();
        meter.overdrawn(|task, _| overdrawn.push(task));
        assert_eq!(overdrawn, [], "{hooks:?}: the owner slept");
        let used = spin(USED);
        meter.look();
        meter.overdrawn(|task, _| overdrawn.push(task));
        lock.unlock();
        let id = waiter.join().unwrap();
        assert_eq!(overdrawn, [id], "{hooks:?}");
        meter.lends(id, None);
        meter.overdrawn(|task, _| panic!("{hooks:?}: {task:?} has nothing to lend"));
        for spender in [Spender::Account(number), Spender::Application(number)] {
            let spent = meter.spent(spender);
            assert!(spent + TICK >= used, "{hooks:?}: {spent:?} of {used:?}");
        }
        meter.forget(id);
        let left = meter.spent(Spender::Application(number));
        assert_eq!(left, Span::ZERO, "{hooks:?}: room for another");
    }
}

#[test]
fn who_lends_for_moments_has_not_lent_too_much() {
    for (hooks, sensor) in sensors(BpfOptions::default()) {
        let meter = sensor.meter();
        let lock = Lock::new();
        let ends = Arc::new(AtomicBool::new(false));
        let waiter = {
            let (lock, ends, meter) = (Arc::clone(&lock), Arc::clone(&ends), meter.clone());
            thread::spawn(move || {
                let id = own_id();
                set_round_robin(id.tid);
                meter.lends(id, Some(Span::from_ms(5)));
                while !ends.load(Ordering::Acquire) {
                    lock.lock();
                    lock.unlock();
                    thread::sleep(Duration::from_millis(1));
                }
            })
        };
        for _ in 0..200 {
            lock.lock();
            spin(Span::from_us(5));
            lock.unlock();
            thread::sleep(Duration::from_millis(1));
        }
        ends.store(true, Ordering::Release);
        waiter.join().unwrap();
        meter.overdrawn(|task, _| panic!("{hooks:?}: {task:?}"));
    }
}

#[test]
fn a_thread_that_is_raised_while_it_runs_is_charged_from_then_on_and_not_after_it_was_lowered() {
    for (hooks, mut sensor) in sensors(BpfOptions::default()) {
        let mut role = Role::start();
        let id = role.id();
        let meter = sensor.meter();
        sensor.track(role.pid(), Follow::Threads).unwrap();
        sensor.assign(id, 5);
        role.tell(b's');
        eventually("it computes", || {
            sensor
                .executed(id)
                .is_some_and(|used| used >= Span::from_ms(20))
        });
        assert_eq!(sensor.spent(5), Some(Span::ZERO), "{hooks:?}");
        set_round_robin(role.pid());
        meter.lends(id, Some(Span::from_ms(5)));
        let before = sensor.executed(id).unwrap();
        eventually("it computes on", || {
            sensor.executed(id).unwrap() - before >= Span::from_ms(50)
        });
        let used = sensor.executed(id).unwrap() - before;
        thread::sleep(Duration::from_millis(10));
        meter.look();
        let spent = meter.spent(Spender::Application(5));
        assert!(spent + TICK >= used, "{hooks:?}: {spent:?} of {used:?}");
        // SAFETY: the parameters outlive the call.
        unsafe {
            let parameters = libc::sched_param { sched_priority: 0 };
            let pid = i32::try_from(role.pid()).unwrap();
            libc::sched_setscheduler(pid, libc::SCHED_OTHER, &raw const parameters);
        }
        meter.lends(id, None);
        let before = (
            meter.spent(Spender::Application(5)),
            sensor.executed(id).unwrap(),
        );
        eventually("it computes, as an ordinary task", || {
            sensor.executed(id).unwrap() - before.1 >= Span::from_ms(50)
        });
        meter.look();
        assert_eq!(meter.spent(Spender::Application(5)), before.0, "{hooks:?}");
        drop(role);
    }
}

#[test]
fn a_priority_that_somebody_else_has_given_is_told_and_one_that_ends_with_a_fork_is_not() {
    for (_, mut sensor) in sensors(BpfOptions::default()) {
        for (policy, is_told) in [
            (libc::SCHED_FIFO, true),
            (libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, false),
        ] {
            // Others on this machine may have one, too.
            eventually("what is told of this thread", || {
                let before = clock::now();
                let beats = thread::spawn(move || {
                    set_real_time(0, policy);
                    for _ in 0..10 {
                        thread::sleep(Duration::from_millis(1));
                    }
                });
                beats.join().unwrap();
                sensor.others_real_time().is_some_and(|at| at > before) == is_told
            });
        }
    }
}
