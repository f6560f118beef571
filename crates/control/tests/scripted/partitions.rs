//! Where each CPU is a partition, processes get one that has room for all their threads.

use std::collections::BTreeMap;

use onbeat_control::{Settings, What, Why};
use onbeat_model::{Event, Name, Refusal, Task, TaskId};

use crate::kernel::Kernel;
use crate::world::{Script, at_ms, ms, play};

/// A thread of its own process that needs `share` hundredths of a CPU, from `from_ms` on.
fn program(script: &mut Script, tid: u32, share: u64, from_ms: u64) {
    let at = at_ms(from_ms);
    let task = Task {
        id: TaskId::recorded(tid),
        pid: tid,
        comm: Name::from("program"),
    };
    script.event(Event::Tracked { at, task });
    let executed = ms(40) / 100 * share;
    script.periodic(tid, ms(40), (at, at_ms(9000)), |_| executed);
}

#[test]
fn who_wants_more_than_a_whole_cpu_has_gets_what_one_has() {
    let mut script = Script::default();
    program(&mut script, 11, 60, 0);
    let mut kernel = Kernel::with_cpus(2);
    kernel.placed = Some(BTreeMap::new());
    let settings = Settings {
        total: 0.5,
        ..Settings::default()
    };
    let ran = play(script, kernel, settings);
    let entries = ran.of(11);
    assert!(entries.iter().all(|entry| entry.what != What::Refused));
    let reserved = ran.reserves(11);
    let last = reserved.last().unwrap().1.bandwidth().as_cpus();
    assert!(last > 0.49 && last <= 0.5, "{last}");
}

#[test]
fn programs_are_packed_onto_the_cpus_and_who_fits_on_none_is_told_so() {
    let mut script = Script::default();
    for (tid, share) in [(11, 50), (12, 50), (13, 50)] {
        program(&mut script, tid, share, u64::from(tid - 11) * 3000);
    }
    let mut kernel = Kernel::with_cpus(2);
    kernel.placed = Some(BTreeMap::new());
    let ran = play(script, kernel, Settings::default());
    let placed = ran.kernel.placed.as_ref().unwrap();
    assert_eq!(placed.get(&11), Some(&0));
    assert_eq!(placed.get(&12), Some(&1));
    assert_eq!(placed.get(&13), None);
    for tid in [11, 12] {
        let entries = ran.of(tid);
        let held = |what: What| matches!(what, What::Reserved | What::Changed);
        assert!(entries.iter().any(|entry| held(entry.what)));
    }
    let refused = ran.of(13)[0];
    assert_eq!(refused.what, What::Refused);
    assert!(
        matches!(&refused.why, Why::Refused(Refusal::Other(why)) if why.contains("no CPU has room")),
        "{refused:?}"
    );
}
