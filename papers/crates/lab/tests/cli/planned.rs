//! `onbeat-lab plan`: the lines that it prints for others do what they say.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Mortal, eventually, until};
use crate::skip::skip;
use crate::{DEADLINE, lab, policy, stderr, stdout};

/// A recording of 100 jobs of 2 ms, one each 50 ms, of the thread `tid`.
fn recording(folder: &Path, tid: u32) -> String {
    let mut text = "{\"format\":\"onbeat-recording\",\"version\":1,\"command\":[\"sh\",\"-c\",\"chrt -p $$; true | \
                    true; exit 7\"]}\n"
        .to_owned();
    let task = format!("\"tid\":{tid},\"started_ticks\":1");
    writeln!(
        text,
        "{{\"event\":\"tracked\",\"at_ns\":1,{task},\"pid\":{tid},\"comm\":\"player\"}}"
    )
    .unwrap();
    for job in 1..=100_u64 {
        let (woke, blocked) = (job * 50_000_000, job * 50_000_000 + 2_000_000);
        writeln!(
            text,
            "{{\"event\":\"burst\",{task},\"woke_ns\":{woke},\"first_ran_ns\":{woke},\"blocked_ns\":{blocked},\
             \"executed_ns\":2000000,\"preempted\":0,\"waker\":0,\"exhausted\":false}}"
        )
        .unwrap();
    }
    let file = folder.join("player.onbeat");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn the_lines_for_chrt_reserve_what_was_planned() {
    // SAFETY: geteuid takes nothing and always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        return skip("it needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let sleeper = Mortal::spawn(Command::new("sleep").arg("1000").stdin(Stdio::null()));
    let file = recording(folder.path(), sleeper.id());
    let output = lab(["plan", &file]);
    let plan = stdout(&output);
    let lines: Vec<&str> = plan.lines().filter(|l| l.starts_with("chrt ")).collect();
    let [thread, program] = lines[..] else {
        panic!(
            "one for the thread, one for the program: {plan}{}",
            stderr(&output)
        );
    };

    // There may be no room while another test's reservations settle.
    until("the reservation by chrt", || {
        let done = Command::new("sh").args(["-c", thread]).output().unwrap();
        done.status.success()
    });
    assert_eq!(policy(sleeper.id()), DEADLINE, "{thread}");
    let told = Command::new("chrt")
        .args(["-p", &sleeper.id().to_string()])
        .output()
        .unwrap();
    let told = stdout(&told);
    assert!(told.contains("parameters: 2000000/"), "{told}");
    let period: u64 = told.trim().rsplit('/').next().unwrap().parse().unwrap();
    assert!(period.abs_diff(50_000_000) < 50_000, "{told}");

    // The program starts others, which the kernel allows only who resets what it has on fork.
    let output = eventually("the program under chrt", || {
        let output = Command::new("sh").args(["-c", program]).output().unwrap();
        (output.status.code() == Some(7)).then_some(output)
    });
    assert!(
        stdout(&output).contains("SCHED_DEADLINE"),
        "{program}: {}",
        stdout(&output)
    );
}
