//! What a thread sees of its scheduling while it is served, and before and after: rows of
//! "For a program that asks for its own scheduling" in docs/limits.md.

use std::io;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use onbeat_act::attributes::Policy;
use onbeat_act::{DeadlineActuator, task};
use onbeat_model::{Actuator, Boost, Span, TaskId};

use crate::common::{
    Bandwidth, Live, Process, eventually, live, patiently, release, reserve, scheduling, set_nice,
    small,
};

const OTHER: i64 = libc::SCHED_OTHER as i64;
const RESET_ON_FORK: i64 = 0x4000_0000;

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

fn seen<T: Send>(means: Means, mut look: impl FnMut() -> T + Send) -> [T; 3] {
    let mut actuator = Live::with(Bandwidth::a_little());
    let (say, said) = mpsc::channel();
    std::thread::scope(|scope| {
        // Here, so that the thread ends with a test that fails.
        let (go_on, goes_on) = mpsc::channel();
        let thread = scope.spawn(move || {
            set_nice(task::own().unwrap(), means.nice());
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

fn policy_and_nice() -> (i64, i32) {
    // SAFETY: both take numbers and touch no memory.
    unsafe {
        let policy = libc::sched_getscheduler(0);
        (policy.into(), libc::getpriority(libc::PRIO_PROCESS, 0))
    }
}

fn run_on(cpus: usize) -> Result<i64, i32> {
    // SAFETY: a set of CPUs is right with zeros, and has room for all that are put in.
    unsafe {
        let mut mask: libc::cpu_set_t = std::mem::zeroed();
        (0..cpus).for_each(|cpu| libc::CPU_SET(cpu, &mut mask));
        answer(libc::sched_setaffinity(0, size_of_val(&mask), &mask))
    }
}

const ALL_CPUS: usize = libc::CPU_SETSIZE as usize;

fn pin() -> Result<i64, i32> {
    let pinned = run_on(1);
    run_on(ALL_CPUS).unwrap();
    pinned
}

fn nice_of_child() -> i32 {
    let output = Command::new("nice").output().unwrap();
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_thread_sees_the_policy_and_the_nice_value_that_it_was_given() {
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
fn a_reserved_thread_is_refused_a_narrower_affinity_until_it_is_released() {
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
    for means in ALL {
        let own = means.nice();
        assert_eq!(seen(means, nice_of_child), [own, 0, own], "{means:?}");
    }
}

/// A process that begins may be moved into a control group, which a real-time priority may forbid.
#[test]
fn a_process_that_begins_has_a_nice_value_at_first_and_its_priority_soon() {
    let mut actuator = live();
    let boost = Some(Means::Priority.boost());
    // On a busy machine the process may have been there for a while when it is boosted.
    let process = (0..20)
        .map(|_| Process::asleep())
        .find(|process| {
            let task = process.task();
            set_nice(task, 0);
            assert_eq!(actuator.boost(task, boost), Ok(()));
            matches!(scheduling(task).policy, Policy::Other(_))
        })
        .expect("one that has just begun");
    Means::Priority.begin(&mut actuator, process.task());
}
