//! What programs see of onbeat, and whom it leaves alone.

use crate::{Folder, can_run, scheduling};

#[test]
fn init_and_the_kernels_threads_are_not_attached_to_and_the_reason_is_told() {
    if !can_run("init_and_the_kernels_threads_are_not_attached_to_and_the_reason_is_told") {
        return;
    }
    for (pid, reason) in [("1", "is init"), ("2", "a thread of the kernel")] {
        let before = scheduling(pid.parse().unwrap());
        for args in [&["attach"][..], &["run", "--also"]] {
            let folder = Folder::new();
            let mut onbeat = folder.keep(args[0]);
            onbeat.args(&args[1..]).arg(pid);
            if args[0] == "run" {
                onbeat.args(["--", "true"]);
            }
            let output = onbeat.output().expect("onbeat was built by this test run");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && told.contains(reason), "{told}");
        }
        assert_eq!(scheduling(pid.parse().unwrap()), before);
    }
}
