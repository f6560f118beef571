//! The frames of NRI's socket.
//!
//! Two connections of ttrpc share it: on the first one the runtime calls the plugin, on the second
//! one the plugin calls the runtime. A frame has the connection's number and the payload's length,
//! each of 4 bytes, the highest first, then the payload. A message may come in several frames.

use crate::ttrpc::{self, TtrpcMessage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    Plugin,
    Runtime,
}

impl Connection {
    const fn number(self) -> u32 {
        match self {
            Self::Plugin => 1,
            Self::Runtime => 2,
        }
    }
}

const HEADER: usize = 8;

/// Bytes that cannot be NRI's. The connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    #[error("a frame of {length} bytes, where at most {most} are allowed", most = ttrpc::LONGEST)]
    LongFrame { length: u32 },
    #[error("a message of {length} bytes, where at most {most} are allowed", most = ttrpc::LONGEST_PAYLOAD)]
    LongMessage { length: u32 },
}

#[derive(Debug, Default)]
pub struct Incoming {
    frames: Vec<u8>,
    plugin: Vec<u8>,
    runtime: Vec<u8>,
}

impl Incoming {
    /// Takes in bytes in the order in which they came, and returns the messages that are complete
    /// with them. A frame for an unknown connection is skipped.
    /// Fails if a frame or a message is too long. At most one of each is held in memory.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<(Connection, TtrpcMessage)>, ProtocolError> {
        self.frames.extend_from_slice(bytes);
        let mut messages = Vec::new();
        let mut rest = self.frames.as_slice();
        while let Some((header, after)) = rest.split_at_checked(HEADER) {
            let (number, length) = (word(header, 0), word(header, 4));
            if length as usize > ttrpc::LONGEST {
                return Err(ProtocolError::LongFrame { length });
            }
            let Some((payload, after)) = after.split_at_checked(length as usize) else {
                break;
            };
            rest = after;
            let (connection, stream) = match number {
                1 => (Connection::Plugin, &mut self.plugin),
                2 => (Connection::Runtime, &mut self.runtime),
                _ => continue,
            };
            stream.extend_from_slice(payload);
            while let Some(message) = TtrpcMessage::take(stream)? {
                messages.push((connection, message));
            }
        }
        let taken = self.frames.len() - rest.len();
        self.frames.drain(..taken);
        Ok(messages)
    }
}

/// The message in one frame. Runtimes read a frame at once, into 4096 bytes; none of the plugin's
/// messages is that long.
pub fn frame(connection: Connection, message: &TtrpcMessage) -> Vec<u8> {
    let message = message.to_bytes();
    let mut frame = connection.number().to_be_bytes().to_vec();
    frame.extend((message.len() as u32).to_be_bytes());
    frame.extend(message);
    frame
}

pub(crate) fn word(bytes: &[u8], offset: usize) -> u32 {
    let four = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    four.map_or(0, |four| u32::from_be_bytes(*four))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(stream: u32, payload: &[u8]) -> TtrpcMessage {
        TtrpcMessage {
            stream,
            kind: ttrpc::REQUEST,
            payload: payload.to_vec(),
        }
    }

    proptest! {
        #[test]
        fn messages_come_whole_however_they_are_cut(
            payloads in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..50)), 0..8),
            frame_of in 1_usize..40,
            read_of in 1_usize..40,
        ) {
            let mut wire = Vec::new();
            let mut sent = Vec::new();
            for (index, (is_runtime, payload)) in payloads.iter().enumerate() {
                let connection = if *is_runtime { Connection::Runtime } else { Connection::Plugin };
                let message = message(index as u32, payload);
                for part in message.to_bytes().chunks(frame_of) {
                    wire.extend(connection.number().to_be_bytes());
                    wire.extend((part.len() as u32).to_be_bytes());
                    wire.extend(part);
                }
                sent.push((connection, message));
            }
            let mut incoming = Incoming::default();
            let mut came = Vec::new();
            for part in wire.chunks(read_of) {
                came.extend(incoming.feed(part).unwrap());
            }
            prop_assert_eq!(came, sent);
        }

        #[test]
        fn any_bytes_give_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Incoming::default().feed(&bytes);
        }
    }

    #[test]
    fn a_frame_or_a_message_that_is_too_long_is_refused_before_it_comes() {
        let header = |length: u32| [1_u32.to_be_bytes(), length.to_be_bytes()].concat();
        let most = ttrpc::LONGEST as u32;
        assert_eq!(Incoming::default().feed(&header(most)), Ok(Vec::new()));
        let error = Incoming::default().feed(&header(most + 1)).unwrap_err();
        assert_eq!(error, ProtocolError::LongFrame { length: most + 1 });
        let length = ttrpc::LONGEST_PAYLOAD as u32 + 1;
        let mut bytes = header(10);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 1, 0]);
        let error = Incoming::default().feed(&bytes).unwrap_err();
        assert_eq!(error, ProtocolError::LongMessage { length });
    }

    #[test]
    fn a_frame_of_an_unknown_connection_is_skipped() {
        let mut wire = frame(Connection::Plugin, &message(1, b"one"));
        let mut other = wire.clone();
        other[3] = 9;
        wire.extend(other);
        wire.extend(frame(Connection::Runtime, &message(3, b"two")));
        let came = Incoming::default().feed(&wire).unwrap();
        let expected = [
            (Connection::Plugin, message(1, b"one")),
            (Connection::Runtime, message(3, b"two")),
        ];
        assert_eq!(came, expected);
    }
}
