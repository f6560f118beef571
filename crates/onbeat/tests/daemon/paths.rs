//! A user's thread that works for one that he tracks is kept with it; another user's is not.

use std::time::Duration;

use crate::common::{eventually, needs_root, within};
use crate::machine::{ALICE, BOB, Machine, ROOT, is_ordinary, is_reserved};
use crate::pair::Pair;

/// A server that a stalled machine kept from working for each job is let go after ten seconds, and
/// watched again after fifteen.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_users_server_is_kept_with_his_player_and_goes_when_that_is_no_longer_wanted() {
    needs_root!();
    let machine = Machine::new();
    let pair = Pair::start(&[ALICE, ALICE]);
    let mut alice = machine.client(ALICE);
    alice.done(&format!("track {}", pair.player.id()));
    within(PATIENCE, "the server in the list", || {
        let threads = alice.told("list");
        let mut threads = threads.as_array()?.iter();
        let server = threads.find(|one| one["thread"] == pair.server)?;
        let path = server["path"].as_str().unwrap_or_default();
        assert_eq!(server["user"], ALICE);
        let is_kept = path.starts_with("stage 2 of player's") && is_reserved(pair.server);
        (is_kept && alice.told("statistics")["own-tasks"] == 2).then_some(())
    });

    alice.done(&format!("untrack {}", pair.player.id()));
    eventually("the way back", || is_ordinary(pair.server).then_some(()));
    eventually("an empty list", || {
        alice.told("list").as_array()?.is_empty().then_some(())
    });
    eventually("nothing charged to her", || {
        (alice.told("statistics")["own-tasks"] == 0).then_some(())
    });
}

#[test]
fn a_users_server_is_kept_with_his_player_that_root_has_tracked_and_charged_to_him() {
    needs_root!();
    let machine = Machine::new();
    let pair = Pair::start(&[ALICE, ALICE]);
    let [mut root, mut alice] = [ROOT, ALICE].map(|uid| machine.client(uid));
    root.done(&format!("track {}", pair.player.id()));
    within(PATIENCE, "the server in root's list", || {
        let threads = root.told("list");
        let mut threads = threads.as_array()?.iter();
        let server = threads.find(|one| one["thread"] == pair.server)?;
        let path = server["path"].as_str().unwrap_or_default();
        assert_eq!(server["user"], ALICE);
        (path.starts_with("stage 2 of player's") && is_reserved(pair.server)).then_some(())
    });
    alice.done(&format!("realtime {0} {0} 10", pair.server));
    assert_eq!(alice.told("statistics")["own-tasks"], 1);
    root.done("reset");
    root.die();
    eventually("the way back", || is_ordinary(pair.server).then_some(()));
}

#[test]
fn another_users_server_is_named_and_left_as_it_is() {
    needs_root!();
    let machine = Machine::new();
    let pair = Pair::start(&[ALICE, BOB]);
    let mut alice = machine.client(ALICE);
    alice.done(&format!("track {}", pair.player.id()));
    let named = format!(
        "thread {} works with thread {}",
        pair.server,
        pair.player.id()
    );
    eventually("its name in the log", || {
        let log = machine.log();
        let line = log.lines().find(|line| line.contains(&named))?;
        assert!(line.contains("it is not yours"), "{line}");
        Some(())
    });
    assert!(is_ordinary(pair.server));
    let threads = alice.told("list");
    let mut threads = threads.as_array().into_iter().flatten();
    assert!(threads.all(|one| one["thread"] != pair.server));
}
