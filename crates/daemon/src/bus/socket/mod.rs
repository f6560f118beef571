//! The socket to the bus: a message that is too large is skipped, and never held in memory; so is a
//! call that wants no answer, unless its user may send one more.
//!
//! A system bus passes on messages of 32 MiB (dbus-daemon) and more, and what they are made into
//! takes a multiple of that: one call, of any sender, could take all memory that the service may
//! have. So a message's length is looked at before anything is made of it. The caller is told.
//!
//! The bus lets a connection wait for a limited number of answers (dbus-daemon: 128). But it passes
//! on any number of calls that want none, and all others' calls wait behind them.

mod prepared;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::Arc;

use anyhow::Context;
use async_channel::{Receiver, Sender};
use async_io::Async;
use async_trait::async_trait;
use futures_lite::future;
use onbeat_kernel::clock;
use zbus::address::Transport;
use zbus::address::transport::UnixSocket;
use zbus::connection::socket::{BoxedSplit, ReadHalf, Socket, Split};
use zbus::message::{Flags, Message, Type};
use zbus::zvariant::Endian;
use zbus::zvariant::serialized::{Context as Encoding, Data};

use super::clients::Clients;
use crate::call_limit::CallLimit;

pub use prepared::{Heard, heard_in};

/// The longest call or signal that is read, in bytes. The longest call that makes sense, `Look`
/// with the numbers of 256 threads, has some 1,300; three times that.
const MOST_BYTES: u64 = 4096;
/// How much is read at a time of messages that are heard, in bytes. A message that is heard has
/// `MOST_BYTES` at most, and several wait in a busy time.
const READ: usize = 16 << 10;
/// How much is read at a time of what is skipped, in bytes. The longest message of D-Bus has 128
/// MiB, and is skipped with 2,048 reads.
const PIECE: usize = 64 << 10;
/// After this number of calls in a row that are not heard, others have their turn. A third of what
/// a user may send at once (`BURST`).
const UNHEARD_IN_A_ROW: u32 = 64;
/// The most calls without an answer that a connection may send before its user is known. A client
/// whose first call timed out takes it back by one.
const FIRST_CALLS: u32 = 8;
/// The most connections without a known user that are counted. Beyond, the count begins anew. A bus
/// has 2,048 connections at most by default, those of one user 256.
const MOST_UNKNOWN: usize = 1024;
/// The number of callers that wait to be told that their call was too long. Further ones are not
/// told. The answer is an error, of which a program that sends one too many learns from its first.
const MOST_UNTOLD: usize = 64;

/// The bytes with which each message begins: they tell how long it is.
const BEGINNING: usize = 16;

/// A call that was too long: its head alone.
#[derive(Debug)]
pub(super) struct TooLong {
    call: Message,
    bytes: u64,
}

/// Connects to the system bus, where these are. The second channel has the calls that are too long,
/// whose senders are to be told.
pub(super) fn connect(clients: &Arc<Clients>) -> anyhow::Result<(BoxedSplit, Receiver<TooLong>)> {
    let address = zbus::Address::system()?;
    let Transport::Unix(unix) = address.transport() else {
        anyhow::bail!("{address} is no address of a bus on this machine: name one with unix:path=");
    };
    let stream = match unix.path() {
        UnixSocket::File(path) => UnixStream::connect(path),
        UnixSocket::Abstract(name) => SocketAddr::from_abstract_name(name.as_bytes())
            .and_then(|name| UnixStream::connect_addr(&name)),
        _ => anyhow::bail!("{address} names no socket: name one with unix:path="),
    };
    let (read, write) = Async::new(stream?)?.split().take();
    let (told, untold) = async_channel::bounded(MOST_UNTOLD);
    let read = BoundedRead::new(read, told, Arc::clone(clients));
    Ok((Split::new(Box::new(read), Box::new(write)), untold))
}

/// Tells those whose calls were too long, from now on, on a thread of its own.
pub(super) fn answer(
    connection: &zbus::blocking::Connection,
    too_long: Receiver<TooLong>,
) -> anyhow::Result<()> {
    let connection = connection.clone();
    let answer = move || {
        while let Ok(TooLong { call, bytes }) = too_long.recv_blocking() {
            let text = format!("a call of {bytes} bytes is too long: send at most {MOST_BYTES}");
            let error = Message::error(&call.header(), "org.onbeat.Error.Invalid");
            let error = error.and_then(|error| error.build(&text));
            // A caller that is gone need not be told.
            let _ = error.and_then(|error| connection.send(&error));
        }
    };
    std::thread::Builder::new()
        .name("bus-too-long".to_owned())
        .spawn(answer)
        .context("cannot start a thread")?;
    Ok(())
}

/// A connection that skips what is too long. It takes no descriptors: the bus keeps messages with
/// some back.
#[derive(Debug)]
struct BoundedRead<R> {
    inner: R,
    told: Sender<TooLong>,
    clients: Arc<Clients>,
    /// The calls that want no answer.
    unanswered: CallLimit,
    /// The same of connections whose user is not known yet, by connection.
    first: HashMap<String, u32>,
}

/// The fields at the beginning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Beginning {
    endian: Endian,
    kind: u8,
    /// The length of the head, up to where the body begins.
    head: u64,
    body: u64,
}

/// The kinds of messages that any client may send, by number: calls and signals. An answer comes
/// from the peer that the service asked.
const CALL: u8 = 1;
const SIGNAL: u8 = 4;

impl Beginning {
    /// None if it is no beginning of a message.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (&endian, &kind) = (bytes.first()?, bytes.get(1)?);
        let word = |at: usize| -> Option<[u8; 4]> { bytes.get(at..at + 4)?.try_into().ok() };
        let (body, fields) = (word(4)?, word(12)?);
        let (endian, body, fields) = match endian {
            b'l' => (
                Endian::Little,
                u32::from_le_bytes(body),
                u32::from_le_bytes(fields),
            ),
            b'B' => (
                Endian::Big,
                u32::from_be_bytes(body),
                u32::from_be_bytes(fields),
            ),
            _ => return None,
        };
        Some(Self {
            endian,
            kind,
            // The body begins at a whole multiple of eight bytes.
            head: (BEGINNING as u64 + u64::from(fields)).next_multiple_of(8),
            body: u64::from(body),
        })
    }

    const fn bytes(&self) -> u64 {
        self.head + self.body
    }

    const fn is_too_long(&self) -> bool {
        matches!(self.kind, CALL | SIGNAL) && self.bytes() > MOST_BYTES
    }
}

impl<R: ReadHalf> BoundedRead<R> {
    fn new(inner: R, told: Sender<TooLong>, clients: Arc<Clients>) -> Self {
        Self {
            inner,
            told,
            clients,
            unanswered: CallLimit::default(),
            first: HashMap::new(),
        }
    }

    /// Whether the message is heard. A call that wants no answer is heard as often as its user may
    /// call. Before the user is known, the connection's first ones are.
    fn hears(&mut self, message: &Message) -> bool {
        let head = message.primary_header();
        if head.msg_type() != Type::MethodCall || !head.flags().contains(Flags::NoReplyExpected) {
            return true;
        }
        let header = message.header();
        let Some(sender) = header.sender() else {
            return false;
        };
        match self.clients.account(sender.as_str()) {
            Some(account) => self.unanswered.admits(account.uid, clock::now()),
            None => self.is_among_first(sender.as_str()),
        }
    }

    fn is_among_first(&mut self, connection: &str) -> bool {
        if self.first.len() >= MOST_UNKNOWN {
            self.first.clear();
        }
        let calls = self.first.entry(connection.to_owned()).or_default();
        *calls = calls.saturating_add(1);
        *calls <= FIRST_CALLS
    }

    /// Reads what has come, at least something.
    async fn read(&mut self, bytes: &mut Vec<u8>, fds: &mut Vec<OwnedFd>) -> io::Result<()> {
        let place = bytes.len();
        bytes.resize(place + READ, 0);
        let rest = bytes.get_mut(place..).unwrap_or_default();
        let read = self.inner.recvmsg(rest).await;
        bytes.truncate(place + read.as_ref().map_or(0, |(read, _)| *read));
        let (read, with) = read?;
        fds.extend(with);
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Reads until there are `count` bytes.
    async fn fill(
        &mut self,
        bytes: &mut Vec<u8>,
        count: usize,
        fds: &mut Vec<OwnedFd>,
    ) -> io::Result<()> {
        let mut place = bytes.len();
        bytes.resize(count.max(place), 0);
        while let Some(rest) = bytes.get_mut(place..).filter(|rest| !rest.is_empty()) {
            let (read, with) = self.inner.recvmsg(rest).await?;
            fds.extend(with);
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            place += read;
        }
        Ok(())
    }

    /// Reads past the message that begins with `bytes`, and has its caller told.
    async fn skip(&mut self, mut bytes: Vec<u8>, message: Beginning) -> io::Result<()> {
        let mut fds = Vec::new();
        let mut rest = message.bytes() - bytes.len() as u64;
        if message.kind == CALL && message.head <= MOST_BYTES {
            let head = usize::try_from(message.head).unwrap_or(BEGINNING);
            rest -= head.saturating_sub(bytes.len()) as u64;
            self.fill(&mut bytes, head, &mut fds).await?;
            if let Some(call) = without_body(bytes, message.endian) {
                let bytes = message.bytes();
                // Where too many wait already, this one is not told.
                let _ = self.told.try_send(TooLong { call, bytes });
            }
        }
        let mut piece = vec![0; PIECE];
        while rest > 0 {
            let wanted = usize::try_from(rest).unwrap_or(PIECE).min(PIECE);
            let (read, _) = self.inner.recvmsg(&mut piece[..wanted]).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            rest -= read as u64;
            // The other calls are answered meanwhile.
            future::yield_now().await;
        }
        Ok(())
    }
}

/// The call with this head, and nothing in it; none if it wants no answer.
fn without_body(mut head: Vec<u8>, endian: Endian) -> Option<Message> {
    head.get_mut(4..8)?.fill(0);
    let data = Data::new(head, Encoding::new_dbus(endian, 0));
    // SAFETY: the bus has looked at the encoding of what it passes on, as for every message that is
    // read from it.
    let call = unsafe { Message::from_bytes(data) }.ok()?;
    let is_answered = !call
        .primary_header()
        .flags()
        .contains(Flags::NoReplyExpected);
    is_answered.then_some(call)
}

#[async_trait]
impl<R: ReadHalf> ReadHalf for BoundedRead<R> {
    async fn receive_message(
        &mut self,
        number: u64,
        already: &mut Vec<u8>,
        fds: &mut Vec<OwnedFd>,
    ) -> zbus::Result<Message> {
        let mut unheard = 0;
        loop {
            while already.len() < BEGINNING {
                self.read(already, fds).await?;
            }
            match Beginning::read(already) {
                Some(message) if message.is_too_long() => {
                    let known = message.bytes().min(already.len() as u64);
                    let known = usize::try_from(known).unwrap_or(BEGINNING);
                    self.skip(already.drain(..known).collect(), message).await?;
                }
                _ => {
                    let message = self.inner.receive_message(number, already, fds).await?;
                    if self.hears(&message) {
                        return Ok(message);
                    }
                    unheard += 1;
                    if unheard % UNHEARD_IN_A_ROW == 0 {
                        future::yield_now().await;
                    }
                }
            }
        }
    }

    async fn recvmsg(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        self.inner.recvmsg(buffer).await
    }

    fn can_pass_unix_fd(&self) -> bool {
        false
    }

    async fn peer_credentials(&mut self) -> io::Result<zbus::fdo::ConnectionCredentials> {
        self.inner.peer_credentials().await
    }
}

#[cfg(test)]
mod tests;
