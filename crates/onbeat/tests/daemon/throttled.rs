//! The service ends while the kernel holds threads up that have used up what is reserved for them:
//! they have back what they had, and go on.

use onbeat_act::task;

use crate::library::reserving;
use crate::prelude::*;
use crate::realtimekit::audio;

/// Little enough that a thread that computes is held up most of the time.
const LITTLE: &str = "[quota]\nbandwidth = \"6%\"\n";

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
        until("two threads that are held up", || is_held_up(self.tids()));
    }

    fn go_on(&self) {
        for tid in self.tids() {
            assert!(is_ordinary(tid), "{tid}: {:?}", policy(tid));
            let before = executed_ns(tid);
            until("its work", || executed_ns(tid) > before);
        }
    }
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

#[test]
fn threads_that_are_held_up_have_back_what_they_had_after_an_end_or_a_kill_and_restore() {
    for (signal, code) in [(libc::SIGTERM, Some(0)), (libc::SIGKILL, None)] {
        let mut machine = Machine::with(LITTLE);
        let two = Two::start(&machine);
        two.are_held_up(&machine);
        assert_eq!(machine.end(signal), code);
        // After a kill the guard does the same at the same time.
        let restored = onbeat(&machine.state()).arg("restore").output().unwrap();
        assert!(restored.status.success(), "{restored:?}");
        two.go_on();
        assert_eq!(state_files(&machine.state()), 0);
        two.program.die();
    }
}
