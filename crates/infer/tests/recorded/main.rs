//! The default analyser and the tracker on recordings of real programs with known periods.

#[path = "../scoring/mod.rs"]
mod scoring;

use std::path::PathBuf;

use onbeat_infer::period::{Beat, Tracker};
use onbeat_model::{Rhythm, Span};
use scoring::folder::{self, App, Truth};
use scoring::{analyse, is_right};

fn traces() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces"))
}

/// The recordings of programs, without the one whose threads are starved until nothing is periodic.
fn apps() -> Vec<App> {
    let mut apps = folder::apps(&traces()).unwrap();
    apps.retain(|app| app.name != "rtappTableI.l3");
    assert_eq!(apps.len(), 8);
    apps
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    right: u32,
    wrong: u32,
    none: u32,
}

impl Tally {
    fn windows(self) -> u32 {
        self.right + self.wrong + self.none
    }

    fn share(self) -> f64 {
        f64::from(self.right) / f64::from(self.windows().max(1))
    }

    fn add(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.none += other.none;
    }

    /// Judges one answer: right is a true period, or none where the truth allows it.
    fn judge(&mut self, found: Option<Rhythm>, truth: &Truth) {
        match found {
            None if truth.may_be_none() => self.right += 1,
            None => self.none += 1,
            Some(rhythm) if is_right(rhythm, truth) => self.right += 1,
            Some(_) => self.wrong += 1,
        }
    }
}

fn score(window: Span) -> (Tally, Tally) {
    let (mut periodic, mut aperiodic) = (Tally::default(), Tally::default());
    for app in apps() {
        for thread in scoring::busiest_threads(&app.recording) {
            let Some(truth) = app.threads.get(&thread.comm) else {
                continue;
            };
            let mut tally = Tally::default();
            for (to, bursts) in scoring::windows(&app.recording, &thread, window) {
                let found = analyse(bursts, to);
                let right = tally.right;
                tally.judge(found, truth);
                if tally.right == right {
                    println!("{}, {}: {found:?}", app.name, thread.comm);
                }
            }
            if truth.is_aperiodic() {
                aperiodic.add(tally);
            } else {
                periodic.add(tally);
            }
        }
    }
    (periodic, aperiodic)
}

#[test]
fn the_period_is_right_in_nearly_all_windows_with_2_false_alarms_in_100_at_most() {
    for (window, count, least) in [(1000, 45, 0.98), (500, 90, 0.95)] {
        let (periodic, aperiodic) = score(Span::from_ms(window));
        assert!(periodic.windows() > count && aperiodic.windows() >= count / 6);
        assert!(periodic.share() >= least, "{window} ms: {periodic:?}");
        assert!(aperiodic.share() >= 0.98, "{window} ms: {aperiodic:?}");
    }
}

/// Each recording is cut after its first second, its second one, and so on. The answers that become
/// worse (3 beside 332 right ones) are those on a browser's compositor that hogs keep from its
/// frames.
#[test]
fn a_longer_recording_makes_at_most_one_answer_in_a_hundred_worse() {
    let development = folder::apps(&traces().join("corpus/development")).unwrap();
    let (mut right, mut worse) = (0, 0);
    for app in apps().iter().chain(&development) {
        for thread in scoring::busiest_threads(&app.recording) {
            let Some(truth) = app.threads.get(&thread.comm) else {
                continue;
            };
            let mut was_right = false;
            for length in 1..=app.recording.ended.since(app.recording.began).as_ns() / 1_000_000_000
            {
                let to = app.recording.began + Span::from_secs(1) * length;
                let end = thread.bursts.partition_point(|burst| burst.woke < to);
                let found = analyse(&thread.bursts[..end], to);
                let mut tally = Tally::default();
                tally.judge(found, truth);
                if was_right && tally.right == 0 {
                    println!("{}, {}, {length} s: {found:?}", app.name, thread.comm);
                    worse += 1;
                }
                was_right = tally.right == 1;
                right += tally.right;
            }
        }
    }
    assert!(right > 300 && 100 * worse <= right, "{worse} of {right}");
}

#[test]
fn the_period_of_every_periodic_release_log_is_right() {
    let mut tally = Tally::default();
    for single in folder::lime(&traces()).unwrap() {
        if single.truth.is_aperiodic() {
            continue;
        }
        let threads = scoring::busiest_threads(&single.recording);
        let found = analyse(&threads[0].bursts, single.recording.ended);
        tally.judge(found, &single.truth);
        assert_eq!(tally.right, tally.windows(), "{}: {found:?}", single.name);
    }
    assert!(tally.windows() >= 6);
}

/// Of threads that a pool's others take turns with, the whole pool's period is asked.
#[test]
fn of_a_displays_threads_no_window_has_the_double_of_the_period() {
    let strangers = folder::apps(&traces().join("strangers")).unwrap();
    let display = strangers.iter().find(|app| app.name == "display.l0");
    let (mut right, mut doubled, mut windows) = (0, 0, 0);
    let app = display.unwrap();
    for thread in scoring::busiest_threads(&app.recording) {
        let truth = &app.threads[&thread.comm];
        for (to, bursts) in scoring::windows(&app.recording, &thread, Span::from_secs(1)) {
            let found = analyse(bursts, to);
            let is = |times: f64| {
                let truth = Truth {
                    periods: vec![times * truth.periods[0]],
                    starved: false,
                };
                found.is_some_and(|rhythm| is_right(rhythm, &truth))
            };
            right += usize::from(is(1.0));
            doubled += usize::from(is(2.0));
            windows += 1;
        }
    }
    assert!(windows > 45 && 100 * right >= 60 * windows && doubled == 0);
}

#[test]
fn a_compositor_that_sleeps_twice_a_frame_and_its_client_have_the_frames_period() {
    let development = folder::apps(&traces().join("corpus/development")).unwrap();
    let app = development
        .iter()
        .find(|app| app.name == "weston40.l0")
        .unwrap();
    for thread in scoring::busiest_threads(&app.recording) {
        let mut tally = Tally::default();
        for (to, bursts) in scoring::windows(&app.recording, &thread, Span::from_secs(1)) {
            tally.judge(analyse(bursts, to), &app.threads[&thread.comm]);
        }
        assert!(
            tally.right >= 7 && tally.right == tally.windows(),
            "{tally:?}"
        );
    }
}

#[test]
fn a_tracked_thread_stays_within_a_hundredth_of_its_period_to_the_end_of_the_recording() {
    let mut tracked = 0;
    for app in apps() {
        for thread in scoring::busiest_threads(&app.recording) {
            let Some(truth) = app.threads.get(&thread.comm) else {
                continue;
            };
            if truth.is_aperiodic() {
                continue;
            }
            let (from, rhythm) = scoring::windows(&app.recording, &thread, Span::from_secs(1))
                .find_map(|(to, bursts)| Some((to, analyse(bursts, to)?)))
                .unwrap();
            let mut tracker = Tracker::new(rhythm);
            for burst in thread.bursts.iter().filter(|burst| burst.woke >= from) {
                assert_ne!(tracker.hear(burst), Beat::Lost, "{}", app.name);
            }
            let rhythm = tracker.rhythm();
            assert!(is_right(rhythm, truth), "{}: {rhythm:?}", app.name);
            tracked += 1;
        }
    }
    assert_eq!(tracked, 9);
}
