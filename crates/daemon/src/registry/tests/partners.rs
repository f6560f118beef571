//! The owners of threads that work for others, and who pays for them.

use super::*;
use crate::quota::Quota;

const ALICE: u32 = 1000;
const BOB: u32 = 1001;
const SERVER: TaskId = id(40);

fn account(uid: u32) -> Arc<Account> {
    Arc::new(Account::of_no_group(uid))
}

/// The player `task` of `owner`, which `payer` has tracked.
fn tracked(registry: &mut Registry, task: TaskId, owner: u32, payer: &Arc<Account>) {
    let mut process = process_of(task);
    process.owner = Some(owner);
    process.account = Arc::clone(payer);
    registry.processes.insert(task, process);
    admit(registry, task.tid, task.tid);
}

fn server() -> Task {
    Task {
        id: SERVER,
        pid: SERVER.tid,
        comm: Name::from("server"),
    }
}

#[test]
fn whose_a_partner_may_be_goes_by_the_task_that_it_works_for_and_its_user_pays_whoever_asked() {
    let mut registry = registry();
    tracked(&mut registry, PARENT, ALICE, &account(0));
    let refused = registry.admit_partner(&server(), BOB, PARENT);
    let why = refused.unwrap_err().unwrap();
    assert_eq!(why, "it is not yours, but of user 1001");
    assert!(
        registry.admit_partner(&server(), 0, PARENT).is_err(),
        "process's own"
    );
    registry.admit_partner(&server(), ALICE, PARENT).unwrap();
    assert!(
        registry
            .ledger
            .account(SERVER)
            .is_some_and(|payer| !payer.is_exempt)
    );
    let party = registry.party(SERVER);
    assert_eq!((party.payer, party.owner), (ALICE, Some(ALICE)));
    assert!(!party.is_everybodys);
}

#[test]
fn only_what_is_the_machines_own_and_an_administrator_has_kept_is_everybodys() {
    let mut registry = registry();
    let rule = Arc::new(Account::named_by_a_rule(0));
    tracked(&mut registry, PARENT, 0, &rule);
    tracked(
        &mut registry,
        CHILD,
        ALICE,
        &Arc::new(Account::named_by_a_rule(ALICE)),
    );
    tracked(&mut registry, GRANDCHILD, ALICE, &account(0));
    let is_everybodys = [PARENT, CHILD, GRANDCHILD].map(|task| registry.party(task).is_everybodys);
    assert_eq!(is_everybodys, [true, false, false]);
}

#[test]
fn a_partner_of_two_is_charged_to_the_other_when_the_one_goes_and_is_nobodys_when_both_have() {
    let mut registry = registry();
    tracked(&mut registry, PARENT, ALICE, &account(ALICE));
    tracked(&mut registry, CHILD, ALICE, &account(0));
    registry.admit_partner(&server(), ALICE, PARENT).unwrap();
    assert_eq!(registry.follow(SERVER, &[PARENT, CHILD]), Ok(true));
    assert_eq!(registry.ledger.charged_to(ALICE).1, 2);
    for task in registry.take_out(PARENT) {
        registry.ledger.leave(task);
    }
    assert!(registry.partners.in_doubt);
    assert_eq!(registry.follow(SERVER, &[PARENT, CHILD]), Ok(true));
    assert_eq!(registry.ledger.charged_to(ALICE).1, 1);
    registry.take_out(CHILD);
    assert_eq!(registry.follow(SERVER, &[PARENT, CHILD]), Ok(false));
}

#[test]
fn a_partner_does_not_follow_another_users_task() {
    let mut registry = registry();
    tracked(&mut registry, PARENT, ALICE, &account(ALICE));
    tracked(&mut registry, CHILD, BOB, &account(BOB));
    registry.admit_partner(&server(), ALICE, PARENT).unwrap();
    registry.take_out(PARENT);
    assert_eq!(registry.follow(SERVER, &[CHILD]), Ok(false));
    assert_eq!(registry.ledger.account(SERVER), Some(&account(ALICE)));
}

#[test]
fn a_partner_of_a_partner_goes_with_it() {
    let mut registry = registry();
    tracked(&mut registry, PARENT, ALICE, &account(ALICE));
    registry.admit_partner(&server(), ALICE, PARENT).unwrap();
    let compositor = Task {
        id: id(50),
        pid: 50,
        comm: Name::from("compositor"),
    };
    registry.admit_partner(&compositor, ALICE, SERVER).unwrap();
    assert_eq!(registry.ledger.charged_to(ALICE).1, 3);
    registry.take_out(PARENT);
    assert_eq!(registry.follow(SERVER, &[]), Ok(false));
    assert!(registry.drop_partner(SERVER));
    assert_eq!(registry.follow(compositor.id, &[]), Ok(false));
}

#[test]
fn who_has_no_quota_left_is_not_handed_a_partner() {
    let quotas = Quotas {
        default: Quota {
            tasks: 2,
            ..Quota::default()
        },
        ..Quotas::default()
    };
    let mut registry = Registry::new(Ledger::new(quotas));
    tracked(&mut registry, PARENT, ALICE, &account(BOB));
    tracked(&mut registry, CHILD, ALICE, &account(ALICE));
    tracked(&mut registry, GRANDCHILD, ALICE, &account(ALICE));
    registry.admit_partner(&server(), ALICE, PARENT).unwrap();
    registry.take_out(PARENT);
    assert!(registry.follow(SERVER, &[CHILD]).is_err());
    assert_eq!(registry.ledger.account(SERVER), Some(&account(BOB)));
    assert_eq!(registry.ledger.charged_to(ALICE).1, 2);
}

#[test]
fn who_works_with_what_a_rule_names_is_charged_to_its_user_and_no_rule_means_it() {
    let rule = Holder::Rule("sound".into());
    let mut registry = Registry::new(Ledger::new(Quotas::default()));
    asked_for(&mut registry, PARENT, &rule, Follow::Threads);
    let named = registry.processes.get_mut(&PARENT).unwrap();
    named.account = Arc::new(Account::named_by_a_rule(1000));
    named.threads.insert(PARENT);
    let partner = Task {
        id: CHILD,
        pid: CHILD.tid,
        comm: Name::from("player"),
    };
    registry.admit_partner(&partner, 1000, PARENT).unwrap();
    assert!(!registry.partners.all[&CHILD].account.is_exempt);
    assert_eq!(registry.ledger.charged_to(1000).1, 1);
}
