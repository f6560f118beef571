//! onbeat's own thread goes first, and nothing that it starts does.

use std::process::Command;

use onbeat_act::attributes::{Attributes, Policy, RealTime};
use onbeat_act::own::{Precedence, go_first, load_first, start_ahead};

use crate::common::{Process, can_run, scheduling};

#[test]
fn the_loop_goes_first_and_the_programs_it_starts_do_not() {
    if !can_run("the_loop_goes_first_and_the_programs_it_starts_do_not") {
        return;
    }
    let thread = std::thread::spawn(|| {
        assert_eq!(go_first(3).unwrap(), Precedence::RealTime);
        let own = Attributes::get(0).unwrap();
        let child = Process::start(Command::new("sleep").arg("1000"));
        (own, scheduling(child.task()))
    });
    let (own, child) = thread.join().unwrap();
    let first = Attributes {
        policy: Policy::Fifo(RealTime { priority: 3 }),
        reset_on_fork: true,
    };
    assert_eq!(own, first);
    assert!(matches!(child.policy, Policy::Other(_)), "{child}");
}

#[test]
fn a_helper_that_is_waited_for_goes_first_too_and_what_is_started_after_it_does_not() {
    if !can_run("a_helper_that_is_waited_for_goes_first_too_and_what_is_started_after_it_does_not")
    {
        return;
    }
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
