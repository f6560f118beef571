//! The corpus is whole: every entry of its truth has its recording and its thread.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::scoring::{self, folder};

/// The programs, recordings, and those recordings of which no thread has a rhythm, of a half.
struct Half {
    programs: BTreeSet<String>,
    recordings: usize,
    aperiodic: usize,
}

fn half(name: &str) -> Half {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/traces/corpus")
        .join(name);
    let truths = folder::truths(&folder).unwrap();
    let apps = folder::apps(&folder).unwrap();
    let files = folder.join("apps").read_dir().unwrap().count();
    assert_eq!(files, truths.len(), "files and entries of {name}");
    assert_eq!(apps.len(), truths.len(), "recordings of {name}");
    for app in &apps {
        assert!(truths.contains_key(&app.name), "{}", app.name);
        let threads = scoring::busiest_threads(&app.recording);
        assert!(!app.threads.is_empty(), "{}", app.name);
        for name in app.threads.keys() {
            let thread = threads.iter().find(|thread| thread.comm == *name);
            let bursts = thread.map_or(0, |thread| thread.bursts.len());
            assert!(bursts >= scoring::FEWEST, "{}, {name}", app.name);
        }
    }
    let program = |name: &String| name.split('.').next().unwrap_or_default().to_owned();
    Half {
        programs: truths.keys().map(program).collect(),
        recordings: apps.len(),
        aperiodic: apps
            .iter()
            .filter(|app| app.threads.values().all(folder::Truth::is_aperiodic))
            .count(),
    }
}

#[test]
fn the_corpus_has_60_recordings_of_30_programs_and_a_third_without_a_rhythm() {
    let (development, test) = (half("development"), half("test"));
    assert!(development.programs.is_disjoint(&test.programs));
    assert!(development.programs.len() + test.programs.len() >= 30);
    let recordings = development.recordings + test.recordings;
    assert!(recordings >= 60, "{recordings}");
    for half in [development, test] {
        assert!(half.programs.len() >= 15 && half.recordings >= 30);
        assert!(3 * half.aperiodic >= half.recordings, "{}", half.aperiodic);
    }
}
