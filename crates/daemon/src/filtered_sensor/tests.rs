use std::cell::RefCell;
use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::rc::Rc;
use std::sync::Arc;

use onbeat_model::Name;

use super::*;
use crate::account::Account;
use crate::ledger::Ledger;
use crate::quota::Quotas;
use crate::registry::Holder;

/// A sensor that tells what it was given, all as children of this test's process.
struct Told(Vec<Event>);

/// Higher than any process's number.
const GONE: u32 = 1 << 22;

impl Sensor for Told {
    type Error = Infallible;

    fn track(&mut self, _: u32, _: Follow) -> Result<(), Infallible> {
        Ok(())
    }

    fn untrack(&mut self, _: &[TaskId]) -> Result<(), Infallible> {
        Ok(())
    }

    fn poll(&mut self, _: Span, events: &mut Vec<Event>) -> Result<Flow, Infallible> {
        events.append(&mut self.0);
        Ok(Flow::Open)
    }

    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn origin(&self, task: TaskId) -> Option<Origin> {
        let status = Status::read(task.tid);
        let uid = status.map_or(Some(own().uid), |status| status.uid);
        let parent = std::process::id();
        Some(Origin { parent, uid })
    }

    fn executed(&mut self, _: TaskId) -> Option<Span> {
        None
    }
}

fn account(uid: u32) -> Arc<Account> {
    Arc::new(Account {
        uid,
        is_exempt: false,
        allotment: None,
        groups: BTreeSet::new(),
    })
}

/// The process of this test, as the sensor knows it.
fn own() -> Target {
    Target::find(std::process::id(), None).unwrap()
}

#[test]
fn a_thread_whose_end_was_lost_is_charged_no_more_and_one_that_lives_is() {
    let alive = onbeat_act::task::own().unwrap();
    let gone = TaskId {
        started_ticks: alive.started_ticks + 1,
        ..alive
    };
    let pid = std::process::id();
    let account = account(1000);
    let mut registry = Registry::new(Ledger::new(Quotas::default()));
    let process = TrackedProcess::new(pid, alive, account, Some(1000));
    registry.processes.insert(alive, process);
    for id in [alive, gone] {
        let comm = Name::default();
        registry.admit(&Task { id, pid, comm }).unwrap();
    }
    let registry = Rc::new(RefCell::new(registry));
    let at = Instant::ZERO + Span::from_ms(7);
    let lost = Event::Lost { at, count: 3 };
    let mut sensor = FilteredSensor::new(Told(vec![lost]), Rc::clone(&registry));

    let mut events = Vec::new();
    sensor.poll(Span::ZERO, &mut events).unwrap();

    assert_eq!(events, [lost, Event::Exited { at, task: gone }]);
    assert!(sensor.take_missed_starts(), "others may have begun");
    assert_eq!(registry.borrow().ledger.charged_to(1000).1, 1);
    let threads = &registry.borrow().processes[&alive].threads;
    assert_eq!(*threads, BTreeSet::from([alive]));
}

/// A sensor with which the process of this test is tracked, with the processes that it starts, by
/// `payer`.
fn with_own(payer: &Arc<Account>, owner: u32, quotas: Quotas) -> (FilteredSensor<Told>, Task) {
    let own = own().task;
    let mut registry = Registry::new(Ledger::new(quotas));
    let mut process = TrackedProcess::new(own.pid, own.id, Arc::clone(payer), Some(owner));
    process.want(Holder::Client(":1.1".into()), payer, Follow::Children);
    registry.processes.insert(own.id, process);
    registry.admit(&own).unwrap();
    let sensor = FilteredSensor::new(Told(Vec::new()), Rc::new(RefCell::new(registry)));
    (sensor, own)
}

#[test]
fn of_a_child_that_the_quota_has_no_room_for_nothing_is_kept() {
    let mut child = std::process::Command::new("sleep");
    let mut child = child.arg("100").spawn().unwrap();
    let task = Target::find(child.id(), None).unwrap().task;
    for most in [1, 2] {
        // Root is under no quota of its own.
        let quota = crate::quota::Quota {
            tasks: most,
            ..Default::default()
        };
        let quotas = Quotas {
            groups: [(29, quota)].into(),
            ..Quotas::default()
        };
        let payer = Arc::new(Account {
            uid: own().uid,
            is_exempt: false,
            allotment: None,
            groups: BTreeSet::from([29]),
        });
        let (mut sensor, _) = with_own(&payer, own().uid, quotas);
        let at = Instant::ZERO;
        sensor.inner.0.push(Event::Tracked { at, task });
        sensor.poll(Span::ZERO, &mut Vec::new()).unwrap();
        assert_eq!(sensor.registry.borrow().processes.len(), most as usize);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// In `/proc`, a reader of one that is about to be gone spins until it is: a storm of short ones
/// took 37% of a CPU from the service, and other users' programs their reservations.
#[test]
fn a_child_is_adopted_by_what_the_sensor_tells_alone() {
    let (tid, started_ticks) = (GONE, 1);
    let task = Task {
        id: TaskId { tid, started_ticks },
        pid: GONE,
        comm: Name::default(),
    };
    let (mut sensor, _) = with_own(&account(own().uid), own().uid, Quotas::default());
    let at = Instant::ZERO;
    sensor.inner.0.push(Event::Tracked { at, task });
    sensor.poll(Span::ZERO, &mut Vec::new()).unwrap();
    assert!(sensor.registry.borrow().processes.contains_key(&task.id));
}

#[test]
fn where_events_were_lost_another_users_program_is_looked_for() {
    let stranger = own().uid + 1;
    let (mut sensor, own) = with_own(&account(stranger), stranger, Quotas::default());
    let at = Instant::ZERO;
    sensor.inner.0.push(Event::Lost { at, count: 1 });
    sensor.poll(Span::ZERO, &mut Vec::new()).unwrap();
    assert_eq!(sensor.take_changed_owners(), BTreeSet::from([own.pid]));
}

#[test]
fn what_root_tracks_starts_at_the_charge_of_the_user_that_it_is_of() {
    let root = Arc::new(Account::of_no_group(0));
    let (mut sensor, _) = with_own(&root, 0, Quotas::default());
    let uid = own().uid.max(5);
    let mut child = std::process::Command::new("sleep");
    let mut child = child.arg("100").uid(uid).spawn().unwrap();
    let task = Target::find(child.id(), None).unwrap().task;
    let at = Instant::ZERO;
    sensor.inner.0.push(Event::Tracked { at, task });
    sensor.poll(Span::ZERO, &mut Vec::new()).unwrap();
    let mut registry = sensor.registry.borrow_mut();
    assert_eq!(registry.ledger.charged_to(uid).1, 1);
    // Nor is it root's who pays once payers are settled.
    assert_eq!(registry.settle_payers(), []);
    assert_eq!(registry.ledger.charged_to(uid).1, 1);
    child.kill().unwrap();
    child.wait().unwrap();
}
