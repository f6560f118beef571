//! What a thread sees of the kernel while it is served, and before and after: the rows of
//! "For a program that asks for its own scheduling" in docs/limits.md.

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use onbeat_act::attributes::Policy;
use onbeat_act::{DeadlineActuator, task};
use onbeat_model::{Actuator, Boost, Reservation, Span, TaskId};

use crate::common::{
    Bandwidth, Process, actuator, eventually, needs_root, patiently, release, reserve, scheduling,
    small,
};

const NOBODY: libc::uid_t = 65534;
const OTHER: i64 = libc::SCHED_OTHER as i64;
const RESET_ON_FORK: i64 = 0x4000_0000;

/// How a thread is served.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Means {
    Reservation,
    Priority,
    Nice,
}

const ALL: [Means; 3] = [Means::Reservation, Means::Priority, Means::Nice];

impl Means {
    /// What a thread has before: only those with nice 0 are boosted.
    const fn nice(self) -> i32 {
        match self {
            Self::Reservation => 5,
            Self::Priority | Self::Nice => 0,
        }
    }

    fn boost(self) -> Boost {
        Boost {
            levels: 20,
            slice: Span::from_us(700),
            priority: u32::from(self == Self::Priority),
        }
    }

    fn begin(self, actuator: &mut DeadlineActuator, task: TaskId) {
        match self {
            Self::Reservation => reserve(actuator, task, small()),
            // A process that begins has a nice value first.
            _ => eventually("a boost", || {
                actuator.boost(task, Some(self.boost())).ok()?;
                let is_first = matches!(scheduling(task).policy, Policy::RoundRobin(_));
                (is_first == (self.boost().priority > 0)).then_some(())
            }),
        }
    }

    fn end(self, actuator: &mut DeadlineActuator, task: TaskId) {
        match self {
            Self::Reservation => release(actuator, task),
            _ => patiently("its end", || actuator.boost(task, None)),
        }
    }
}

/// What a thread sees before it is served, meanwhile, and after that.
fn seen<T: Send>(means: Means, mut look: impl FnMut() -> T + Send) -> [T; 3] {
    let _bandwidth = Bandwidth::a_little();
    let (_directory, mut actuator) = actuator();
    let (say, said) = mpsc::channel();
    std::thread::scope(|scope| {
        // Here, so that the thread ends with a test that fails.
        let (go_on, goes_on) = mpsc::channel();
        let thread = scope.spawn(move || {
            set_nice(means.nice());
            let mut next = || {
                let seen = look();
                say.send(task::own().unwrap()).unwrap();
                goes_on.recv().unwrap();
                seen
            };
            [next(), next(), next()]
        });
        let wait = || said.recv_timeout(Duration::from_secs(30)).unwrap();
        let task = wait();
        means.begin(&mut actuator, task);
        go_on.send(()).unwrap();
        wait();
        means.end(&mut actuator, task);
        go_on.send(()).unwrap();
        wait();
        go_on.send(()).unwrap();
        thread.join().unwrap()
    })
}

fn answer(result: libc::c_int) -> Result<i64, i32> {
    match result {
        -1 => Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        result => Ok(result.into()),
    }
}

fn set_nice(nice: i32) {
    // SAFETY: setpriority takes numbers and touches no memory.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }, 0);
}

/// Its policy and its nice value.
fn policy_and_nice() -> (i64, i32) {
    // SAFETY: both take numbers and touch no memory.
    unsafe {
        let policy = libc::sched_getscheduler(0);
        (policy.into(), libc::getpriority(libc::PRIO_PROCESS, 0))
    }
}

/// Goes to this policy, of priority 0.
fn set_policy(policy: i64) -> Result<i64, i32> {
    // SAFETY: a struct of numbers is right with zeros; the call reads it alone.
    unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        answer(libc::sched_setscheduler(0, policy as i32, &parameters))
    }
}

/// Limits itself to the first of so many CPUs.
fn run_on(cpus: usize) -> Result<i64, i32> {
    // SAFETY: a set of CPUs is right with zeros, and has room for all that are put in.
    unsafe {
        let mut mask: libc::cpu_set_t = std::mem::zeroed();
        (0..cpus).for_each(|cpu| libc::CPU_SET(cpu, &mut mask));
        answer(libc::sched_setaffinity(0, size_of_val(&mask), &mask))
    }
}

const ALL_CPUS: usize = libc::CPU_SETSIZE as usize;

/// Limits itself to the first CPU, then to none again.
fn pin() -> Result<i64, i32> {
    let pinned = run_on(1);
    run_on(ALL_CPUS).unwrap();
    pinned
}

/// The nice value of a program that it starts (by posix_spawn).
fn nice_of_child() -> i32 {
    let output = Command::new("nice").output().unwrap();
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap()
}

fn timer_slack_us() -> i64 {
    // SAFETY: it takes no more than its name.
    answer(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }).unwrap() / 1000
}

#[test]
fn a_reserved_thread_that_yields_waits_for_its_next_period() {
    needs_root!();
    let [_, with, _] = seen(Means::Reservation, || {
        let began = Instant::now();
        for _ in 0..4 {
            std::thread::yield_now();
        }
        began.elapsed()
    });
    // The period is 100 ms, and the first of them may end soon.
    assert!(with > Duration::from_millis(250), "{with:?}");
}

#[test]
fn a_thread_sees_the_policy_and_the_nice_value_that_it_was_given() {
    needs_root!();
    for means in ALL {
        let [before, with, after] = seen(means, policy_and_nice);
        let own = (OTHER, means.nice());
        assert_eq!((before, after), (own, own));
        let (policy, nice) = match means {
            Means::Reservation => (libc::SCHED_DEADLINE, 5),
            Means::Priority => (libc::SCHED_RR, 0),
            Means::Nice => (libc::SCHED_OTHER, -20),
        };
        assert_eq!(with, (i64::from(policy) | RESET_ON_FORK, nice), "{means:?}");
    }
}

#[test]
fn an_ordinary_user_is_refused_a_policy_that_does_not_reset_on_fork() {
    needs_root!();
    for means in ALL {
        let [before, with, after] = seen(means, || {
            // Of this thread alone, and so that it can be undone.
            let become_user = |uid: libc::uid_t| {
                // SAFETY: it takes numbers and touches no memory.
                answer(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, 0) } as i32)
            };
            become_user(NOBODY).unwrap();
            let set = set_policy(OTHER);
            become_user(0).unwrap();
            set
        });
        let refused = Err(libc::EPERM);
        assert_eq!([before, with, after], [Ok(0), refused, Ok(0)], "{means:?}");
    }
}

#[test]
fn a_reserved_thread_is_refused_a_narrower_affinity_until_it_is_released() {
    needs_root!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let refused = Err(libc::EBUSY);
    assert_eq!(seen(Means::Reservation, pin), [Ok(0), refused, Ok(0)]);
    for means in [Means::Priority, Means::Nice] {
        assert_eq!(seen(means, pin), [Ok(0); 3]);
    }
}

#[test]
fn a_program_that_a_served_thread_starts_has_nice_0() {
    needs_root!();
    for means in ALL {
        let own = means.nice();
        assert_eq!(seen(means, nice_of_child), [own, 0, own], "{means:?}");
    }
}

#[test]
fn a_timer_slack_of_its_own_outlasts_a_nice_value_and_may_not_outlast_a_priority() {
    needs_root!();
    for means in ALL {
        let mut looks = 0;
        let slacks = seen(means, || {
            looks += 1;
            if looks == 1 {
                // SAFETY: it takes numbers.
                answer(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_000_u64) }).unwrap();
            }
            timer_slack_us()
        });
        // Older kernels do not use it under a real-time policy, but keep it.
        let is_lost = means != Means::Nice && slacks == [1000, 0, 50];
        assert!(is_lost || slacks == [1000; 3], "{means:?}: {slacks:?}");
    }
}

#[test]
fn a_thread_that_spins_for_its_sibling_on_the_same_cpu_goes_on() {
    needs_root!();
    for means in [Means::Priority, Means::Nice] {
        seen(means, || {
            run_on(1).unwrap();
            let is_set = Arc::new(AtomicBool::new(false));
            let sets = Arc::clone(&is_set);
            let sibling = std::thread::spawn(move || {
                sets.store(true, Ordering::Release);
            });
            while !is_set.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            sibling.join().unwrap();
            run_on(ALL_CPUS).unwrap();
        });
    }
}

/// The kernel's priority of a task: below 0 above all ordinary ones.
fn priority(task: TaskId) -> i64 {
    let line = std::fs::read_to_string(format!("/proc/{}/stat", task.tid)).unwrap();
    let (_, fields) = line.rsplit_once(") ").unwrap();
    fields.split(' ').nth(15).unwrap().parse().unwrap()
}

#[test]
fn the_owner_of_a_lock_inherits_a_reservation_until_it_unlocks() {
    needs_root!();
    let _bandwidth = Bandwidth::a_little();
    let (_directory, mut actuator) = actuator();
    // SAFETY: attributes and mutex are made before they are used, and outlive both threads.
    let mutex = unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_mutexattr_init(&mut attributes);
        libc::pthread_mutexattr_setprotocol(&mut attributes, libc::PTHREAD_PRIO_INHERIT);
        let mutex = Box::leak(Box::new(std::mem::zeroed()));
        assert_eq!(libc::pthread_mutex_init(mutex, &attributes), 0);
        std::ptr::from_mut::<libc::pthread_mutex_t>(mutex) as usize
    };
    let lock = move || {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::pthread_mutex_lock(mutex as *mut _) }, 0);
    };
    let unlock = move || {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(mutex as *mut _) }, 0);
    };
    let (say, said) = mpsc::channel();
    let say_too = say.clone();
    let (end, ends) = mpsc::channel();
    let owner = std::thread::spawn(move || {
        lock();
        say.send(task::own().unwrap()).unwrap();
        ends.recv().unwrap();
        unlock();
        say.send(task::own().unwrap()).unwrap();
        ends.recv().unwrap();
    });
    let task = said.recv().unwrap();
    let (start, starts) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        say_too.send(task::own().unwrap()).unwrap();
        starts.recv().unwrap();
        lock();
        unlock();
    });
    let reserved = said.recv().unwrap();
    let reservation = Reservation::implicit(Span::from_ms(2), Span::from_ms(100)).unwrap();
    reserve(&mut actuator, reserved, reservation);
    start.send(()).unwrap();
    eventually("the owner goes first", || {
        (priority(task) < 0).then_some(())
    });
    end.send(()).unwrap();
    said.recv().unwrap();
    assert!(priority(task) > 0);
    end.send(()).unwrap();
    owner.join().unwrap();
    waiter.join().unwrap();
}

#[test]
fn a_real_time_priority_may_keep_a_thread_from_a_group_and_its_end_lets_it_in() {
    needs_root!();
    let Some(group) = Group::new() else {
        println!("skipped: seen: the cpu controller of cgroup v1 cannot be mounted here");
        return;
    };
    for means in ALL {
        let [before, with, after] = seen(means, || group.admit(task::own().unwrap().tid));
        assert_eq!((before, after), (Ok(()), Ok(())));
        // The kernels with CONFIG_RT_GROUP_SCHED refuse it.
        let may_be_refused = means != Means::Nice && with == Err(libc::EINVAL);
        assert!(with == Ok(()) || may_be_refused, "{means:?}: {with:?}");
        println!("{means:?}: {with:?}");
    }
}

#[test]
fn a_process_that_begins_may_be_moved_into_a_group_and_has_its_priority_soon() {
    needs_root!();
    let Some(group) = Group::new() else {
        println!("skipped: seen: the cpu controller of cgroup v1 cannot be mounted here");
        return;
    };
    let (_directory, mut actuator) = actuator();
    let boost = Some(Means::Priority.boost());
    // On a busy machine the process may have been there for a while when it is boosted.
    let process = (0..20)
        .map(|_| Process::asleep())
        .find(|process| {
            let tid = process.task().tid;
            // SAFETY: numbers only.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, tid, 0) };
            assert_eq!(actuator.boost(process.task(), boost), Ok(()));
            group.admit(tid) == Ok(())
        })
        .expect("one that could be moved");
    Means::Priority.begin(&mut actuator, process.task());
}

/// A control group of its own.
struct Group(tempfile::TempDir, String);

impl Group {
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "cgroup", "-o", "cpu", "none"])
            .arg(directory.path())
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then(|| {
                let name = format!("onbeat-test-{}", task::own().unwrap().tid);
                std::fs::create_dir(directory.path().join(&name)).unwrap();
                Self(directory, name)
            })
    }

    /// Moves the thread into it, and out again.
    fn admit(&self, tid: u32) -> Result<(), i32> {
        let moves = |file: &str| {
            let moved = std::fs::write(self.0.path().join(file), tid.to_string());
            moved.map_err(|error| error.raw_os_error().unwrap_or(0))
        };
        let moved = moves(&format!("{}/tasks", self.1));
        moves("tasks").unwrap();
        moved
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(self.0.path().join(&self.1));
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
