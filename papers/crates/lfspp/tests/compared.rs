//! The paper's analyser beside onbeat's own, on recordings whose periods are known; and in its
//! loop.

#[allow(dead_code)]
#[path = "../../../../crates/infer/tests/scoring/mod.rs"]
mod scoring;

use std::path::PathBuf;

use onbeat_model::{Burst, Instant, Rhythm, Span};
use onbeat_sense::recording;
use scoring::{analyse, folder, is_right};

fn traces() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/traces"
    ))
}

fn papers(bursts: &[Burst], now: Instant) -> Option<Rhythm> {
    let whole = bursts
        .first()
        .map_or(Span::ZERO, |first| now.since(first.woke));
    onbeat_lfspp::rhythm(bursts.iter().copied(), whole.max(Span::from_ns(1)))
}

/// The right windows per window, of threads with a period and of the others.
fn shares(analyse: fn(&[Burst], Instant) -> Option<Rhythm>, window: Span) -> [f64; 2] {
    let mut right = [0, 0];
    let mut all = [0, 0];
    for app in folder::apps(&traces()).unwrap() {
        for thread in scoring::busiest_threads(&app.recording) {
            let Some(truth) = app.threads.get(&thread.comm) else {
                continue;
            };
            let kind = usize::from(truth.is_aperiodic());
            for (to, bursts) in scoring::windows(&app.recording, &thread, window) {
                let found = analyse(bursts, to);
                let is_right = found.map_or(truth.may_be_none(), |it| is_right(it, truth));
                right[kind] += u32::from(is_right);
                all[kind] += 1;
            }
        }
    }
    [0, 1].map(|kind| f64::from(right[kind]) / f64::from(all[kind]))
}

#[test]
fn onbeats_analyser_beats_the_papers_on_threads_with_and_without_a_period() {
    for window in [Span::from_secs(1), Span::from_ms(500)] {
        let (own, papers) = (shares(analyse, window), shares(papers, window));
        assert!(
            own[0] > papers[0] && own[1] > papers[1],
            "{own:?} {papers:?}"
        );
    }
}

#[test]
fn the_papers_analyser_finds_the_films_period() {
    let recording = recording::read(traces().join("onbeat/mplayer25.reserved.gz")).unwrap();
    let threads = scoring::busiest_threads(&recording);
    let player = threads.iter().find(|thread| thread.comm == "mplayer");
    let bursts = scoring::windows(&recording, player.unwrap(), Span::from_secs(2));
    let found = bursts.map(|(to, bursts)| papers(bursts, to).unwrap().period);
    let errors = found.map(|period| period.abs_diff(Span::from_ms(40)));
    assert!(errors.max().unwrap() < Span::from_us(200));
}
