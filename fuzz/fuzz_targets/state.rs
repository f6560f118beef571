//! The state file that `onbeat restore` reads after a crash: a record that was being written when
//! the crash came changes nothing.
#![no_main]

use onbeat_act::restore::parse_state;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let whole = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1);
    assert_eq!(parse_state(bytes), parse_state(&bytes[..whole]));
});
