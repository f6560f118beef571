//! Perfetto's traces: whole ones; and a bundle of ftrace events, as what most bytes of one are.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // A packet with the time 1, so that the file is one of Perfetto's, then anything.
    const FIRST: &[u8] = &[0x0a, 0x02, 0x40, 0x01];
    onbeat_fuzz::recording_is_answered(FIRST, bytes);
    let packet = field(1, &field(1, bytes));
    onbeat_fuzz::recording_is_answered(FIRST, &packet);
});

/// A field of bytes, less than 2 MiB of them, in protobuf's wire format.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len();
    let mut field = vec![number << 3 | 2];
    field.extend([length as u8 | 0x80, (length >> 7) as u8 | 0x80]);
    field.push((length >> 14) as u8 & 0x7f);
    field.extend(bytes);
    field
}
