//! Programs of wanted names that tasks execute which are not tracked.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use onbeat_model::Sensor;
use onbeat_sense::bpf::{BpfOptions, BpfSensor};

use crate::role::{eventually, heard, sensors};

/// As in tracer.bpf.c.
const EXECUTIONS: u64 = 16;

fn run(program: &Path) -> u32 {
    let mut child = Command::new(program).spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    pid
}

fn told(sensor: &mut BpfSensor) -> Vec<u32> {
    heard(sensor);
    sensor.take_begun()
}

#[test]
fn an_executed_program_is_told_by_the_name_of_its_file_and_as_often_as_a_user_may() {
    let options = BpfOptions {
        tell_programs: true,
        endless: true,
        ..BpfOptions::default()
    };
    for (hooks, mut sensor) in sensors(options) {
        let folder = tempfile::tempdir().unwrap();
        let [named, other] = ["onbeat-named", "onbeat-other"].map(|name| {
            let path = folder.path().join(name);
            std::fs::copy("/bin/true", &path).unwrap();
            path
        });
        // By another name for the same file.
        let alias = folder.path().join("onbeat-alias");
        std::os::unix::fs::symlink(&named, &alias).unwrap();
        let names = BTreeSet::from(["onbeat-named".to_owned(), "onbeat-alias".to_owned()]);
        sensor.tell_programs(&names).unwrap();
        run(&other);
        let pids = [run(&named), run(&alias)];
        assert_eq!(told(&mut sensor), pids, "{hooks:?}");

        let began = Instant::now();
        for _ in 0..200 {
            run(&named);
        }
        let windows = began.elapsed().as_secs() + 2;
        let count = told(&mut sensor).len() as u64;
        assert!(
            (1..=EXECUTIONS * windows).contains(&count),
            "{hooks:?}: {count} in {windows} s"
        );
        // A later window is another one.
        eventually("one more", || {
            run(&named);
            !told(&mut sensor).is_empty()
        });
        sensor.tell_programs(&BTreeSet::new()).unwrap();
        run(&named);
        assert!(told(&mut sensor).is_empty(), "{hooks:?}");
    }
}
