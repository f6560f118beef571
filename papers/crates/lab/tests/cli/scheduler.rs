//! `onbeat-lab scheduler`, as far as it goes on any kernel; the rest is tested in the guest.

use crate::{lab, stderr, stdout};

#[test]
fn every_scheduler_is_listed_with_what_can_be_set() {
    let output = lab(["scheduler", "list"]);
    let listed = stdout(&output);
    for name in ["linux24: ", "best: ", "berate: "] {
        assert_eq!(listed.lines().filter(|l| l.starts_with(name)).count(), 1);
    }
    assert_eq!(listed.matches("--set mdn=1").count(), 3, "{listed}");
}

#[test]
fn a_scheduler_that_is_not_there_is_answered_with_those_that_are() {
    let output = lab(["scheduler", "start", "fifo"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("linux24, best, berate"));
}

#[test]
fn a_setting_that_is_not_there_is_answered_before_anything_is_loaded() {
    let output = lab(["scheduler", "start", "best", "--set", "mnd=0"]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(
        told.contains("no setting mnd") && told.contains("mdn"),
        "{told}"
    );
}
