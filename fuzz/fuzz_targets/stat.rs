//! `/proc/TID/stat`, in which a program chooses its name: whatever the name, the other fields are
//! read as they are.
#![no_main]

use onbeat_model::Stat;

/// The fields after the name.
const REST: &[u8] = b" S 1 42 42 0 -1 4194304 97 0 0 0 0 0 0 0 20 0 1 0 26743 231 0 9 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 6 0";

libfuzzer_sys::fuzz_target!(|name: &[u8]| {
    // Any bytes are a line, or none.
    let _ = Stat::parse(name);
    let line = [b"42 (", name, b")", REST].concat();
    let stat = Stat::parse(&line).expect("a line of the kernel's");
    assert_eq!(
        (stat.started_ticks, stat.policy, stat.state),
        (26743, 6, 'S')
    );
});
