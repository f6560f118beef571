//! A socket with bytes in it that were made before, for tests and for the fuzz target `dbus`.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use async_channel::Receiver;
use async_trait::async_trait;
use zbus::connection::socket::ReadHalf;

use super::super::clients::Clients;
use super::{BoundedRead, MOST_UNTOLD, Skipped};

/// Gives at most `piece` of its bytes at a time.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) bytes: VecDeque<u8>,
    piece: usize,
    /// The largest buffer that was to be filled.
    pub(super) widest: usize,
}

#[async_trait]
impl ReadHalf for Prepared {
    async fn recvmsg(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        self.widest = buffer.len().max(self.widest);
        let count = buffer.len().min(self.bytes.len()).min(self.piece);
        for (place, byte) in buffer.iter_mut().zip(self.bytes.drain(..count)) {
            *place = byte;
        }
        Ok((count, Vec::new()))
    }
}

/// The service's end of a connection on which these bytes come.
pub(super) fn socket(
    bytes: VecDeque<u8>,
    piece: usize,
) -> (BoundedRead<Prepared>, Receiver<Skipped>) {
    let inner = Prepared {
        bytes,
        piece,
        widest: 0,
    };
    let (told, untold) = async_channel::bounded(MOST_UNTOLD);
    let clients = Arc::new(Clients::default());
    (BoundedRead::new(inner, told, clients), untold)
}

/// The result of a connection's reading of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The lengths of the messages that were read.
    pub messages: Vec<usize>,
    /// The lengths of the calls that were skipped and are answered so.
    pub skipped: Vec<u64>,
}

/// Has the service's connection read these bytes, at most `piece` at a time.
#[must_use]
pub fn heard_in(bytes: &[u8], piece: usize) -> Heard {
    let (mut socket, skipped) = socket(bytes.iter().copied().collect(), piece.max(1));
    let mut heard = Heard::default();
    let mut already = Vec::new();
    while let Ok(message) = zbus::block_on(socket.receive_message(1, &mut already, &mut Vec::new()))
    {
        heard.messages.push(message.data().len());
        while let Ok(Skipped { bytes, .. }) = skipped.try_recv() {
            heard.skipped.push(bytes);
        }
    }
    heard
}
