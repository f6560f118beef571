use std::path::PathBuf;

use onbeat_control::{Controller, DryRun, Next, Report, Settings, ThreadReport, drive};
use onbeat_model::{Bandwidth, Capacity, Span};
use onbeat_sense::recording::{self, Replay};

fn capacity() -> Capacity {
    Capacity {
        cpus: 2,
        admissible: Bandwidth::from_cpus(1.8),
        shortest_runtime: Span::from_ns(1024),
        shortest_period: Span::from_us(100),
        longest_period: Span::from_secs(4),
    }
}

fn report(recording: &str) -> Report {
    let traces = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces"));
    let mut sensor = Replay::new(recording::read(traces.join(recording)).unwrap());
    sensor.track_all();
    let mut controller = Controller::new(Settings::default(), DryRun::new(capacity()));
    drive(&mut sensor, &mut controller, |_, _| Next::Continue).unwrap();
    controller.finish(onbeat_model::Sensor::now(&sensor))
}

fn named<'a>(report: &'a Report, name: &str) -> &'a ThreadReport {
    let mut threads = report.threads.iter();
    threads
        .find(|thread| thread.task.comm.to_text() == name)
        .unwrap()
}

/// The player wakes a little before the beat was thought to be, and works across it. The server's
/// first rhythm, of 39 ms, is heard while the player catches up.
#[test]
fn frames_shown_in_time_are_not_missed_and_a_period_guessed_from_catching_up_is_put_right() {
    let report = report("onbeat/mplayer25.reserved.gz");
    let player = named(&report, "mplayer");
    assert!(player.period.unwrap().abs_diff(Span::from_ms(40)) < Span::from_us(100));
    assert!(player.counted.jobs >= 220, "{}", player.counted.jobs);
    assert!(player.counted.missed <= 12, "{}", player.counted.missed);
    let server = named(&report, "Xvfb");
    assert!(server.period.unwrap().abs_diff(Span::from_ms(40)) < Span::from_us(100));
}
