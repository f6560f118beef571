//! The limits of quotas for a user, beyond the sum of their requests.

use crate::prelude::*;

#[test]
fn reservations_that_would_stop_the_machine_are_refused() {
    let machine = Machine::new();
    let [one, other, roots] = [ALICE, ALICE, ROOT].map(|uid| machine.sleeper(uid));
    let [mut alice, mut root] = [ALICE, ROOT].map(|uid| machine.client(uid));
    for times in [
        // A quarter of a CPU: a second of each four.
        "1040000000 1040000000 4190000000",
        // Before all others, and before the tick at which that would be noticed.
        "900000 900000 100000000",
        "1100 1000000 1000000",
    ] {
        let refused = alice.refused(&format!("reserve {} {times}", one.id()));
        assert_eq!(refused, "OverQuota", "{times}");
    }
    // By its share of the period, a hundred and twenty of these would fit.
    let urgent = "400000 1000000 100000000";
    alice.done(&format!("reserve {} {urgent}", one.id()));
    let second = format!("reserve {} {urgent}", other.id());
    assert_eq!(alice.refused(&second), "OverQuota");
    let long = "200000000 1000000000 1000000000";
    root.done(&format!("reserve {} {long}", roots.id()));
}

/// Has the kernel forget what leaked: it is of the test's own making.
struct Recounted;

impl Drop for Recounted {
    fn drop(&mut self) {
        let limit = "/proc/sys/kernel/sched_rt_runtime_us";
        let _ = fs::read(limit).and_then(|text| fs::write(limit, text));
    }
}

#[test]
fn who_leaves_reservations_by_himself_can_leak_no_more_than_his_quota() {
    let machine = Machine::new();
    let _recounted = Recounted;
    let [mut mallory, mut bob] = [MALLORY, BOB].map(|uid| machine.client(uid));
    let mut rounds = 0;
    // Half of a CPU is her quota, and five tenths of that are what may leak.
    while rounds < 7 {
        let sleeper = machine.sleeper(MALLORY);
        let answer = mallory.ask(&format!("reserve {} {TENTH}", sleeper.id()));
        if answer != "\"ok\"" {
            has(&answer, &["OverQuota"]);
            break;
        }
        // Past the end of its period, asleep: the kernel counts it for good.
        std::thread::sleep(Duration::from_millis(20));
        ordinary(0, true).set(sleeper.id()).unwrap();
        mallory.ask(&format!("release {}", sleeper.id()));
        rounds += 1;
    }
    assert_eq!(rounds, 5);
    assert!(mallory.is_about("own-bandwidth", 0.5), "{}", machine.log());
    let bobs = machine.sleeper(BOB);
    bob.reserve(bobs.id());
}

#[test]
fn who_leaves_a_reservation_and_ends_before_that_is_seen_is_charged_for_it() {
    // All that the kernel takes.
    let machine = Machine::with("[limits]\ntotal = \"95%\"\n");
    let _recounted = Recounted;
    let mut mallory = machine.client(MALLORY);
    let total = mallory.figure("total-bandwidth").as_f64().unwrap();
    let mut expected = 0.0;
    for (is_tracked, leaves) in [(false, true), (true, true), (false, false), (true, false)] {
        let sleeper = machine.sleeper(MALLORY);
        if is_tracked {
            mallory.track(&sleeper);
        }
        mallory.reserve(sleeper.id());
        // Past the end of its period, asleep: the kernel counts it for good.
        std::thread::sleep(Duration::from_millis(20));
        if leaves {
            ordinary(0, true).set(sleeper.id()).unwrap();
            expected += 0.1;
        }
        drop(sleeper);
        until("its end", || mallory.figure("own-tasks") == 0);
        let what = format!("what is charged (tracked: {is_tracked}, left: {leaves})");
        until(&what, || mallory.is_about("own-bandwidth", expected));
        // After its next look at the machine, too.
        let rest = total - expected;
        until("what others may have", || {
            mallory.is_about("total-bandwidth", rest)
        });
        assert!(mallory.is_about("own-bandwidth", expected));
    }
    let about = "threads of user 9 gave up reservations by themselves: the kernel may still count ";
    assert_eq!(machine.said(about), 2, "{}", machine.log());
}

#[test]
fn who_asks_for_more_than_his_quota_has_nobody_make_room() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    // The sum is 85% of one CPU.
    let total = 85.0 / cpus as f64;
    let machine = Machine::with(&format!("[limits]\ntotal = \"{total}%\"\n"));
    let workload = machine.workload(ALICE, &["beat:20000/1000"]);
    let mallorys = machine.sleeper(MALLORY);
    let [mut alice, mut mallory] = [ALICE, MALLORY].map(|uid| machine.client(uid));
    alice.track(&workload);
    let thread = reserved_thread(workload.id());
    for _ in 0..50 {
        // It fits if all others are given the minimum.
        let ask = format!("reserve {} 8300000 10000000 10000000", mallorys.id());
        assert_eq!(mallory.refused(&ask), "OverQuota");
    }
    assert_eq!(machine.said("to give way"), 0, "{}", machine.log());
    assert!(is_reserved(thread) && !is_reserved(mallorys.id()));
}

#[test]
fn who_needs_more_than_his_quota_is_never_held_to_it_and_goes_without_now_and_then() {
    let machine = Machine::with("[quota]\nbandwidth = \"20%\"\n");
    let workload = machine.workload(ALICE, &["beat:20000/8000"]);
    let mut alice = machine.client(ALICE);
    alice.track(&workload);
    let mut thread = None;
    // It has its reservation, then goes without, and has it again.
    for is_to_have_one in [true, false, true, false] {
        eventually("a change", || {
            let mut threads = tids(workload.id()).into_iter();
            thread = thread.or_else(|| threads.find(|&tid| is_reserved(tid)));
            let policy = policy(thread?);
            if let Policy::Deadline(deadline) = policy {
                assert!(deadline.reclaim, "a ceiling: {}", machine.log());
            }
            (matches!(policy, Policy::Deadline(_)) == is_to_have_one).then_some(())
        });
    }
    has(machine.log(), &["its user has used up the quota"]);
}

/// A number that Debian gives to no user, as those of user namespaces are.
const NOBODYS: u32 = 4_000_000_000;

#[test]
fn programs_of_a_user_without_an_account_are_not_tracked_by_a_rule() {
    let machine = Machine::with_rule("");
    let mut root = machine.client(ROOT);
    let start = |uid| machine.workload(uid, &["random:1000000/1"]);
    let nobodys = start(NOBODYS);
    let mut is_tracked = |pid: u32| root.listed(pid).is_some();
    // These are found in scans after the one that found that.
    for _ in 0..2 {
        let hers = start(ALICE);
        until("her program", || is_tracked(hers.id()));
    }
    assert!(!is_tracked(nobodys.id()), "{}", machine.log());
}

/// Users whom every Debian knows, beside those that have names here.
const OTHERS: [u32; 8] = [1, 2, 3, 6, 8, 10, 13, 33];

#[test]
fn eight_users_keep_no_ninth_from_being_told_of_changes() {
    let machine = Machine::new();
    let mut crowds: Vec<_> = OTHERS.map(|uid| machine.client(uid)).into();
    for crowd in &mut crowds {
        assert_eq!(crowd.ask("crowd 34"), "32", "each may have 32");
    }
    machine.client(ALICE).done("subscribe");
}

/// Runs a command where systemd-logind seems to keep its files in the folder of its first argument.
const WITH_SEATS: &str = r#"
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/seats
mount --bind "$1" /run/systemd/seats
shift
exec "$@""#;

#[test]
fn who_sits_at_the_machine_has_a_share_of_all_of_it_until_another_one_does() {
    let mut machine = Machine::bus();
    machine.configure("scan = \"50ms\"\n[quota]\nseat = \"80%\"\n");
    let seats = machine.folder("seats");
    let sits_down = |uid: u32| {
        let text = format!("ACTIVE=1\nACTIVE_UID={uid}\nUIDS={ALICE} {BOB}\n");
        fs::write(seats.join(".new"), text).unwrap();
        fs::rename(seats.join(".new"), seats.join("seat0")).unwrap();
    };
    let mut namespace = Command::new("unshare");
    namespace.args(["--mount", "sh", "-ec", WITH_SEATS, "sh"]);
    assert!(
        machine.start_through(namespace.arg(&seats)),
        "{}",
        machine.log()
    );
    let [mut alice, mut bob] = [ALICE, BOB].map(|uid| machine.client(uid));
    let has = |client: &mut Client, quota: f64| {
        until("the quota", || client.is_about("quota-bandwidth", quota));
    };
    let cpus = onbeat_kernel::cpus::online().expect("there is one");
    let share = 0.8 * cpus.len() as f64;
    has(&mut alice, 0.5);
    sits_down(ALICE);
    has(&mut alice, share);
    has(&mut bob, 0.5);
    let sleepers = [(); 8].map(|()| machine.sleeper(ALICE));
    let [first, rest @ ..] = &sleepers;
    for sleeper in &sleepers[..7] {
        alice.reserve(sleeper.id());
    }
    sits_down(BOB);
    has(&mut alice, 0.5);
    has(&mut bob, share);
    let one_more = format!("reserve {} {TENTH}", rest[6].id());
    assert_eq!(alice.refused(&one_more), "OverQuota");
    assert!(is_reserved(first.id()), "what she had stays");
}
