//! A machine that mounts tracefs nowhere.

use crate::*;

#[test]
fn programs_are_heard_through_tracefs_where_it_is_mounted_nowhere() {
    let unmounted =
        "for place in /sys/kernel/tracing /sys/kernel/debug/tracing /sys/kernel/debug; do
            ! mountpoint -q $place || umount -l $place
        done
        [ ! -d /sys/kernel/tracing/instances ]
        exec \"$@\"";
    let record = Command::new("unshare")
        .args(["--mount", "sh", "-ec", unmounted, "sh"])
        .arg(env!("CARGO_BIN_EXE_onbeat"))
        .args(["record", "--tracer", "tracefs", "-o", "/dev/null"])
        .args(["--", "sh", "-c", "sleep 0.1; sleep 0.1; sleep 0.1"])
        .output()
        .unwrap();
    assert_eq!(record.status.code(), Some(0), "{}", stderr(&record));
    let said = stderr(&record);
    assert!(!said.contains(" 0 bursts"), "{said}");
}
