//! A socket with bytes in it that were made before, for tests and for the fuzz target `dbus`.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use async_channel::Receiver;
use async_trait::async_trait;
use futures_lite::future;
use zbus::connection::socket::ReadHalf;
pub use zbus::zvariant::Endian;
use zbus::zvariant::OwnedValue;
use zbus::zvariant::serialized::{Context as Encoding, Data};

use super::super::wire::children;
use super::{BoundedRead, MOST_UNTOLD, Skipped, Strangers};
use crate::fault::Fault;

pub(super) const USER: u32 = 1000;

/// Gives at most `piece` of its bytes at a time.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) bytes: VecDeque<u8>,
    piece: usize,
    /// Those whose users the bus tells, if it does.
    pub(super) strangers: Option<Strangers>,
    /// The largest buffer that was to be filled.
    pub(super) widest: usize,
}

#[async_trait]
impl ReadHalf for Prepared {
    async fn recvmsg(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        self.widest = buffer.len().max(self.widest);
        if let Some(strangers) = &self.strangers
            && !strangers.names.is_empty()
        {
            while let Ok(name) = strangers.names.try_recv() {
                strangers.know(name, USER);
            }
            // The socket has the next turn.
            future::yield_now().await;
        }
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
        strangers: None,
        widest: 0,
    };
    let (told, untold) = async_channel::bounded(MOST_UNTOLD);
    let (mut socket, strangers) = BoundedRead::new(inner, told, Arc::default());
    socket.inner.strangers = Some(strangers);
    (socket, untold)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub messages: Vec<usize>,
    /// The lengths of the calls that were skipped and are answered so.
    pub skipped: Vec<u64>,
}

/// Has the service's connection read these bytes, at most `piece` at a time, before the bus says of
/// any but ":1.7" whose it is.
pub fn heard_in(bytes: &[u8], piece: usize) -> Heard {
    let (mut socket, skipped) = socket(bytes.iter().copied().collect(), piece.max(1));
    socket.inner.strangers = None;
    socket.clients.enter(":1.7");
    socket.clients.know_user(":1.7", USER);
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

/// The arguments in the body of a call, whichever method is called: the option of Track, if the
/// body is one of its.
pub fn track_in_body(body: &[u8], endian: Endian) -> Option<Result<bool, Fault>> {
    let data = Data::new(body, Encoding::new_dbus(endian, 0));
    let _ = data.deserialize::<(u32, u64, u64, u64)>();
    let _ = data.deserialize::<(u32, u64)>();
    let _ = data.deserialize::<(u64, u64, i32)>();
    let _ = data.deserialize::<(String, String, OwnedValue)>();
    let track = data.deserialize::<(u32, HashMap<String, OwnedValue>)>();
    track.ok().map(|((_, options), _)| children(options))
}
