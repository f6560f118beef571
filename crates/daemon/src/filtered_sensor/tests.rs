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

fn hears_of(sensor: &mut FilteredSensor<Told>, task: Task) {
    let at = Instant::ZERO;
    sensor.inner.0.push(Event::Tracked { at, task });
    sensor.poll(Span::ZERO, &mut Vec::new()).unwrap();
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
        hears_of(&mut sensor, task);
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
    hears_of(&mut sensor, task);
    assert!(sensor.registry.borrow().processes.contains_key(&task.id));
}

#[test]
fn what_root_tracks_starts_at_the_charge_of_the_user_that_it_is_of() {
    let root = Arc::new(Account::of_no_group(0));
    let (mut sensor, _) = with_own(&root, 0, Quotas::default());
    let uid = own().uid.max(5);
    let mut child = std::process::Command::new("sleep");
    let mut child = child.arg("100").uid(uid).spawn().unwrap();
    let task = Target::find(child.id(), None).unwrap().task;
    hears_of(&mut sensor, task);
    let mut registry = sensor.registry.borrow_mut();
    assert_eq!(registry.ledger.charged_to(uid).1, 1);
    // Nor is it root's who pays once payers are settled.
    assert_eq!(registry.settle_payers(), []);
    assert_eq!(registry.ledger.charged_to(uid).1, 1);
    child.kill().unwrap();
    child.wait().unwrap();
}
