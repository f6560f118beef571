//! Whose the threads may be that work for others, and who pays for them.

use super::*;
use crate::quota::Quota;

const ALICE: u32 = 1000;
const BOB: u32 = 1001;
const SERVER: TaskId = id(40);

fn person(uid: u32) -> Arc<Person> {
    Arc::new(Person {
        uid,
        is_exempt: uid == 0,
        groups: BTreeSet::new(),
    })
}

/// The player `task` of `owner`, which `payer` has tracked.
fn tracked(book: &mut Book, task: TaskId, owner: u32, payer: &Arc<Person>) {
    let mut root = root_of(task);
    root.owner = Some(owner);
    root.person = Arc::clone(payer);
    book.roots.insert(task, root);
    admit(book, task.tid, task.tid);
}

fn server() -> Task {
    Task {
        id: SERVER,
        pid: SERVER.tid,
        comm: Name::from("server"),
    }
}

#[test]
fn whose_a_partner_may_be_goes_by_the_task_that_it_works_for_and_who_pays_by_who_asked() {
    let mut book = book();
    tracked(&mut book, PARENT, ALICE, &person(0));
    let refused = book.admit_partner(&server(), BOB, PARENT);
    let why = refused.unwrap_err().unwrap();
    assert_eq!(
        why,
        "it is not user 1000's, as that one is, but of user 1001"
    );
    assert!(
        book.admit_partner(&server(), 0, PARENT).is_err(),
        "root's own"
    );
    book.admit_partner(&server(), ALICE, PARENT).unwrap();
    assert_eq!(book.ledger.person(SERVER), Some(&person(0)));
    let party = book.party(SERVER);
    assert_eq!((party.payer, party.owner), (0, Some(ALICE)));
    assert!(!party.is_everybodys);
}

#[test]
fn only_what_is_the_machines_own_and_an_administrator_has_kept_is_everybodys() {
    let mut book = book();
    let rule = Arc::new(Person::named_by_a_rule(0));
    tracked(&mut book, PARENT, 0, &rule);
    tracked(
        &mut book,
        CHILD,
        ALICE,
        &Arc::new(Person::named_by_a_rule(ALICE)),
    );
    tracked(&mut book, GRANDCHILD, ALICE, &person(0));
    let is_everybodys = [PARENT, CHILD, GRANDCHILD].map(|task| book.party(task).is_everybodys);
    assert_eq!(is_everybodys, [true, false, false]);
}

#[test]
fn a_partner_of_two_is_charged_to_the_other_when_the_one_goes_and_is_nobodys_when_both_have() {
    let mut book = book();
    tracked(&mut book, PARENT, ALICE, &person(ALICE));
    tracked(&mut book, CHILD, ALICE, &person(0));
    book.admit_partner(&server(), ALICE, PARENT).unwrap();
    assert_eq!(book.follow(SERVER, &[PARENT, CHILD]), Ok(true));
    assert_eq!(book.ledger.charged_to(ALICE).1, 2);
    for task in book.take_out(PARENT) {
        book.ledger.leave(task);
    }
    assert!(book.partners.in_doubt);
    assert_eq!(book.follow(SERVER, &[PARENT, CHILD]), Ok(true));
    assert_eq!(book.ledger.person(SERVER), Some(&person(0)));
    assert_eq!(book.ledger.charged_to(ALICE).1, 0);
    book.take_out(CHILD);
    assert_eq!(book.follow(SERVER, &[PARENT, CHILD]), Ok(false));
}

#[test]
fn a_partner_does_not_follow_another_users_task() {
    let mut book = book();
    tracked(&mut book, PARENT, ALICE, &person(ALICE));
    tracked(&mut book, CHILD, BOB, &person(BOB));
    book.admit_partner(&server(), ALICE, PARENT).unwrap();
    book.take_out(PARENT);
    assert_eq!(book.follow(SERVER, &[CHILD]), Ok(false));
    assert_eq!(book.ledger.person(SERVER), Some(&person(ALICE)));
}

#[test]
fn a_partner_of_a_partner_goes_with_it() {
    let mut book = book();
    tracked(&mut book, PARENT, ALICE, &person(ALICE));
    book.admit_partner(&server(), ALICE, PARENT).unwrap();
    let compositor = Task {
        id: id(50),
        pid: 50,
        comm: Name::from("compositor"),
    };
    book.admit_partner(&compositor, ALICE, SERVER).unwrap();
    assert_eq!(book.ledger.charged_to(ALICE).1, 3);
    book.take_out(PARENT);
    assert_eq!(book.follow(SERVER, &[]), Ok(false));
    assert!(book.drop_partner(SERVER));
    assert_eq!(book.follow(compositor.id, &[]), Ok(false));
}

#[test]
fn who_has_no_quota_left_is_not_handed_a_partner() {
    let quotas = Quotas {
        default: Quota {
            tasks: 1,
            ..Quota::default()
        },
        ..Quotas::default()
    };
    let mut book = Book::new(Ledger::new(quotas));
    tracked(&mut book, PARENT, ALICE, &person(0));
    tracked(&mut book, CHILD, ALICE, &person(ALICE));
    book.admit_partner(&server(), ALICE, PARENT).unwrap();
    book.take_out(PARENT);
    assert!(book.follow(SERVER, &[CHILD]).is_err());
    assert_eq!(book.ledger.person(SERVER), Some(&person(0)));
    assert_eq!(book.ledger.charged_to(ALICE).1, 1);
}

#[test]
fn who_works_with_what_a_rule_names_is_charged_to_its_user_and_no_rule_means_it() {
    let rule = Holder::Rule("sound".into());
    let mut book = Book::new(Ledger::new(Quotas::default()));
    asked_for(&mut book, PARENT, &rule, Follow::Threads);
    let named = book.roots.get_mut(&PARENT).unwrap();
    named.person = Arc::new(Person::named_by_a_rule(1000));
    named.threads.insert(PARENT);
    let partner = Task {
        id: CHILD,
        pid: CHILD.tid,
        comm: Name::from("player"),
    };
    book.admit_partner(&partner, 1000, PARENT).unwrap();
    assert!(!book.partners.all[&CHILD].person.is_exempt);
    assert_eq!(book.ledger.charged_to(1000).1, 1);
}
