//! What an account's programs get above ordinary priority is bounded, whatever they do, and also
//! while the loop stands still.

use crate::ahead::{Stopped, ahead, nice};
use crate::begun::NO_SCAN;
use crate::prelude::*;

/// A service that has a program of users' go first, which is compiled from bounds.c, with a name of
/// its own.
fn machine(name: &str, more: &str) -> Machine {
    let machine = Machine::with(&format!("{NO_SCAN}{more}[[rule]]\nprogram = \"{name}\"\n"));
    compile(&machine, "bounds.c", name);
    machine
}

#[test]
fn a_program_that_executes_itself_by_another_thread_again_and_again_gets_no_more_than_its_quota() {
    let machine = machine("executing", "[quota]\nbandwidth = \"10%\"\n");
    let mut command = machine.command(ALICE, &machine.path("executing"));
    let process = Mortal::spawn(command.arg("execute"));
    let (ahead, time) = ahead(process.id(), Duration::from_secs(6));
    assert!(ahead > Duration::ZERO, "{}", machine.log());
    // A tenth, a second's tenth at once, and what is used until the next look: 0.25 s.
    let most = time / 10 + Duration::from_millis(350);
    assert!(ahead < most, "{ahead:?} in {time:?}");
}

#[test]
fn who_goes_first_is_ordinary_soon_after_the_loop_stands_still() {
    let machine = machine("outlasting", "");
    let mut root = machine.client(ROOT);
    let first = |uid| {
        let mut command = machine.command(uid, &machine.path("outlasting"));
        let process = Mortal::spawn(command.arg("spin"));
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(1) {
            if nice(process.id()) == Some(-20) {
                return Some(process);
            }
        }
        None
    };
    let (alices, bobs, stopped) = eventually("two programs that go first, and no loop", || {
        let (alices, bobs) = (first(ALICE)?, first(BOB)?);
        let stopped = Stopped::new(machine.service_pid());
        let go_first = [&alices, &bobs].map(|it| nice(it.id()) == Some(-20));
        // Else an account was used up before.
        (go_first == [true, true]).then_some((alices, bobs, stopped))
    });
    for process in [&alices, &bobs] {
        until("an ordinary nice value", || nice(process.id()) == Some(0));
    }
    drop(stopped);
    // It goes on, and others may go first.
    root.told("statistics");
    eventually("another program that goes first", || first(ALICE));
}
