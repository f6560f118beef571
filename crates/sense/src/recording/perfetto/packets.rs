//! The packets of a Perfetto trace, one at a time: a trace is a message whose field 1 is each of
//! them.

use std::io::{self, Read};

use prost::Message;

use super::TracePacket;

/// No packet is longer, in bytes: Perfetto itself reads none that is (`ProtoRingBuffer`'s
/// `kMaxMsgSize`).
pub(super) const MESSAGE_BYTES: u64 = 64 << 20;

/// The key of the field 1 of bytes.
const PACKET: u8 = 0x0a;

/// What to do about a broken packet.
pub(super) const AGAIN: &str = ": copy or record it again";

#[derive(Debug)]
pub(super) enum Trouble {
    None,
    Cut,
    Unreadable(io::Error),
    /// The bytes there are no packet: why.
    Broken(String),
}

pub(super) struct Packets<R> {
    source: R,
    offset: u64,
    next: u64,
    packet: Vec<u8>,
}

impl<R: Read> Packets<R> {
    pub(super) const fn new(source: R) -> Self {
        Self {
            source,
            offset: 0,
            next: 0,
            packet: Vec::new(),
        }
    }

    /// Where the last packet begins, in bytes.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Trouble> {
        loop {
            self.offset = self.next;
            let Some(first) = self.byte()? else {
                return Ok(None);
            };
            let key = self.varint(first)?;
            let length = match key & 7 {
                _ if !(8..8 << 29).contains(&key) => return Err(broken("no packet begins here")),
                0 => {
                    let first = self.byte()?.ok_or(Trouble::Cut)?;
                    self.varint(first)?;
                    0
                }
                1 => 8,
                2 => {
                    let first = self.byte()?.ok_or(Trouble::Cut)?;
                    self.varint(first)?
                }
                5 => 4,
                _ => return Err(broken("no packet begins here")),
            };
            if length > MESSAGE_BYTES {
                return Err(Trouble::Broken(format!(
                    "this packet is longer than {MESSAGE_BYTES} bytes, which none is{AGAIN}"
                )));
            }
            self.packet.clear();
            let read = (&mut self.source)
                .take(length)
                .read_to_end(&mut self.packet);
            self.next += read.map_err(Trouble::Unreadable)? as u64;
            if (self.packet.len() as u64) < length {
                return Err(Trouble::Cut);
            }
            if key == u64::from(PACKET) {
                return Ok(Some(&self.packet));
            }
        }
    }

    fn byte(&mut self) -> Result<Option<u8>, Trouble> {
        let mut byte = [0];
        loop {
            match self.source.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => {
                    self.next += 1;
                    return Ok(Some(byte[0]));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Trouble::Unreadable(error)),
            }
        }
    }

    fn varint(&mut self, first: u8) -> Result<u64, Trouble> {
        let (mut byte, mut number) = (first, 0);
        for shift in (0..64).step_by(7) {
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            byte = self.byte()?.ok_or(Trouble::Cut)?;
        }
        Err(broken("no packet begins here"))
    }
}

fn broken(problem: &str) -> Trouble {
    Trouble::Broken(format!("{problem}{AGAIN}"))
}

/// A file that begins with `head` is a trace: a packet of whole fields, as far as it is there, with
/// a byte that no text has.
pub(in crate::recording) fn is_trace(head: &[u8]) -> bool {
    if head.first() != Some(&PACKET) || !head.iter().any(|&byte| byte < b'\t') {
        return false;
    }
    match Packets::new(head).next() {
        Ok(Some(packet)) => !packet.is_empty() && TracePacket::decode(packet).is_ok(),
        // Longer than the head.
        Err(Trouble::Cut) => true,
        _ => false,
    }
}
