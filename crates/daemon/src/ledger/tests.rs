use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn account(uid: u32, groups: &[u32]) -> Arc<Account> {
    Arc::new(Account {
        uid,
        is_exempt: uid == 0,
        allotment: None,
        groups: groups.iter().copied().collect::<BTreeSet<u32>>(),
    })
}

fn of(per_mille: u64) -> Reservation {
    Reservation::implicit(Span::from_us(per_mille * 10), Span::from_ms(10)).unwrap()
}

fn quota(per_mille: u32, tasks: u32) -> Quota {
    Quota {
        bandwidth: Bandwidth::from_cpus(f64::from(per_mille) / 1000.0),
        tasks,
        shortest_period: Span::from_ms(2),
        ..Quota::default()
    }
}

fn ledger(per_mille: u32, tasks: u32) -> Ledger {
    Ledger::new(Quotas {
        default: quota(per_mille, tasks),
        ..Quotas::default()
    })
}

fn task(tid: u32) -> TaskId {
    TaskId::recorded(tid)
}

#[test]
fn a_task_with_too_short_a_period_is_not_handed_over() {
    let mut ledger = ledger(500, 2);
    let (root, alice) = (account(0, &[]), account(1000, &[]));
    ledger.enter(task(1), &root).unwrap();
    let short = Reservation::implicit(Span::from_us(100), Span::from_ms(1)).unwrap();
    ledger.charge(task(1), Some(short));
    let error = ledger.hand_over(task(1), &alice).unwrap_err();
    assert!(error.to_string().ends_with("may have (2 ms)"), "{error}");
    assert_eq!(ledger.charged_to(1000), (Bandwidth::ZERO, 0));
    ledger.charge(task(1), Some(of(100)));
    ledger.hand_over(task(1), &alice).unwrap();
    assert_eq!(ledger.charged_to(1000), (of(100).bandwidth(), 1));
}

#[test]
fn all_runtimes_of_a_user_together_are_bounded() {
    let mut ledger = Ledger::new(Quotas::default());
    let alice = account(1000, &[]);
    let long = |ms| Reservation::implicit(Span::from_ms(ms), Span::from_secs(1)).unwrap();
    for tid in [1, 2] {
        ledger.enter(task(tid), &alice).unwrap();
    }
    ledger.admits(task(1), long(60)).unwrap();
    ledger.charge(task(1), Some(long(60)));
    ledger.admits(task(1), long(100)).unwrap();
    let error = ledger.admits(task(2), long(41)).unwrap_err();
    assert!(
        matches!(error, QuotaError::TooLong { left, .. } if left == Span::from_ms(40)),
        "{error}"
    );
    ledger.admits(task(2), long(40)).unwrap();
    ledger.charge(task(1), None);
    ledger.admits(task(2), long(100)).unwrap();
}

#[test]
fn what_a_task_left_by_itself_stays_charged_until_the_kernel_has_recounted() {
    let mut ledger = ledger(500, 2);
    let alice = account(1000, &[]);
    ledger.enter(task(1), &alice).unwrap();
    ledger.charge(task(1), Some(of(300)));
    ledger.taken_over(task(1));
    ledger.taken_over(task(1));
    ledger.leave(task(1));
    assert_eq!(ledger.charged_to(1000), (of(300).bandwidth(), 0));
    ledger.enter(task(2), &alice).unwrap();
    assert_eq!(ledger.leaked(), of(300).bandwidth());
    assert_eq!(
        ledger.take_new_leaks(),
        BTreeMap::from([(1000, of(300).bandwidth())])
    );
    assert_eq!(ledger.take_new_leaks(), BTreeMap::new(), "said once");
    assert!(ledger.admits(task(2), of(201)).is_err());
    ledger.recounted();
    assert_eq!(ledger.charged_to(1000), (Bandwidth::ZERO, 1));
    assert_eq!(ledger.leaked(), Bandwidth::ZERO);
    ledger.admits(task(2), of(500)).unwrap();
}

#[test]
fn what_a_task_held_that_ended_is_charged_until_it_is_known_that_it_had_not_left_it() {
    let alice = account(1000, &[]);
    let at = |secs| Instant::ZERO + Span::from_secs(secs);
    let ended = || {
        let mut ledger = ledger(500, 2);
        ledger.enter(task(1), &alice).unwrap();
        ledger.charge(task(1), Some(of(300)));
        ledger.remove(task(1));
        ledger.settle_ended(at(1), |_| None);
        assert_eq!(ledger.charged_to(1000), (of(300).bandwidth(), 0));
        assert_eq!(ledger.leaked(), Bandwidth::ZERO);
        ledger
    };
    let mut to_its_end = ended();
    to_its_end.settle_ended(at(2), |_| Some(false));
    assert_eq!(to_its_end.charged_to(1000).0, Bandwidth::ZERO);
    let [mut left, mut never_known] = [ended(), ended()];
    left.settle_ended(at(2), |_| Some(true));
    never_known.settle_ended(at(3), |_| None);
    for mut ledger in [left, never_known] {
        assert_eq!(ledger.charged_to(1000).0, of(300).bandwidth());
        assert_eq!(ledger.leaked(), of(300).bandwidth());
        ledger.recounted();
        assert_eq!(ledger.charged_to(1000).0, Bandwidth::ZERO);
    }
}

/// The actions of a hostile client, in any order.
#[derive(Clone, Debug)]
enum Step {
    Enter(u32, usize),
    Leave(u32),
    Remove(u32),
    Reserve(u32, u64),
    Release(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..12_u32, 0..4_usize).prop_map(|(task, account)| Step::Enter(task, account)),
        (0..12_u32).prop_map(Step::Leave),
        (0..12_u32).prop_map(Step::Remove),
        (0..12_u32, 1..1000_u64).prop_map(|(task, share)| Step::Reserve(task, share)),
        (0..12_u32).prop_map(Step::Release),
    ]
}

proptest! {
    /// The slow twin adds everything up anew after each step.
    #[test]
    fn whatever_is_done_in_whatever_order_nobody_is_over_his_quotas(steps in prop::collection::vec(step(), 0..200)) {
        let quotas = Quotas {
            default: quota(500, 4),
            users: HashMap::from([(1002, quota(900, 6))]),
            groups: HashMap::from([(29, quota(700, 5)), (30, quota(100, 1))]),
            ..Quotas::default()
        };
        let people = [account(1000, &[29]), account(1001, &[29, 30]), account(1002, &[7]), account(1000, &[])];
        let mut ledger = Ledger::new(quotas.clone());
        let mut twin: HashMap<u32, (usize, u32, Bandwidth)> = HashMap::new();
        for step in steps {
            match step {
                Step::Enter(tid, who) => {
                    if ledger.enter(task(tid), &people[who]).is_ok() {
                        let entry = twin.entry(tid).or_insert((who, 0, Bandwidth::ZERO));
                        prop_assert!(entry.1 > 0 || people[entry.0] == people[who] || entry.2 == Bandwidth::ZERO);
                        entry.1 += 1;
                    }
                }
                Step::Leave(tid) => {
                    ledger.leave(task(tid));
                    if let Some(entry) = twin.get_mut(&tid) {
                        entry.1 = entry.1.saturating_sub(1);
                    }
                }
                Step::Remove(tid) => {
                    ledger.remove(task(tid));
                    ledger.settle_ended(Instant::ZERO, |_| Some(false));
                    twin.remove(&tid);
                }
                Step::Reserve(tid, share) => {
                    if ledger.admits(task(tid), of(share)).is_ok() {
                        ledger.charge(task(tid), Some(of(share)));
                        twin.get_mut(&tid).unwrap().2 = of(share).bandwidth();
                    }
                }
                Step::Release(tid) => {
                    ledger.charge(task(tid), None);
                    if let Some(entry) = twin.get_mut(&tid) {
                        entry.2 = Bandwidth::ZERO;
                    }
                }
            }
            twin.retain(|_, entry| entry.1 > 0 || entry.2 != Bandwidth::ZERO);
            for uid in [1000, 1001, 1002] {
                let his = twin.values().filter(|entry| people[entry.0].uid == uid);
                let sum: Bandwidth = his.clone().map(|entry| entry.2).sum();
                let limit = quotas.of_user(uid).unwrap();
                prop_assert_eq!(ledger.charged_to(uid), (sum, his.clone().count() as u32));
                prop_assert!(sum <= limit.bandwidth);
                prop_assert!(his.count() <= limit.tasks as usize);
            }
            for (gid, limit) in &quotas.groups {
                let its = twin.values().filter(|entry| people[entry.0].groups.contains(gid));
                let sum: Bandwidth = its.clone().map(|entry| entry.2).sum();
                prop_assert!(sum <= limit.bandwidth);
                prop_assert!(its.count() <= limit.tasks as usize);
            }
        }
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

/// A ledger in which `alice` has a quota of half a CPU, and one task with a reservation of 30%.
fn reserved(alice: &Arc<Account>) -> Ledger {
    let mut ledger = ledger(500, 9);
    ledger.enter(task(1), alice).unwrap();
    ledger.charge(task(1), Some(of(300)));
    ledger
}

/// The task used so many microseconds until `ms`, as the kernel and the meter tell.
fn used(ledger: &mut Ledger, tid: u32, us: u64, ms: u64) {
    let payer = Arc::clone(ledger.account(task(tid)).unwrap());
    ledger.blocked(task(tid), Span::from_us(us), at(ms));
    ledger.spend(&payer, Span::from_us(us), at(ms));
}

#[test]
fn a_task_has_its_reservation_until_it_used_more_than_that_and_its_owner_more_than_the_quota() {
    let alice = account(1000, &[]);
    let mut ledger = reserved(&alice);
    // 45% of a CPU for ten seconds.
    for period in 0..1000 {
        used(&mut ledger, 1, 4500, 10 * period);
    }
    assert_eq!(ledger.goes_without_until(task(1)), None);
    // 90%: the bucket of half a second is empty after 1.25 s.
    let mut over_at = None;
    for period in 1000..1200 {
        used(&mut ledger, 1, 9000, 10 * period);
        if ledger.goes_without_until(task(1)).is_some() {
            over_at.get_or_insert(10 * (period - 1000));
        }
    }
    let over_at = over_at.unwrap();
    assert!((1100..=1400).contains(&over_at), "{over_at}");
    assert!(ledger.take_to_reconsider().contains(&task(1)));
    assert!(ledger.is_ceiling(task(1), of(300), true));
}

#[test]
fn who_has_used_too_much_has_reservations_again_when_that_is_made_up_for() {
    let alice = account(1000, &[]);
    let mut ledger = reserved(&alice);
    used(&mut ledger, 1, 1_000_000, 0);
    // Half a second is owed, and a quarter of one is half a bucket.
    assert_eq!(ledger.goes_without_until(task(1)), Some(at(1500)));
    assert!(ledger.is_ceiling(task(1), of(300), true));
    ledger.take_to_reconsider();
    ledger.refill(at(1499));
    assert_eq!(ledger.goes_without_until(task(1)), Some(at(1500)));
    ledger.refill(at(1500));
    assert_eq!(ledger.goes_without_until(task(1)), None);
    assert!(!ledger.is_ceiling(task(1), of(300), true));
    assert_eq!(ledger.take_to_reconsider(), [task(1)]);
}

#[test]
fn a_task_that_uses_no_more_than_it_holds_keeps_that_beside_one_that_does() {
    let alice = account(1000, &[]);
    let mut ledger = reserved(&alice);
    ledger.enter(task(2), &alice).unwrap();
    ledger.charge(task(2), Some(of(200)));
    for period in 0..1000 {
        used(&mut ledger, 1, 9000, 10 * period);
        used(&mut ledger, 2, 1900, 10 * period);
        assert_eq!(ledger.goes_without_until(task(2)), None, "{period}");
    }
    assert!(ledger.goes_without_until(task(1)).is_some());
}

#[test]
fn tasks_that_come_and_go_get_no_more_than_the_quota() {
    let alice = account(1000, &[]);
    let mut ledger = reserved(&alice);
    used(&mut ledger, 1, 9_000_000, 0);
    ledger.enter(task(2), &alice).unwrap();
    ledger.charge(task(2), Some(of(200)));
    ledger.blocked(task(2), Span::from_ms(2), at(10));
    assert_eq!(ledger.goes_without_until(task(2)), None);
    ledger.blocked(task(2), Span::from_ms(5), at(20));
    assert!(ledger.goes_without_until(task(2)).is_some());
}

#[test]
fn a_task_that_never_blocks_is_charged_each_time_that_its_runtime_is_used_up() {
    let alice = account(1000, &[]);
    let mut ledger = reserved(&alice);
    ledger.spend(&alice, Span::from_secs(9), at(0));
    assert_eq!(ledger.goes_without_until(task(1)), None);
    for period in 1..=40 {
        ledger.ran_out(task(1), at(10 * period));
    }
    assert!(ledger.goes_without_until(task(1)).is_some());
}

#[test]
fn what_is_not_heard_is_a_ceiling_and_root_has_none() {
    let ledger = reserved(&account(1000, &[]));
    assert!(!ledger.is_ceiling(task(1), of(300), true));
    assert!(ledger.is_ceiling(task(1), of(300), false));
    let each = |ms| Reservation::implicit(Span::from_ms(30), Span::from_ms(ms)).unwrap();
    assert!(ledger.is_ceiling(task(1), each(201), true));
    assert!(!ledger.is_ceiling(task(1), each(200), true));
    let root = account(0, &[]);
    let mut roots = reserved(&root);
    used(&mut roots, 1, 9_000_000, 0);
    assert!(!roots.is_ceiling(task(1), of(300), false));
    assert_eq!(roots.goes_without_until(task(1)), None);
}

#[test]
fn tasks_of_a_rule_with_a_bandwidth_share_it_whoever_they_are_and_cost_no_user() {
    let mut ledger = ledger(500, 2);
    let share = Bandwidth::from_cpus(0.3);
    let of_rule = |uid, rule| Arc::new(Account::under_a_rule(uid, rule, share));
    ledger.enter(task(1), &of_rule(0, "film")).unwrap();
    ledger.enter(task(2), &of_rule(65_532, "film")).unwrap();
    ledger.enter(task(3), &of_rule(0, "other")).unwrap();
    ledger.charge(task(1), Some(of(200)));
    let objection = ledger.admits(task(2), of(101)).unwrap_err();
    assert!(
        matches!(objection, QuotaError::Bandwidth { whose: Whose::Rule(_), left, .. }
            if left == of(100).bandwidth()),
        "{objection}"
    );
    ledger.admits(task(2), of(100)).unwrap();
    ledger.admits(task(3), of(300)).unwrap();
    let (held, tasks) = ledger.charged_to(65_532);
    assert_eq!((held, tasks), (Bandwidth::ZERO, 0));
    ledger.enter(task(4), &of_rule(1, "film")).unwrap_err();
    // A soft reservation uses more than the rule's bandwidth: its task goes without, until that is
    // made up for.
    ledger.charge(task(3), Some(of(200)));
    used(&mut ledger, 1, 400_000, 0);
    used(&mut ledger, 3, 200_000, 0);
    assert!(ledger.goes_without_until(task(1)).is_some());
    assert_eq!(ledger.goes_without_until(task(3)), None);
    ledger.refill(Instant::ZERO + Span::from_secs(10));
    assert_eq!(ledger.goes_without_until(task(1)), None);
    for tid in [1, 2] {
        ledger.remove(task(tid));
    }
    ledger.settle_ended(Instant::ZERO, |_| Some(false));
    assert!(ledger.rules.len() == 1 && ledger.users.is_empty());
}

#[test]
fn what_boosted_tasks_use_counts_for_their_users_quota_however_many_there_are() {
    let mut ledger = ledger(500, 1000);
    let (alice, bob) = (account(1000, &[]), account(1001, &[]));
    ledger.enter(task(2000), &bob).unwrap();
    ledger.set_boosted(task(2000), true);
    // Each begins where the one before has ended: a loop of programs that a rule names.
    let mut all = Span::ZERO;
    for number in 1..1000 {
        let now = at(number * 10);
        let own = task(u32::try_from(number).unwrap());
        ledger.enter(own, &alice).unwrap();
        ledger.refill(now);
        if ledger.unboosted_until(own).is_none() {
            ledger.set_boosted(own, true);
            ledger.spend(&alice, Span::from_ms(10), now);
            all += Span::from_ms(10);
        }
        ledger.remove(own);
        assert_eq!(ledger.unboosted_until(task(2000)), None);
    }
    // Half of 10 s, and half a second that the bucket holds.
    let most = Span::from_ms(5500 + 10);
    assert!(all <= most, "{all}");
    assert!(all >= Span::from_ms(5000), "{all}");
}

#[test]
fn what_the_meter_tells_is_charged_once_to_who_pays_and_is_owed_however_much_it_is() {
    let mut ledger = ledger(500, 9);
    let (alice, bob) = (account(1000, &[]), account(1001, &[]));
    for (number, owner) in [(1, &alice), (2, &bob), (3, &alice)] {
        ledger.enter(task(number), owner).unwrap();
        ledger.set_boosted(task(number), true);
    }
    let [first, other, same] = [1, 2, 3].map(|number| ledger.payer(task(number)));
    assert!(first == same && first != other && other != 0);
    let spent = |of_alice: Span| move |payer| if payer == first { of_alice } else { Span::ZERO };
    ledger.metered(spent(Span::from_ms(500)), at(0));
    ledger.metered(spent(Span::from_ms(500)), at(0));
    assert_eq!(ledger.unboosted_until(task(1)), None);
    // As 64 CPUs do in a quarter of a second.
    ledger.metered(spent(Span::from_ms(16_500)), at(0));
    assert_eq!(ledger.unboosted_until(task(3)), Some(at(32_500)));
    assert_eq!(ledger.unboosted_until(task(2)), None);
    let reconsidered = ledger.take_to_reconsider();
    assert_eq!(reconsidered.len(), 2, "{reconsidered:?}");
}

#[test]
fn all_boosts_end_while_all_users_together_have_used_too_much() {
    let mut ledger = Ledger::new(Quotas {
        default: quota(500, 9),
        all: Some(Bandwidth::from_cpus(0.8)),
        ..Quotas::default()
    });
    for number in 1..=4 {
        ledger
            .enter(task(number), &account(1000 + number, &[]))
            .unwrap();
        ledger.set_boosted(task(number), true);
    }
    // Each uses less than its quota, and all together twice what there is.
    let is_over = (0..).take(200).find(|&turn| {
        let now = at(turn * 10);
        ledger.refill(now);
        (1..=4)
            .for_each(|number| ledger.spend(&account(1000 + number, &[]), Span::from_ms(4), now));
        ledger.unboosted_until(task(1)).is_some()
    });
    assert!(is_over.is_some_and(|turn| turn * 10 >= 900), "{is_over:?}");
    let tasks = ledger.take_to_reconsider();
    assert_eq!(tasks.len(), 4, "{tasks:?}");
}

#[test]
fn who_comes_to_the_machine_and_goes_gains_nothing_by_that() {
    let mut ledger = Ledger::new(Quotas {
        default: quota(500, 9),
        seat: quota(2000, 9),
        ..Quotas::default()
    });
    let (alice, seated) = (account(1000, &[]), BTreeSet::from([1000]));
    ledger.enter(task(1), &alice).unwrap();
    // She sits there in every second millisecond, and uses all that she may then.
    ledger.set_boosted(task(1), true);
    let mut all = Span::ZERO;
    for now in 0..4000 {
        let is_there = now % 2 == 0;
        ledger.set_seated(
            seated.iter().copied().filter(|_| is_there).collect(),
            at(now),
        );
        ledger.refill(at(now));
        if is_there && ledger.unboosted_until(task(1)).is_none() {
            ledger.spend(&alice, Span::from_ms(9), at(now));
            all += Span::from_ms(9);
        }
    }
    // B(t) of who always sits there.
    assert!(all <= Span::from_ms(2 * (4000 + 1000) + 9), "{all}");
}
