use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use onbeat_model::{Event, Follow, Sensor};

use crate::contract::tracers;
use crate::role::heard_to_the_end;

fn uptime_s() -> String {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    uptime.split('.').next().unwrap().to_owned()
}

#[test]
fn a_program_with_a_line_break_in_its_path_tells_no_tracer_of_the_first_process() {
    for mut tracer in tracers() {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", "read go; exec ./*"])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = shell.id();
        tracer.track(pid, Follow::Children).unwrap();
        let started = "task_newtask: pid=1 comm=a clone_flags=10000 oom_score_adj=0";
        let forged = format!("x\n a-{pid} [000] ..... {}.000001: {started}\n", uptime_s());
        symlink("/bin/true", folder.path().join(forged)).unwrap();
        shell.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(shell.wait().unwrap().success());
        let kind = tracer.kind();
        let events = heard_to_the_end(&mut tracer);
        let tells_of_first =
            |event: &Event| matches!(event, Event::Tracked { task, .. } if task.id.tid == 1);
        assert!(!events.iter().any(tells_of_first), "{kind}: {events:?}");
    }
}
