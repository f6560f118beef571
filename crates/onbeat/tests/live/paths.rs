//! A thread that was not asked for is served with the one that it works for, and is put back like
//! that one.

use crate::pair::Pair;
use crate::*;

/// A server that a stalled machine kept from working for each job is let go after ten seconds, and
/// watched again after fifteen.
const PATIENCE: Duration = Duration::from_secs(120);

/// The period in which a thread is tried that shows no rhythm.
const TRIAL_NS: u64 = 20_000_000;

#[test]
fn the_server_of_a_player_is_reserved_with_it_and_gets_back_what_it_had() {
    let folder = Folder::new();
    let pair = Pair::start(&[]);
    let before = [pair.player.id(), pair.server].map(scheduling);
    let mut onbeat = folder.attach(pair.player.id(), &[]);
    // In the period of a path.
    let is_served = |entry: &Value| {
        let period = entry["new"]["period_ns"].as_u64();
        entry["tid"] == pair.server && period.is_some_and(|ns| ns != TRIAL_NS)
    };
    within(PATIENCE, "the server's reservation", || {
        folder.entry(is_served).filter(|_| is_reserved(pair.server))
    });
    assert_eq!(onbeat.ends(libc::SIGINT), Some(0));
    assert_eq!([pair.player.id(), pair.server].map(scheduling), before);
    assert_eq!(folder.state_files(), 0);
}
