use onbeat_model::{Burst, Event};
use onbeat_sense::bpf::{BpfOptions, CallSet};
use onbeat_sense::calls::Call;

use crate::role::{Role, alive_after, bursts_of, heard_to_the_end, sensors};

const ACTIVATIONS: usize = 101;

fn numbers(names: &[&str]) -> CallSet {
    let number = |name: &&str| name.parse::<Call>().unwrap().number();
    names.iter().map(number).collect()
}

#[test]
fn each_chosen_system_call_is_one_moment_and_no_other_is_heard() {
    // The role answers each command by one write, and waits for the next in one read.
    for (names, each) in [
        (&["write"][..], 1),
        (&["read", "write"], 2),
        (&["clock_nanosleep", "futex"], 0),
    ] {
        let options = BpfOptions {
            calls: numbers(names),
            ..BpfOptions::default()
        };
        for (_, mut sensor) in sensors(options) {
            let mut role = Role::tracked_by(&mut sensor);
            let id = role.id();
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
