//! Paths where several users have threads tracked: each has a share, and no user's path leads to
//! another one's threads.

use std::collections::BTreeMap;

use onbeat_control::{Controller, Party, Settings, What};
use onbeat_model::{Event, Span, TaskId};

use crate::kernel::Kernel;
use crate::pipelines::{
    PLAYER, SERVER, answered, burst, number_of, plays, serves, settings, task, wakes,
};
use crate::world::{Noise, Script, Scripted, at_ms, ms, play, play_asking, weighing};

/// The threads from 1000 on are user 1's, those from 2000 on user 2's, and so on.
fn by_thousands(task: TaskId) -> Party {
    Party {
        payer: task.tid / 1000,
        owner: Some(task.tid / 1000),
        ..Party::default()
    }
}

fn of_users(parties: fn(TaskId) -> Party) -> Settings {
    Settings {
        parties: Box::new(parties),
        ..settings()
    }
}

/// The first thread of each user is tracked, and has woken the number of others given with it.
fn woken_by_each(users: impl Iterator<Item = (u32, u32)>) -> Vec<Event> {
    let at = at_ms(0);
    let mut events = Vec::new();
    for (user, wakees) in users {
        let player = task(user * 1000, user * 1000, "player");
        events.push(Event::Tracked { at, task: player });
        events.extend((1..=wakees).map(|n| Event::Woke {
            at,
            task: player.id,
            wakee: task(user * 1000 + n, user * 1000 + n, "many"),
            count: 9,
        }));
    }
    events
}

fn watched_of_each(events: &[Event]) -> BTreeMap<u32, usize> {
    let mut controller = Controller::new(of_users(by_thousands), Kernel::with_cpus(2));
    controller.turn(events, at_ms(0), &mut Scripted::default());
    let mut counts = BTreeMap::new();
    for partner in controller.partners_to_track() {
        assert_eq!(
            by_thousands(partner.of),
            by_thousands(TaskId::recorded(partner.tid))
        );
        *counts.entry(partner.tid / 1000).or_default() += 1;
    }
    counts
}

#[test]
fn however_many_threads_a_user_wakes_another_ones_are_watched_too() {
    let counts = watched_of_each(&woken_by_each([(1, 900), (2, 3)].into_iter()));
    assert_eq!(counts, BTreeMap::from([(1, 16), (2, 3)]));
}

#[test]
fn where_many_users_wake_many_each_has_as_many_as_any() {
    let counts = watched_of_each(&woken_by_each((1..=16).map(|user| (user, 900))));
    assert_eq!(counts, (1..=16).map(|user| (user, 16)).collect());
}

#[test]
fn a_thread_that_one_user_was_refused_can_be_watched_for_its_own() {
    let mut controller = Controller::new(of_users(by_thousands), Kernel::with_cpus(2));
    let at = at_ms(0);
    let server = task(2001, 2001, "server");
    let woke = |user: u32| Event::Woke {
        at,
        task: TaskId::recorded(user * 1000),
        wakee: server,
        count: 9,
    };
    let mut events = woken_by_each([(1, 0), (2, 0)].into_iter());
    events.extend([woke(1), woke(2)]);
    controller.turn(&events, at, &mut Scripted::default());
    let first = controller.partners_to_track();
    assert_eq!(first.len(), 1, "one asks at a time");
    controller.partner_refused(first[0], at);
    controller.turn(&[], at_ms(300), &mut Scripted::default());
    let second = controller.partners_to_track();
    assert_eq!(second.len(), 1);
    assert_ne!(first[0].of, second[0].of);
}

/// A player of user 1 wakes a requested thread, which works for each of its jobs; whether that one
/// is served for it.
fn is_served_with(parties: fn(TaskId) -> Party) -> bool {
    const HELPER: u32 = 2000;
    let mut script = Script::default();
    let player = 1000;
    script.tracked(player, "player", at_ms(0));
    script.tracked(HELPER, "helper", at_ms(0));
    script.periodic(player, ms(40), (at_ms(0), at_ms(8000)), |_| ms(8));
    let mut noise = Noise(3);
    for at in (0..8000).step_by(40) {
        // At no time of its own, or it would have a rhythm itself.
        let woke = at_ms(at + 4) + noise.up_to(ms(32));
        script.event(burst(HELPER, woke, ms(1), player));
        answered(&mut script, player, woke + ms(2), HELPER);
    }
    let ran = play(script, Kernel::with_cpus(2), of_users(parties));
    let whys: Vec<String> = ran.of(HELPER).iter().map(|e| e.why.to_string()).collect();
    whys.iter()
        .any(|why| why.starts_with("it is stage 2 of player's"))
}

#[test]
fn a_path_leads_to_no_other_users_thread_but_to_what_is_everybodys() {
    assert!(is_served_with(|_| Party::default()));
    assert!(!is_served_with(by_thousands));
    assert!(is_served_with(|task| Party {
        is_everybodys: task.tid == 2000,
        ..by_thousands(task)
    }));
    assert!(!is_served_with(|_| Party {
        owner: None,
        ..Party::default()
    }));
}

#[test]
fn a_server_of_two_players_stays_when_the_one_that_it_was_found_with_ends() {
    for goes in [PLAYER, 2] {
        let mut script = Script::default();
        let until = |tid| if goes == tid { 4000 } else { 9000 };
        plays(&mut script, PLAYER, ms(40), (0, until(PLAYER)));
        serves(&mut script, PLAYER, ms(40), (0, until(PLAYER)));
        plays(&mut script, 2, ms(40), (0, until(2)));
        for at in (13..until(2)).step_by(40) {
            script.event(burst(SERVER, at_ms(at + 5), ms(1), 2));
            answered(&mut script, 2, at_ms(at + 8), SERVER);
        }
        script.exits(goes, at_ms(4000));
        let ran = play(script, Kernel::with_cpus(2), settings());
        assert!(ran.unwatched.is_empty(), "{goes} went");
        let given_back = ran.of(SERVER).into_iter();
        let given_back = given_back.filter(|e| e.what == What::Released && e.at < at_ms(8900));
        assert_eq!(given_back.count(), 0, "{goes} went");
        assert_eq!(number_of(&ran, SERVER, What::Reserved), 1);
    }
}

#[test]
fn a_server_works_for_those_whose_jobs_it_shares_and_no_longer_for_whom_it_left() {
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(40), (0, 9000));
    plays(&mut script, 2, ms(50), (0, 9000));
    serves(&mut script, PLAYER, ms(40), (0, 4000));
    for at in (4000..9000).step_by(50) {
        script.event(burst(SERVER, at_ms(at + 5), ms(1), 2));
        answered(&mut script, 2, at_ms(at + 8), SERVER);
    }
    let (mut first, mut last) = (Vec::new(), Vec::new());
    play_asking(
        script,
        Kernel::with_cpus(2),
        settings(),
        |controller, now| {
            let users = controller.works_for(TaskId::recorded(SERVER)).to_vec();
            if now < at_ms(3900) {
                first = users;
            } else if now < at_ms(8900) {
                last = users;
            }
        },
    );
    assert_eq!(first, [TaskId::recorded(PLAYER)]);
    assert_eq!(last, [TaskId::recorded(2)]);
}

/// The share of the server of a player of this weight, when not all fits.
fn share_of_server(weight: f64) -> f64 {
    let mut script = Script::default();
    plays(&mut script, PLAYER, ms(40), (0, 8000));
    for at in (0..8000).step_by(40) {
        script.event(burst(SERVER, at_ms(at + 5), ms(12), PLAYER));
        answered(&mut script, PLAYER, at_ms(at + 20), SERVER);
    }
    for tid in [50, 51, 52] {
        script.tracked(tid, "other", at_ms(0));
        script.periodic(tid, ms(40), (at_ms(500), at_ms(8000)), |_| ms(12));
    }
    let mut settings = settings();
    settings.treat = weighing("player", weight);
    let ran = play(script, Kernel::with_cpus(1), settings);
    ran.last_held(SERVER).bandwidth().as_cpus()
}

#[test]
fn a_server_counts_as_much_as_the_player_that_it_works_for() {
    let (light, heavy) = (share_of_server(1.0), share_of_server(8.0));
    assert!(heavy > light * 1.2, "{heavy} and {light}");
}

#[test]
fn one_user_cannot_take_all_places_on_paths() {
    let mut script = Script::default();
    let until = 6000;
    for user in 1..=5 {
        let (from, servers) = if user == 5 { (3000, 1) } else { (0, 36) };
        let player = user * 1000;
        script.tracked(player, "player", at_ms(from));
        script.periodic(player, ms(40), (at_ms(from), at_ms(until)), |_| ms(1));
        for server in (1..=servers).map(|n| player + n) {
            let task = task(server, server, "server");
            wakes(&mut script, player, task, 12, (from + 100, until));
            for at in (from..until).step_by(40) {
                script.event(burst(server, at_ms(at + 5), Span::from_us(100), player));
                answered(&mut script, player, at_ms(at + 12), server);
            }
        }
    }
    let ran = play(script, Kernel::with_cpus(64), of_users(by_thousands));
    let served = |user: u32| {
        let all = (1..=36).map(|n| user * 1000 + n);
        all.filter(|tid| !ran.reserves(*tid).is_empty()).count()
    };
    for user in 1..=4 {
        assert_eq!(served(user), 32, "user {user}");
    }
    assert_eq!(served(5), 1);
}
