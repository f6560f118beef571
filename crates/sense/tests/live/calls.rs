//! System calls, told as moments in the place of bursts.

use onbeat_model::{Burst, Event, Follow, Sensor};
use onbeat_sense::bpf::{BpfOptions, CallSet, Hooks};
use onbeat_sense::calls::Call;

use crate::role::{Role, alive_after, bursts_of, heard_to_the_end, sensor};

const ACTIVATIONS: usize = 101;

fn numbers(names: &[&str]) -> CallSet {
    let number = |name: &&str| name.parse::<Call>().unwrap().number();
    names.iter().map(number).collect()
}

#[test]
fn each_chosen_system_call_is_one_moment_and_no_other_is_heard() {
    for hooks in [Hooks::Btf, Hooks::Raw] {
        // The role answers each command by one write, and waits for the next in one read.
        for (names, each) in [
            (&["write"][..], 1),
            (&["read", "write"], 2),
            (&["clock_nanosleep", "futex"], 0),
        ] {
            let options = BpfOptions {
                hooks,
                calls: numbers(names),
                ..BpfOptions::default()
            };
            let Some(mut sensor) = sensor(options) else {
                return;
            };
            let mut role = Role::start();
            let id = role.id();
            sensor.track(role.pid(), Follow::Threads).unwrap();
            for _ in 0..ACTIVATIONS {
                role.ask(b'e');
            }
            role.dismiss();
            let events = heard_to_the_end(&mut sensor);
            let bursts = bursts_of(&events, id);
            assert_eq!(bursts.len(), each * ACTIVATIONS, "{names:?}");
            for burst in &bursts {
                assert_eq!(*burst, Burst::pulse(id, burst.woke));
            }
            assert!(bursts.is_sorted_by_key(|burst| burst.woke));
            assert_eq!(alive_after(&events), []);
            assert_eq!(events.len(), bursts.len() + 2, "{events:?}");
            assert!(matches!(events[0], Event::Tracked { .. }));
        }
    }
}
