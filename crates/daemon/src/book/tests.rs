use onbeat_model::Name;

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

/// Of a process, or of one of its threads; one that nobody wants yet.
fn root(task: TaskId, pid: u32) -> Root {
    Root {
        pid,
        origin: None,
        task,
        whole: task.tid == pid,
        person: Arc::new(Person {
            uid: 1000,
            is_exempt: false,
            groups: BTreeSet::new(),
        }),
        owner: Some(1000),
        payers: BTreeMap::new(),
        wishes: BTreeMap::new(),
        treatment: Treatment::default(),
        adopts: false,
        threads: BTreeSet::new(),
    }
}

/// A process that `holder` wants.
fn asked_for(book: &mut Book, task: TaskId, holder: &Holder, follow: Follow) {
    let root = book.roots.entry(task);
    let root = root.or_insert_with(|| root_of(task));
    let payer = Arc::clone(&root.person);
    root.want(holder.clone(), &payer, follow);
}

fn root_of(task: TaskId) -> Root {
    root(task, task.tid)
}

/// A process that `parent` has started.
fn started_by(book: &mut Book, parent: TaskId, task: TaskId) {
    let wishes = book.roots[&parent].wishes_of_children();
    let child = Root {
        wishes,
        ..root_of(task)
    };
    book.roots.insert(task, child);
}

fn book() -> Book {
    Book::new(Ledger::new(Quotas::default()))
}

fn admit(book: &mut Book, tid: u32, pid: u32) {
    let comm = Name::default();
    let task = Task {
        id: id(tid),
        pid,
        comm,
    };
    book.admit(&task).unwrap();
}

#[test]
fn what_a_process_started_goes_with_it() {
    let mut book = book();
    let one = client(":1.1");
    asked_for(&mut book, PARENT, &one, Follow::Children);
    started_by(&mut book, PARENT, CHILD);
    started_by(&mut book, CHILD, GRANDCHILD);
    let unwanted = book.drop_wish(&one, PARENT).unwrap();
    assert_eq!(unwanted, [PARENT, CHILD, GRANDCHILD]);
}

#[test]
fn a_child_that_was_asked_for_by_itself_stays_when_its_parent_is_let_go() {
    for first in [true, false] {
        let mut book = book();
        let one = client(":1.1");
        if first {
            asked_for(&mut book, CHILD, &one, Follow::Threads);
        }
        asked_for(&mut book, PARENT, &one, Follow::Children);
        if !first {
            started_by(&mut book, PARENT, CHILD);
            asked_for(&mut book, CHILD, &one, Follow::Threads);
        }
        assert_eq!(book.drop_wish(&one, PARENT).unwrap(), [PARENT]);
        book.take_out(PARENT);
        assert_eq!(book.drop_wish(&one, CHILD).unwrap(), [CHILD]);
    }
}

#[test]
fn what_a_child_started_that_was_asked_for_with_its_children_stays_with_it() {
    let mut book = book();
    let one = client(":1.1");
    asked_for(&mut book, PARENT, &one, Follow::Children);
    started_by(&mut book, PARENT, CHILD);
    asked_for(&mut book, CHILD, &one, Follow::Children);
    started_by(&mut book, CHILD, GRANDCHILD);
    assert_eq!(book.drop_wish(&one, PARENT).unwrap(), [PARENT]);
    book.take_out(PARENT);
    assert_eq!(book.drop_wish(&one, CHILD).unwrap(), [CHILD, GRANDCHILD]);
}

#[test]
fn a_child_is_wanted_by_those_alone_who_wanted_children() {
    let mut book = book();
    let [with, without] = [":1.1", ":1.2"].map(client);
    asked_for(&mut book, PARENT, &with, Follow::Children);
    asked_for(&mut book, PARENT, &without, Follow::Threads);
    started_by(&mut book, PARENT, CHILD);
    assert_eq!(book.drop_wish(&without, CHILD), None);
    assert_eq!(book.drop_wish(&with, PARENT).unwrap(), [CHILD]);
    book.take_out(CHILD);
    assert_eq!(book.drop_holder(&without).roots, [PARENT]);
}

#[test]
fn a_child_can_be_let_go_alone() {
    let mut book = book();
    let one = client(":1.1");
    asked_for(&mut book, PARENT, &one, Follow::Children);
    started_by(&mut book, PARENT, CHILD);
    assert_eq!(book.drop_wish(&one, CHILD).unwrap(), [CHILD]);
    book.take_out(CHILD);
    assert_eq!(book.drop_wish(&one, CHILD), None);
    assert_eq!(book.drop_wish(&one, PARENT).unwrap(), [PARENT]);
}

#[test]
fn a_thread_that_was_asked_for_beside_its_process_stays_with_the_one_that_is_left() {
    let thread = id(11);
    for process_first in [true, false] {
        for process_goes in [true, false] {
            let mut book = book();
            let own = root(thread, PARENT.tid);
            if process_first {
                book.roots.insert(PARENT, root_of(PARENT));
                admit(&mut book, PARENT.tid, PARENT.tid);
            }
            book.roots.insert(thread, own);
            admit(&mut book, thread.tid, PARENT.tid);
            if !process_first {
                book.roots.insert(PARENT, root_of(PARENT));
                admit(&mut book, PARENT.tid, PARENT.tid);
                admit(&mut book, thread.tid, PARENT.tid);
            }
            let (goes, stays) = if process_goes {
                (PARENT, thread)
            } else {
                (thread, PARENT)
            };
            let gone = book.take_out(goes);
            assert!(!gone.contains(&thread), "{process_first} {process_goes}");
            assert!(book.roots[&stays].threads.contains(&thread));
            for task in gone.into_iter().chain(book.take_out(stays)) {
                book.ledger.leave(task);
            }
            assert!(book.ledger.is_empty(), "{process_first} {process_goes}");
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
    let mut book = Book::new(Ledger::new(quotas));
    let administrator = Arc::new(Person {
        uid: 0,
        is_exempt: true,
        groups: BTreeSet::new(),
    });
    let alice = Arc::clone(&root_of(PARENT).person);
    let [roots, hers] = [client(":1.1"), client(":1.2")];
    let mut kept = Root {
        person: Arc::clone(&administrator),
        ..root_of(PARENT)
    };
    kept.want(roots.clone(), &administrator, Follow::Threads);
    book.roots.insert(PARENT, kept);
    for tid in [10, 11, 12] {
        admit(&mut book, tid, 10);
    }
    let kept = book.roots.get_mut(&PARENT).unwrap();
    kept.want(hers, &alice, Follow::Children);
    // What she has started with it is hers from the beginning.
    let wishes = kept.wishes_of_children();
    assert_eq!(kept.payer_of(&wishes), alice);
    assert_eq!(book.settle_payers(), []);
    assert_eq!(book.ledger.charged_to(1000).1, 0);
    assert_eq!(book.drop_holder(&roots), Dropped::default());
    assert_eq!(book.settle_payers(), [id(12)]);
    assert_eq!(book.ledger.charged_to(1000).1, 2);
    assert_eq!(
        book.roots[&PARENT].threads,
        BTreeSet::from([id(10), id(11)])
    );
    assert_eq!(book.roots[&PARENT].person, alice);
    assert_eq!(book.settle_payers(), []);
}
