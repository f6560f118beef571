//! The service is killed at any moment: what it changed goes back.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::prelude::*;

/// How many times the service is killed, unless ONBEAT_KILLS says otherwise.
const KILLS: u64 = 10;
/// A service starts in less; then calls change something every millisecond.
const LONGEST_LIFE_MS: u64 = 600;
const TASKS: usize = 3;

#[test]
fn whenever_the_service_is_killed_its_reservations_go_back() {
    let told = std::env::var("ONBEAT_KILLS").ok();
    let kills = told.and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let mut machine = Machine::bus();
    machine.configure("");
    let tasks: Vec<_> = (0..TASKS).map(|_| machine.sleeper(ALICE)).collect();
    let ids: Vec<u32> = tasks.iter().map(Mortal::id).collect();
    let mut client = machine.client(ALICE);
    let is_over = AtomicBool::new(false);
    let mut random: u64 = 1;
    let mut held = 0;
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| {
            let mut granted: u64 = 0;
            for round in 0_usize.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let task = ids[round % TASKS];
                let call = match round % 5 {
                    0 | 2 | 3 => format!("reserve {task} {TENTH}"),
                    1 => format!("track {task}"),
                    _ => format!("release {task}"),
                };
                if client.ask(&call) == "\"ok\"" {
                    granted += 1;
                } else {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            granted
        });
        for round in 0..kills {
            machine.start_unheard(Command::new("env").arg("--"));
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let life = (random >> 33) % LONGEST_LIFE_MS;
            std::thread::sleep(Duration::from_millis(life));
            machine.end(libc::SIGKILL);
            held += ids.iter().filter(|task| is_reserved(**task)).count();
            // The next service restores, or its guard, or the command that the guard's unit runs.
            if round % 3 == 1 {
                for task in &ids {
                    until("what the guard gives back", || is_ordinary(*task));
                }
            } else if round % 3 == 2 {
                let restored = onbeat(&machine.state()).arg("restore").output();
                let are_back = ids.iter().all(|task| is_ordinary(*task));
                assert!(are_back, "kill {round}: {ids:?}: {restored:?}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let granted = calls.join().expect("the calls end");
        println!("{kills} kills, {granted} calls granted, {held} reservations held at a kill");
    });
    machine.start();
    for task in &ids {
        until("its former scheduling", || is_ordinary(*task));
    }
    let mut alice = machine.client(ALICE);
    for task in &ids {
        alice.reserve(*task);
    }
    assert_eq!(machine.end(libc::SIGTERM), Some(0), "{}", machine.log());
    assert!(ids.iter().all(|task| is_ordinary(*task)));
}
