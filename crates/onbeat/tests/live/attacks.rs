//! Programs that want more from `onbeat run` and `onbeat attach` than their account.

use std::io::Write;

use onbeat_act::attributes::{Attributes, Policy};

use crate::ahead::{Stopped, ahead};
use crate::compiled::compiled;
use crate::*;

fn goes_first(process: &Mortal) -> bool {
    let now = Attributes::get(process.id()).map(|now| now.policy);
    match now.expect("it lives") {
        Policy::Other(fair) => fair.nice < 0,
        policy => matches!(policy, Policy::RoundRobin(_)),
    }
}

#[test]
fn a_program_that_computes_with_the_reservation_of_one_that_waits_for_it_ends_that() {
    let folder = Folder::new();
    let program = folder.path("lending");
    compiled("../daemon/lending", &program);
    let mut beats = Command::new(&program);
    let beats = beats.arg("beat").stdin(Stdio::piped());
    let mut beats = Mortal::spawn(beats.stdout(Stdio::null()));
    let [flag, reserves] = RESERVES;
    let mut onbeat = folder.attach(beats.id(), &[flag, reserves, "--quiet"]);
    until("a reservation", || is_reserved(beats.id()));
    let mut computes = Mortal::spawn(Command::new(&program).arg("spin"));
    let mut input = beats.0.stdin.take().expect("it is piped");
    writeln!(input, "{}", computes.id()).expect("it reads");
    until("the end of the reservation", || !is_reserved(beats.id()));
    let has_ended = computes.0.try_wait().unwrap().is_some();
    assert!(!has_ended, "it computed for as long as it wanted");
    folder.says("taken-over");
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(0));
}

#[test]
fn a_program_that_executes_itself_by_another_thread_gets_no_more_than_its_account() {
    let folder = Folder::new();
    let program = folder.path("executing");
    compiled("../daemon/bounds", &program);
    let process = Mortal::spawn(Command::new(&program).arg("execute"));
    let _onbeat = folder.attach(process.id(), &["--quiet"]);
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
    let mut onbeat = folder.attach(sleeps.id(), &["--quiet"]);
    until("who goes first", || goes_first(&sleeps));
    let stopped = stop(&onbeat);
    until("an ordinary program", || !goes_first(&sleeps));
    go_on(&onbeat, stopped);
    until("who goes first again", || goes_first(&sleeps));
    assert_eq!(onbeat.ends(libc::SIGTERM), Some(0));
    assert!(!goes_first(&sleeps));
    assert_eq!(folder.state_files(), 0);
}

#[test]
fn who_goes_first_does_so_no_longer_while_the_loop_stands_still() {
    let stop = |onbeat: &Mortal| Stopped::new(onbeat.id());
    loses_it_while(stop, |_, stopped| drop(stopped));
}

#[test]
fn who_goes_first_does_so_no_longer_while_onbeat_is_stopped() {
    let stop = |onbeat: &Mortal| onbeat.signal(libc::SIGSTOP);
    loses_it_while(stop, |onbeat, ()| onbeat.signal(libc::SIGCONT));
}
