//! The service ends while the kernel holds threads up that have used up what is reserved for them:
//! they have back what they had, and go on.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use onbeat_act::task;

use crate::common::{Mortal, eventually, needs_root};
use crate::library::reserving;
use crate::machine::{ALICE, Client, Machine, is_ordinary, is_reserved, policy};
use crate::own_state::{onbeat, state_files};
use crate::realtimekit::audio;

/// Little enough that a thread that computes is held up most of the time.
const LITTLE: &str = "[quota]\nbandwidth = \"6%\"\n";
/// There is one at a time of those who compute with real-time priority.
static ONE: Mutex<()> = Mutex::new(());

/// A thread that RealtimeKit's protocol has given something, and one that has reserved by
/// libonbeat.
struct Two {
    audio: (Mortal, u32),
    program: Client,
    reserving: u32,
}

impl Two {
    /// Both compute.
    fn start(machine: &Machine) -> Self {
        let mut program = reserving(machine);
        let answer = program.ask("compute");
        let reserving = answer.parse().unwrap_or_else(|_| panic!("{answer}"));
        Self {
            audio: audio(machine, "busy"),
            program,
            reserving,
        }
    }

    fn tids(&self) -> [u32; 2] {
        [self.audio.1, self.reserving]
    }

    /// Waits until both are held up.
    fn are_held_up(&self, machine: &Machine) {
        let mut alice = machine.client(ALICE);
        let tid = self.audio.1;
        alice.done(&format!("reserve {tid} 50000000 1000000000 1000000000"));
        eventually("two threads that are held up", || {
            is_held_up(self.tids()).then_some(())
        });
    }

    fn go_on(&self) {
        for tid in self.tids() {
            assert!(is_ordinary(tid), "{tid}: {:?}", policy(tid));
            let before = executed_ns(tid);
            eventually("its work", || (executed_ns(tid) > before).then_some(()));
        }
    }
}

/// The CPU time that a thread has used.
fn executed_ns(tid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{tid}/schedstat")).expect("it lives");
    let executed = text.split_whitespace().next();
    executed.and_then(|ns| ns.parse().ok()).expect("a number")
}

/// Whether all are reserved for, want to run, and do not.
fn is_held_up(tids: [u32; 2]) -> bool {
    let want_to = || {
        tids.map(|tid| {
            let state = task::stat(tid).map(|stat| stat.state);
            is_reserved(tid).then_some((state? == 'R').then(|| executed_ns(tid))?)
        })
    };
    let before = want_to();
    std::thread::sleep(Duration::from_millis(50));
    before.iter().all(Option::is_some) && want_to() == before
}

fn held_up() -> (Machine, Two) {
    let mut machine = Machine::bus();
    machine.configure(LITTLE);
    machine.start();
    let two = Two::start(&machine);
    two.are_held_up(&machine);
    (machine, two)
}

#[test]
fn threads_that_are_held_up_have_back_what_they_had_when_the_service_has_ended() {
    needs_root!();
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut machine, two) = held_up();
    assert_eq!(machine.end(libc::SIGTERM), Some(0));
    two.go_on();
    assert_eq!(state_files(&machine.state()), 0);
    two.program.die();
}

#[test]
fn threads_that_are_held_up_have_back_what_they_had_after_a_kill_and_restore() {
    needs_root!();
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut machine, two) = held_up();
    assert_eq!(machine.end(libc::SIGKILL), None);
    // The guard does the same at the same time.
    let restored = onbeat(&machine.state()).arg("restore").output();
    let restored = restored.expect("it starts");
    assert!(restored.status.success(), "{restored:?}");
    two.go_on();
    assert_eq!(state_files(&machine.state()), 0);
    two.program.die();
}
