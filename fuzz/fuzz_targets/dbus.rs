//! A client's messages on the bus: any bytes are messages, calls that are skipped, or the end of
//! the connection, and the body of a call is its arguments or none.
#![no_main]

use onbeat_daemon::bus::{Endian, heard_in, track_in_body};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else {
        return;
    };
    let heard = heard_in(rest, usize::from(first));
    // In other pieces it is the same.
    assert_eq!(heard, heard_in(rest, 4096));
    let read = heard.messages.iter().sum::<usize>() as u64;
    let skipped = heard.skipped.iter().sum::<u64>();
    assert!(read + skipped <= rest.len() as u64, "{heard:?}");
    for endian in [Endian::Little, Endian::Big] {
        if let Some(Err(fault)) = track_in_body(rest, endian) {
            assert!(fault.to_string().contains("option"), "{fault}");
        }
    }
});
