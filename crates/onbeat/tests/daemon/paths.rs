//! A user's thread that works for one that he tracks is kept with it; another user's is not.

use crate::pair::Pair;
use crate::prelude::*;

/// A server that a stalled machine kept from working for each job is let go after ten seconds, and
/// watched again after fifteen.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_users_server_is_kept_with_his_player_and_goes_when_that_is_no_longer_wanted() {
    let machine = Machine::new();
    let pair = Pair::start(&[ALICE, ALICE]);
    let mut alice = machine.client(ALICE);
    alice.track(&pair.player);
    within(PATIENCE, "the server in the list", || {
        let server = alice.listed(pair.server)?;
        let path = server["path"].as_str().unwrap_or_default();
        assert_eq!(server["user"], ALICE);
        let is_kept = path.starts_with("stage 2 of player's") && is_reserved(pair.server);
        (is_kept && alice.figure("own-tasks") == 2).then_some(())
    });

    alice.done(&format!("untrack {}", pair.player.id()));
    goes_back(pair.server);
    until("an empty list", || alice.list().is_empty());
    until("nothing charged to her", || alice.figure("own-tasks") == 0);
}

#[test]
fn another_users_server_is_named_and_left_as_it_is() {
    let machine = Machine::new();
    let pair = Pair::start(&[ALICE, BOB]);
    let mut alice = machine.client(ALICE);
    alice.track(&pair.player);
    let (server, player) = (pair.server, pair.player.id());
    let named = format!("thread {server} works with thread {player}");
    eventually("its name in the log", || {
        let log = machine.log();
        let line = log.lines().find(|line| line.contains(&named))?;
        has(line, &["it is not yours"]);
        Some(())
    });
    assert!(is_ordinary(pair.server));
    assert_eq!(alice.listed(server), None);
}
