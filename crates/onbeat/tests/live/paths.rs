//! A thread that was not asked for is served with the one that it works for, and is put back like
//! that one.

use std::time::Duration;

use serde_json::Value;

use crate::common::within;
use crate::guard::kill_with_guard;
use crate::pair::Pair;
use crate::{Folder, Mortal, is_reserved, needs_root, scheduling, stderr};

/// A server that a stalled machine kept from working for each job is let go after ten seconds, and
/// watched again after fifteen.
const PATIENCE: Duration = Duration::from_secs(120);

/// The period in which a thread is tried that shows no rhythm.
const TRIAL_NS: u64 = 20_000_000;

/// Whether the entry gives `tid` a budget in the period of a path.
fn is_on_path(entry: &Value, tid: u32) -> bool {
    let period = entry["new"]["period_ns"].as_u64();
    entry["tid"] == tid && period.is_some_and(|ns| ns != TRIAL_NS)
}

/// Starts onbeat on the player, and waits until its server is served.
fn attached(folder: &Folder, pair: &Pair) -> Mortal {
    let onbeat = Mortal::spawn(folder.keep("attach").arg(pair.player.id().to_string()));
    within(PATIENCE, "the server's reservation", || {
        let log = folder.log();
        let is_served = log.iter().any(|entry| is_on_path(entry, pair.server));
        (is_served && is_reserved(pair.server)).then_some(())
    });
    onbeat
}

#[test]
fn the_server_of_a_player_is_reserved_with_it_and_gets_back_what_it_had() {
    needs_root!();
    let folder = Folder::new();
    let pair = Pair::start(&[]);
    let before = [pair.player.id(), pair.server].map(scheduling);
    let mut onbeat = attached(&folder, &pair);
    onbeat.signal(libc::SIGINT);
    assert_eq!(onbeat.status(), Some(0));
    assert_eq!([pair.player.id(), pair.server].map(scheduling), before);
    assert_eq!(folder.state_files(), 0);
}

#[test]
fn a_servers_reservation_outlives_a_killed_onbeat_and_guard_and_not_a_restore() {
    needs_root!();
    let folder = Folder::new();
    let pair = Pair::start(&[]);
    let before = [pair.player.id(), pair.server].map(scheduling);
    // It may be let go just before the kill.
    within(PATIENCE, "a reservation when onbeat is dead", || {
        kill_with_guard(attached(&folder, &pair));
        let outlives = is_reserved(pair.server);
        assert!(!outlives || folder.state_files() == 1);
        let restored = folder.onbeat().arg("restore").output().expect("it starts");
        assert!(restored.status.success(), "{}", stderr(&restored));
        assert_eq!([pair.player.id(), pair.server].map(scheduling), before);
        assert_eq!(folder.state_files(), 0);
        outlives.then_some(())
    });
}
