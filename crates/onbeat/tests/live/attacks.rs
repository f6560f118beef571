//! Programs that want more from `onbeat run` and `onbeat attach` than their account.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use onbeat_act::attributes::{Attributes, Policy};

use crate::ahead::{Stopped, ahead};
use crate::compiled::compiled;
use crate::{Folder, Mortal, RESERVES, eventually, is_reserved, needs_root};

fn goes_first(process: &Mortal) -> bool {
    let now = Attributes::get(process.id()).map(|now| now.policy);
    match now.expect("it lives") {
        Policy::Other(fair) => fair.nice < 0,
        policy => matches!(policy, Policy::RoundRobin(_)),
    }
}

#[test]
fn a_program_that_computes_with_the_reservation_of_one_that_waits_for_it_ends_that() {
    needs_root!();
    let folder = Folder::new();
    let program = folder.path("lending");
    compiled("../daemon/lending", &program);
    let mut beats = Command::new(&program);
    let beats = beats.arg("beat").stdin(Stdio::piped());
    let mut beats = Mortal::spawn(beats.stdout(Stdio::null()));
    let mut attach = folder.keep("attach");
    let attach = attach.args(RESERVES).arg("--quiet");
    let mut onbeat = Mortal::spawn(attach.arg(beats.id().to_string()));
    eventually("a reservation", || is_reserved(beats.id()).then_some(()));
    let mut computes = Mortal::spawn(Command::new(&program).arg("spin"));
    let mut input = beats.0.stdin.take().expect("it is piped");
    writeln!(input, "{}", computes.id()).expect("it reads");
    eventually("the end of the reservation", || {
        (!is_reserved(beats.id())).then_some(())
    });
    let has_ended = computes.0.try_wait().expect("it is our child").is_some();
    assert!(!has_ended, "it computed for as long as it wanted");
    eventually("a word about it", || {
        let told = |entry: &serde_json::Value| entry["what"] == "taken-over";
        folder.log().iter().any(told).then_some(())
    });
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
}

#[test]
fn a_program_that_executes_itself_by_another_thread_gets_no_more_than_its_account() {
    needs_root!();
    let folder = Folder::new();
    let program = folder.path("executing");
    compiled("../daemon/bounds", &program);
    let process = Mortal::spawn(Command::new(&program).arg("execute"));
    let mut attach = folder.keep("attach");
    let _onbeat = Mortal::spawn(attach.arg("--quiet").arg(process.id().to_string()));
    let (ahead, time) = ahead(process.id(), Duration::from_secs(6));
    assert!(ahead > Duration::ZERO, "it went first");
    // 0.8 s at once, a twentieth, and what is used until the next look.
    let most = time / 20 + Duration::from_millis(1050);
    assert!(ahead < most, "{ahead:?} in {time:?}");
}

/// Whoever goes first is an ordinary program while `stop` has something, and goes first again.
fn loses_it_while<T>(stop: impl FnOnce(&Mortal) -> T, go_on: impl FnOnce(&Mortal, T)) {
    let folder = Folder::new();
    let sleeps = Mortal::spawn(Command::new("sleep").arg("1000"));
    let mut attach = folder.keep("attach");
    let mut onbeat = Mortal::spawn(attach.arg("--quiet").arg(sleeps.id().to_string()));
    eventually("who goes first", || goes_first(&sleeps).then_some(()));
    let stopped = stop(&onbeat);
    eventually("an ordinary program", || {
        (!goes_first(&sleeps)).then_some(())
    });
    go_on(&onbeat, stopped);
    eventually("who goes first again", || goes_first(&sleeps).then_some(()));
    onbeat.signal(libc::SIGTERM);
    assert_eq!(onbeat.status(), Some(0));
    assert!(!goes_first(&sleeps));
    assert_eq!(folder.state_files(), 0);
}

#[test]
fn who_goes_first_does_so_no_longer_while_the_loop_stands_still() {
    needs_root!();
    loses_it_while(
        |onbeat| Stopped::new(onbeat.id()),
        |_, stopped| drop(stopped),
    );
}

#[test]
fn who_goes_first_does_so_no_longer_while_onbeat_is_stopped() {
    needs_root!();
    let stop = |onbeat: &Mortal| onbeat.signal(libc::SIGSTOP);
    loses_it_while(stop, |onbeat, ()| onbeat.signal(libc::SIGCONT));
}
