//! Who has something from the service cannot lend it to others.

use std::thread;

use crate::prelude::*;

fn lending(machine: &Machine) -> PathBuf {
    compile(machine, "lending.c", "lending")
}

/// Alice's, which computes.
fn computing(machine: &Machine, program: &Path) -> Mortal {
    let mut spins = machine.command(ALICE, program);
    as_itself(Mortal::spawn(spins.arg("spin")), "lending")
}

/// A program of Alice's with a reservation of a ten-thousandth, which waits for what it is told.
fn reserved(machine: &Machine, alice: &mut Client, (program, how): (&Path, &str)) -> Client {
    let waits = machine.speaker(machine.command(ALICE, program).arg(how));
    alice.done(&reserve(waits.id()));
    until("a reservation", || is_reserved(waits.id()));
    waits
}

fn reserve(pid: u32) -> String {
    format!("reserve {pid} 10000 100000000 100000000")
}

fn has_lost_it(waits: u32) {
    until("the end of the reservation", || !is_reserved(waits));
}

#[test]
fn a_program_that_computes_with_the_reservation_of_one_that_waits_for_it_ends_that() {
    // Also at the end of a chain of locks.
    for how in ["wait", "chain"] {
        computes_with_it(how);
    }
}

fn computes_with_it(how: &str) {
    let machine = Machine::new();
    let program = lending(&machine);
    let mut alice = machine.client(ALICE);
    let mut waits = reserved(&machine, &mut alice, (&program, how));
    let mut computes = computing(&machine, &program);
    waits.say(&computes.id().to_string());
    has_lost_it(waits.id());
    let has_ended = computes.0.try_wait().unwrap().is_some();
    assert!(!has_ended, "it computed for as long as it wanted");
    assert!(is_ordinary(computes.id()));
    machine.says("is no longer served");
    let answer = alice.refused(&reserve(waits.id()));
    assert!(matches!(&*answer, "NotPermitted" | "TakenOver"), "{answer}");
    drop(computes);
}

#[test]
fn a_task_of_roots_that_hardly_runs_inherits_no_users_reservation() {
    let machine = Machine::new();
    let program = lending(&machine);
    let mut alice = machine.client(ALICE);
    let mut waits = reserved(&machine, &mut alice, (&program, "wait"));
    let process = machine.workload(ROOT, &["beat:20000/100"]);
    let beat = tids(process.id()).into_iter().max().expect("its thread");
    waits.say(&beat.to_string());
    has_lost_it(waits.id());
}

#[test]
fn who_inherits_another_users_reservation_pays_for_it_for_moments_at_most() {
    // The kernel has it pay a hundred times what it inherits.
    let (most, is_kept) = lent_by_another("5", "10000000");
    assert!(most < 300, "{most} ms");
    assert!(is_kept);
}

#[test]
fn who_inherits_another_users_reservation_when_he_overran_his_own_does_not_pay_for_that_by_it() {
    // He has used up to 4 ms more than his own by then: by the other's that is 40 s.
    let (most, _) = lent_by_another("14", "1000000000");
    assert!(most < 1000, "{most} ms");
}

/// Bob's program has 12 ms in each 40, and computes for `works` ms in each. Alice's lend it 0.1 ms
/// within 10 ms of each `period`, one after the other. How many ms its jobs took at most, and
/// whether it has its reservation then.
fn lent_by_another(works: &str, period: &str) -> (u64, bool) {
    let machine = Machine::new();
    let program = lending(&machine);
    let [mut alice, mut bob] = [ALICE, BOB].map(|uid| machine.client(uid));
    let mut served = machine.speaker(machine.command(BOB, &program).args(["late", works]));
    let third = "12000000 40000000 40000000";
    bob.done(&format!("reserve {} {third}", served.id()));
    served.say("");
    let lends = |_| {
        let waits = machine.speaker(machine.command(ALICE, &program).arg("wait"));
        alice.done(&format!("reserve {} 100000 10000000 {period}", waits.id()));
        waits
    };
    let mut lenders: Vec<Client> = (0..16).map(lends).collect();
    for lender in &mut lenders {
        lender.say(&served.id().to_string());
        // Not at the same place of all jobs.
        thread::sleep(Duration::from_millis(15));
        has_lost_it(lender.id());
    }
    // Whatever is to be paid is due with the next jobs.
    thread::sleep(Duration::from_millis(300));
    served.say("");
    let most = served.answer().parse().unwrap();
    (most, is_reserved(served.id()))
}

#[test]
fn programs_that_lend_a_little_each_get_no_more_together_than_their_user_may_use() {
    let machine = Machine::with("[quota]\nbandwidth = \"1%\"\n");
    let program = lending(&machine);
    let mut alice = machine.client(ALICE);
    let began = Instant::now();
    for round in 0..12 {
        let mut waits = machine.speaker(machine.command(ALICE, &program).arg("wait"));
        if round % 2 == 1 {
            alice.done(&format!("track {}", waits.id()));
        }
        let answer = alice.ask(&reserve(waits.id()));
        if answer.starts_with("error org.onbeat.Error.Failed") {
            return;
        }
        assert_eq!(answer, "\"ok\"");
        let computes = computing(&machine, &program);
        waits.say(&computes.id().to_string());
        has_lost_it(waits.id());
    }
    // Each has lent 5 ms or more, and a second gives 10 ms.
    let took = began.elapsed();
    assert!(took > Duration::from_secs(4), "{took:?}");
}

#[test]
fn clients_of_realtimekit_that_lend_lose_it_and_get_nothing_new_of_what_their_user_has_used_up() {
    let machine = Machine::with("[quota]\nbandwidth = \"1%\"\n");
    let program = lending(&machine);
    let mut alice = machine.client(ALICE);
    let waiting = || {
        let mut command = machine.limited(ALICE, &program);
        machine.speaker(command.arg("wait"))
    };
    let realtime = |waits: &Client, priority| format!("realtime {0} {0} {priority}", waits.id());
    let honest = waiting();
    alice.done(&realtime(&honest, 10));
    // Each lends 5 ms or more, and a second gives 10 ms.
    let refused = (0..12).find_map(|_| {
        let mut waits = waiting();
        let answer = alice.ask(&realtime(&waits, 10));
        if answer.starts_with("error") {
            return Some(answer);
        }
        let computes = computing(&machine, &program);
        waits.say(&computes.id().to_string());
        until("the end of its priority", || is_ordinary(waits.id()));
        None
    });
    let why = ["org.freedesktop.DBus.Error.Failed", "has used up"];
    has(refused.expect("a refusal"), &why);
    // What has a priority may have another one.
    alice.done(&realtime(&honest, 9));
}
