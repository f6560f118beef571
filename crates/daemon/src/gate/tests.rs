use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use onbeat_control::Treatment;
use onbeat_model::Name;

use super::*;
use crate::person::Person;
use crate::quota::{Ledger, Quotas};

/// A sensor that tells what it was given.
struct Told(Vec<Event>);

impl Sensor for Told {
    type Error = Infallible;

    fn track(&mut self, _: u32, _: Follow) -> Result<(), Infallible> {
        Ok(())
    }

    fn untrack(&mut self, _: TaskId) -> Result<(), Infallible> {
        Ok(())
    }

    fn poll(&mut self, _: Span, events: &mut Vec<Event>) -> Result<Flow, Infallible> {
        events.append(&mut self.0);
        Ok(Flow::Open)
    }

    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn executed(&mut self, _: TaskId) -> Option<Span> {
        None
    }
}

#[test]
fn a_thread_whose_end_was_lost_is_charged_no_more_and_one_that_lives_is() {
    let alive = onbeat_act::task::own().unwrap();
    let gone = TaskId {
        started_ticks: alive.started_ticks + 1,
        ..alive
    };
    let pid = std::process::id();
    let person = Arc::new(Person {
        uid: 1000,
        is_exempt: false,
        groups: BTreeSet::new(),
    });
    let mut book = Book::new(Ledger::new(Quotas::default()));
    let root = Root {
        pid,
        origin: None,
        task: alive,
        whole: true,
        children: false,
        person,
        holders: BTreeSet::new(),
        treatment: Treatment::default(),
        threads: BTreeSet::new(),
    };
    book.roots.insert(alive, root);
    for id in [alive, gone] {
        let comm = Name::default();
        book.admit(&Task { id, pid, comm }).unwrap();
    }
    let book = Rc::new(RefCell::new(book));
    let at = Instant::ZERO + Span::from_ms(7);
    let lost = Event::Lost { at, count: 3 };
    let mut gate = Gate::new(Told(vec![lost]), Rc::clone(&book));

    let mut events = Vec::new();
    gate.poll(Span::ZERO, &mut events).unwrap();

    assert_eq!(events, [lost, Event::Exited { at, task: gone }]);
    assert_eq!(book.borrow().ledger.charged_to(1000).1, 1);
    let threads = &book.borrow().roots[&alive].threads;
    assert_eq!(*threads, BTreeSet::from([alive]));
}
