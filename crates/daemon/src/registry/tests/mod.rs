use onbeat_model::{Follow, Name};

use super::*;
use crate::quota::Quotas;

mod partners;

const PARENT: TaskId = id(10);
const CHILD: TaskId = id(20);
const GRANDCHILD: TaskId = id(30);

const fn id(tid: u32) -> TaskId {
    TaskId {
        tid,
        started_ticks: 1,
    }
}

fn client(name: &str) -> Holder {
    Holder::Client(name.into())
}

/// The record of a process, or of one of its threads, without a holder.
fn process(task: TaskId, pid: u32) -> TrackedProcess {
    TrackedProcess::new(pid, task, Arc::new(Account::of_no_group(1000)), Some(1000))
}

/// A process that `holder` wants.
fn asked_for(registry: &mut Registry, task: TaskId, holder: &Holder, follow: Follow) {
    let process = registry.processes.entry(task);
    let process = process.or_insert_with(|| process_of(task));
    let payer = Arc::clone(&process.account);
    process.want(holder.clone(), &payer, follow);
}

fn process_of(task: TaskId) -> TrackedProcess {
    process(task, task.tid)
}

/// A process that `parent` has started.
fn started_by(registry: &mut Registry, parent: TaskId, task: TaskId) {
    let leases = registry.processes[&parent].leases_of_children();
    let child = TrackedProcess {
        origin: registry.processes[&parent].origin.or(Some(parent)),
        leases,
        ..process_of(task)
    };
    registry.processes.insert(task, child);
}

fn registry() -> Registry {
    Registry::new(Ledger::new(Quotas::default()))
}

fn admit(registry: &mut Registry, tid: u32, pid: u32) {
    let comm = Name::default();
    let task = Task {
        id: id(tid),
        pid,
        comm,
    };
    registry.admit(&task).unwrap();
}

#[test]
fn what_a_process_started_goes_with_it() {
    let mut registry = registry();
    let one = client(":1.1");
    asked_for(&mut registry, PARENT, &one, Follow::Children);
    started_by(&mut registry, PARENT, CHILD);
    started_by(&mut registry, CHILD, GRANDCHILD);
    let unwanted = registry.drop_lease(&one, PARENT).unwrap();
    assert_eq!(unwanted, [PARENT, CHILD, GRANDCHILD]);
}

#[test]
fn what_a_process_started_works_for_its_application_also_after_the_end_of_those_between() {
    let mut registry = registry();
    asked_for(&mut registry, PARENT, &client(":1.1"), Follow::Children);
    started_by(&mut registry, PARENT, CHILD);
    started_by(&mut registry, CHILD, GRANDCHILD);
    for task in [PARENT, CHILD, GRANDCHILD] {
        admit(&mut registry, task.tid, task.tid);
    }
    registry.ended(CHILD);
    for task in [PARENT, GRANDCHILD] {
        assert_eq!(registry.party(task).application, Some(PARENT.tid));
    }
}

#[test]
fn a_child_that_was_asked_for_by_itself_stays_when_its_parent_is_let_go() {
    for first in [true, false] {
        let mut registry = registry();
        let one = client(":1.1");
        if first {
            asked_for(&mut registry, CHILD, &one, Follow::Threads);
        }
        asked_for(&mut registry, PARENT, &one, Follow::Children);
        if !first {
            started_by(&mut registry, PARENT, CHILD);
            asked_for(&mut registry, CHILD, &one, Follow::Threads);
        }
        assert_eq!(registry.drop_lease(&one, PARENT).unwrap(), [PARENT]);
        registry.take_out(PARENT);
        assert_eq!(registry.drop_lease(&one, CHILD).unwrap(), [CHILD]);
    }
}

#[test]
fn what_a_child_started_that_was_asked_for_with_its_children_stays_with_it() {
    let mut registry = registry();
    let one = client(":1.1");
    asked_for(&mut registry, PARENT, &one, Follow::Children);
    started_by(&mut registry, PARENT, CHILD);
    asked_for(&mut registry, CHILD, &one, Follow::Children);
    started_by(&mut registry, CHILD, GRANDCHILD);
    assert_eq!(registry.drop_lease(&one, PARENT).unwrap(), [PARENT]);
    registry.take_out(PARENT);
    assert_eq!(
        registry.drop_lease(&one, CHILD).unwrap(),
        [CHILD, GRANDCHILD]
    );
}

#[test]
fn a_child_is_wanted_by_those_alone_who_wanted_children() {
    let mut registry = registry();
    let [with, without] = [":1.1", ":1.2"].map(client);
    asked_for(&mut registry, PARENT, &with, Follow::Children);
    asked_for(&mut registry, PARENT, &without, Follow::Threads);
    started_by(&mut registry, PARENT, CHILD);
    assert_eq!(registry.drop_lease(&without, CHILD), None);
    assert_eq!(registry.drop_lease(&with, PARENT).unwrap(), [CHILD]);
    registry.take_out(CHILD);
    assert_eq!(registry.drop_holder(&without).processes, [PARENT]);
}

#[test]
fn a_child_can_be_let_go_alone() {
    let mut registry = registry();
    let one = client(":1.1");
    asked_for(&mut registry, PARENT, &one, Follow::Children);
    started_by(&mut registry, PARENT, CHILD);
    assert_eq!(registry.drop_lease(&one, CHILD).unwrap(), [CHILD]);
    registry.take_out(CHILD);
    assert_eq!(registry.drop_lease(&one, CHILD), None);
    assert_eq!(registry.drop_lease(&one, PARENT).unwrap(), [PARENT]);
}

#[test]
fn a_thread_that_was_asked_for_beside_its_process_stays_with_the_one_that_is_left() {
    let thread = id(11);
    for process_first in [true, false] {
        for process_goes in [true, false] {
            let mut registry = registry();
            let own = process(thread, PARENT.tid);
            if process_first {
                registry.processes.insert(PARENT, process_of(PARENT));
                admit(&mut registry, PARENT.tid, PARENT.tid);
            }
            registry.processes.insert(thread, own);
            admit(&mut registry, thread.tid, PARENT.tid);
            if !process_first {
                registry.processes.insert(PARENT, process_of(PARENT));
                admit(&mut registry, PARENT.tid, PARENT.tid);
                admit(&mut registry, thread.tid, PARENT.tid);
            }
            let (goes, stays) = if process_goes {
                (PARENT, thread)
            } else {
                (thread, PARENT)
            };
            let gone = registry.take_out(goes);
            assert!(!gone.contains(&thread), "{process_first} {process_goes}");
            assert!(registry.processes[&stays].threads.contains(&thread));
            for task in gone.into_iter().chain(registry.take_out(stays)) {
                registry.ledger.leave(task);
            }
            assert!(registry.ledger.is_empty(), "{process_first} {process_goes}");
        }
    }
}

#[test]
fn what_its_payer_no_longer_wants_is_charged_to_another_holder_as_far_as_that_one_may() {
    let quotas = Quotas {
        default: crate::quota::Quota {
            tasks: 2,
            ..Default::default()
        },
        ..Quotas::default()
    };
    let mut registry = Registry::new(Ledger::new(quotas));
    let administrator = Arc::new(Account {
        uid: 0,
        is_exempt: true,
        allotment: None,
        groups: BTreeSet::new(),
    });
    let alice = Arc::clone(&process_of(PARENT).account);
    let [his, hers] = [client(":1.1"), client(":1.2")];
    let mut kept = TrackedProcess {
        account: Arc::clone(&administrator),
        ..process_of(PARENT)
    };
    kept.want(his.clone(), &administrator, Follow::Threads);
    registry.processes.insert(PARENT, kept);
    for tid in [10, 11, 12] {
        admit(&mut registry, tid, 10);
    }
    let kept = registry.processes.get_mut(&PARENT).unwrap();
    kept.want(hers, &alice, Follow::Children);
    // The processes that she has started with it are hers from the beginning.
    let leases = kept.leases_of_children();
    assert_eq!(kept.payer_of(&leases), alice);
    assert_eq!(registry.settle_payers(), []);
    assert_eq!(registry.ledger.charged_to(1000).1, 0);
    assert_eq!(registry.drop_holder(&his), Dropped::default());
    assert_eq!(registry.settle_payers(), [id(12)]);
    assert_eq!(registry.ledger.charged_to(1000).1, 2);
    assert_eq!(
        registry.processes[&PARENT].threads,
        BTreeSet::from([id(10), id(11)])
    );
    assert_eq!(registry.processes[&PARENT].account, alice);
    assert_eq!(registry.settle_payers(), []);
}
