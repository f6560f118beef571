//! Waits are told: behind one that would run on, and behind many that each run for a moment.

use std::process::{Child, Command};

use onbeat_model::{Event, Flow, Follow, Sensor, Span};
use onbeat_sense::bpf::BpfOptions;

use crate::role::{Role, eventually, program, sensors};

struct Shells(Vec<Child>);

impl Drop for Shells {
    fn drop(&mut self) {
        for shell in &mut self.0 {
            let _ = shell.kill();
            let _ = shell.wait();
        }
    }
}

/// Has a role compute on a CPU where shells run this; and waits for a wait that is so told.
fn is_told(script: &str, is_it: impl Fn(u32, &[u32]) -> bool) {
    for (_, mut sensor) in sensors(BpfOptions::default()) {
        let on_one_cpu = || {
            let mut command = Command::new("taskset");
            command.args(["-c", "0"]);
            command
        };
        let mut role = Role::of(on_one_cpu().arg(program(false)));
        sensor.track(role.pid(), Follow::Threads).unwrap();
        role.tell(b's');
        let shell = |_| on_one_cpu().args(["sh", "-c", script]).spawn().unwrap();
        let shells = Shells((0..4).map(shell).collect());
        let pids: Vec<u32> = shells.0.iter().map(Child::id).collect();
        let mut events = Vec::new();
        eventually("the wait", || {
            let flow = sensor.poll(Span::from_ms(100), &mut events).unwrap();
            assert_eq!(flow, Flow::Open);
            let mut all = events.drain(..);
            all.any(|event| matches!(event, Event::Waited { behind, .. } if is_it(behind, &pids)))
        });
    }
}

#[test]
fn a_wait_behind_a_hog_is_told_with_its_process() {
    is_told("while :; do :; done", |behind, hogs| hogs.contains(&behind));
}

#[test]
fn a_wait_behind_many_that_each_run_for_a_moment_is_told_without() {
    is_told("while :; do (:); done", |behind, _| behind == 0);
}
