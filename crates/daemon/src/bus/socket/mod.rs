//! The socket to the bus: a message that is too large is skipped, and never held in memory; so is a
//! call, to whatever object and method, unless its user may send one more.
//!
//! A system bus passes on messages of 32 MiB (dbus-daemon) and more, and what they are made into
//! takes a multiple of that: one call, of any sender, could take all memory that the service may
//! have. So a message's length is looked at before anything is made of it. The caller is told.
//!
//! The bus passes on any number of calls, and all others' wait behind them. Some are the library's
//! to answer (`Introspect`, `Ping`), so they are counted here, where all come by; and before the
//! library reads them, which takes twenty times as long. A connection's first calls wait here until
//! the bus has said whose it is: else a new one for each call would pass the count.

#[cfg(any(test, fuzzing))]
#[path = "tests/prepared.rs"]
pub(super) mod prepared;

use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_channel::{Receiver, Sender};
use async_io::{Async, Timer};
use async_trait::async_trait;
use futures_lite::future;
use onbeat_kernel::clock;
use zbus::DBusError as _;
use zbus::address::Transport;
use zbus::address::transport::UnixSocket;
use zbus::connection::socket::{BoxedSplit, ReadHalf, Socket, Split};
use zbus::message::Message;
use zbus::names::BusName;
use zbus::zvariant::Endian;
use zbus::zvariant::serialized::{Context as Encoding, Data};

use super::clients::{Admission, Clients};
use crate::fault::Fault;

/// The longest call or signal that is read, in bytes. Those that make sense have some hundreds.
const MOST_BYTES: u64 = 4096;
/// The same of an answer. A list of all names on a bus has some 100 KiB.
const MOST_BYTES_OF_ANSWER: u64 = 1 << 20;
/// How much is read at a time of messages that are heard, in bytes. A message that is heard has
/// `MOST_BYTES` at most, and several wait in a busy time.
const READ: usize = 16 << 10;
/// How much is read at a time of what is skipped, in bytes. The longest message of D-Bus has 128
/// MiB, and is skipped with 2,048 reads.
const PIECE: usize = 64 << 10;
/// After this number of messages in a row that are not heard, others have their turn. A third of
/// what a user may send at once (`BURST`).
const UNHEARD_IN_A_ROW: u32 = 64;
/// After this number in a row, the socket is read again only after a pause once it is empty: most
/// of what a flood costs is to be woken for each message.
const FLOOD: u32 = 16;
const PAUSE: Duration = Duration::from_millis(2);
/// The number of callers that wait to be told why their call was skipped. Further ones are not
/// told: a program that sends too many learns it from the first answer.
const MOST_UNTOLD: usize = 64;
/// The time between two of these answers. Each costs as much as a call that is heard.
const BETWEEN_ANSWERS: Duration = Duration::from_millis(5);
/// The time between two questions to the bus whose a connection is. One user's connections are 256
/// at a time on a system bus, so that others wait for a second.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(4);
/// The user, to the count, of connections of which the bus does not say it: the system's number for
/// none.
const NOBODY: u32 = u32::MAX;

/// The bytes with which each message begins: they tell how long it is.
const BEGINNING: usize = 16;

/// A call that was skipped: its head alone if it was too long, else it was one too many.
#[derive(Debug)]
pub(super) struct Skipped {
    call: Message,
    bytes: u64,
}

/// The connections whose users are to be asked for.
#[derive(Debug)]
pub(super) struct Strangers {
    clients: Arc<Clients>,
    names: Receiver<String>,
    known: Sender<String>,
}

impl Strangers {
    fn know(&self, name: String, uid: u32) {
        self.clients.know_user(&name, uid);
        let _ = self.known.try_send(name);
    }
}

/// Connects to the system bus, where these are. The channel has the calls that are skipped, whose
/// senders are to be told.
pub(super) fn connect(
    clients: &Arc<Clients>,
) -> anyhow::Result<(BoxedSplit, Receiver<Skipped>, Strangers)> {
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
    let (read, strangers) = BoundedRead::new(read, told, Arc::clone(clients));
    let socket: BoxedSplit = Split::new(Box::new(read), Box::new(write));
    Ok((socket, untold, strangers))
}

/// Asks the bus whose the connections are that call, from now on, on a thread of its own.
pub(super) fn ask(
    connection: &zbus::blocking::Connection,
    strangers: Strangers,
) -> anyhow::Result<()> {
    let bus = zbus::blocking::fdo::DBusProxy::new(connection)?;
    let ask = move || {
        while let Ok(name) = strangers.names.recv_blocking() {
            // One that has left need not be known.
            if !strangers.clients.wait(&name) {
                continue;
            }
            let user =
                BusName::try_from(name.as_str()).map(|name| bus.get_connection_unix_user(name));
            let uid = user.ok().and_then(Result::ok).unwrap_or(NOBODY);
            strangers.know(name, uid);
            std::thread::sleep(BETWEEN_QUESTIONS);
        }
    };
    std::thread::Builder::new()
        .name("bus-users".to_owned())
        .spawn(ask)
        .context("cannot start a thread")?;
    Ok(())
}

/// Tells those whose calls were skipped, from now on, on a thread of its own.
pub(super) fn answer(
    connection: &zbus::blocking::Connection,
    skipped: Receiver<Skipped>,
) -> anyhow::Result<()> {
    let connection = connection.clone();
    let answer = move || {
        while let Ok(Skipped { call, bytes }) = skipped.recv_blocking() {
            let why = if bytes > MOST_BYTES {
                Fault::Invalid(format!(
                    "a call of {bytes} bytes is too long: send at most {MOST_BYTES}"
                ))
            } else {
                Fault::TooManyCalls(
                    "more than a hundred calls a second: ask again later".to_owned(),
                )
            };
            let error = why.create_reply(&call.header());
            // A caller that is gone need not be told.
            let _ = error.and_then(|error| connection.send(&error));
            std::thread::sleep(BETWEEN_ANSWERS);
        }
    };
    std::thread::Builder::new()
        .name("bus-skipped".to_owned())
        .spawn(answer)
        .context("cannot start a thread")?;
    Ok(())
}

/// A connection that skips what is too long. It takes no descriptors: the bus keeps messages with
/// some back.
#[derive(Debug)]
struct BoundedRead<R> {
    inner: R,
    told: Sender<Skipped>,
    clients: Arc<Clients>,
    strangers: Sender<String>,
    /// Those that are none any more.
    known: Receiver<String>,
    is_empty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Beginning {
    endian: Endian,
    kind: u8,
    wants_answer: bool,
    head: u64,
    body: u64,
}

/// Kinds of messages, by number. An answer comes from the peer that the service asked.
const CALL: u8 = 1;
const ANSWER: u8 = 2;
const ERROR: u8 = 3;
const SIGNAL: u8 = 4;
const NO_REPLY_EXPECTED: u8 = 1;
/// The fields of the head that have the name of what is called or told, and the sender's.
const MEMBER: u8 = 3;
const SENDER: u8 = 7;

impl Beginning {
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[endian, kind, flags, ..] = bytes else {
            return None;
        };
        let endian = match endian {
            b'l' => Endian::Little,
            b'B' => Endian::Big,
            _ => return None,
        };
        let fields = word(bytes, 12, endian)?;
        Some(Self {
            endian,
            kind,
            wants_answer: flags & NO_REPLY_EXPECTED == 0,
            // The body begins at a whole multiple of eight bytes.
            head: (BEGINNING as u64 + u64::from(fields)).next_multiple_of(8),
            body: word(bytes, 4, endian)?.into(),
        })
    }

    /// The text in the field `wanted` of the message that begins with `head`; none if it has no
    /// such field. The fields are structures of a number and a value with its type.
    fn field<'a>(&self, head: &'a [u8], wanted: u8) -> Option<&'a str> {
        let length = |at| Some(word(head, at, self.endian)? as usize);
        let mut at = BEGINNING;
        loop {
            let &[number, 1, kind, 0, short, ..] = head.get(at..)? else {
                return None;
            };
            let (text, bytes) = match kind {
                b's' | b'o' => (at + 8, length(at + 4)?),
                b'g' => (at + 5, short.into()),
                b'u' => (at + 7, 0),
                _ => return None,
            };
            if number == wanted {
                return std::str::from_utf8(head.get(text..text + bytes)?).ok();
            }
            // Behind a text is a zero.
            at = (text + bytes + 1).next_multiple_of(8);
        }
    }

    const fn bytes(&self) -> u64 {
        self.head + self.body
    }

    const fn is_too_long(&self) -> bool {
        let most = match self.kind {
            ANSWER | ERROR => MOST_BYTES_OF_ANSWER,
            _ => MOST_BYTES,
        };
        self.bytes() > most
    }
}

impl<R: ReadHalf> BoundedRead<R> {
    fn new(inner: R, told: Sender<Skipped>, clients: Arc<Clients>) -> (Self, Strangers) {
        let (strangers, names) = async_channel::unbounded();
        let (now_known, known) = async_channel::unbounded();
        let read = Self {
            inner,
            told,
            clients: Arc::clone(&clients),
            strangers,
            known,
            is_empty: false,
        };
        let strangers = Strangers {
            clients,
            names,
            known: now_known,
        };
        (read, strangers)
    }

    fn hears(&self, message: Beginning, head: &[u8], call: &[u8]) -> bool {
        let Some(sender) = message.field(head, SENDER) else {
            return false;
        };
        let admission = self.clients.admits(sender, call, clock::now());
        match admission {
            Admission::Heard => {}
            Admission::Waits => {
                let _ = self.strangers.try_send(sender.to_owned());
            }
            Admission::TooMany => self.skipped(message, head),
        }
        admission == Admission::Heard
    }

    /// Whether the signal with this `head` and `body` is the bus's that a connection is gone for
    /// which nothing was done. The library would take longer to read it than it is worth.
    fn ends_stranger(&self, message: Beginning, head: &[u8], body: &[u8]) -> bool {
        let name = || {
            let length = word(body, 0, message.endian)? as usize;
            std::str::from_utf8(body.get(4..)?.get(..length)?).ok()
        };
        message.field(head, SENDER) == Some("org.freedesktop.DBus")
            && message.field(head, MEMBER) == Some("NameOwnerChanged")
            && name()
                .is_some_and(|name| name.starts_with(':') && self.clients.forget_unserved(name))
    }

    /// Has the caller told that the call is skipped, if it wants an answer, and not too many wait.
    fn skipped(&self, message: Beginning, head: &[u8]) {
        if message.wants_answer
            && !self.told.is_full()
            && let Some(call) = without_body(head.to_vec(), message.endian)
        {
            let bytes = message.bytes();
            let _ = self.told.try_send(Skipped { call, bytes });
        }
    }

    /// Reads more behind the `bytes`, which begin with a message; or, if a connection's user is
    /// known by now, puts the calls before them that waited for it.
    async fn read(&mut self, bytes: &mut Vec<u8>, fds: &mut Vec<OwnedFd>) -> io::Result<()> {
        let place = bytes.len();
        bytes.resize(place + READ, 0);
        let rest = bytes.get_mut(place..).unwrap_or_default();
        let known = async {
            match self.known.recv().await {
                Ok(name) => Err(name),
                Err(_) => future::pending().await,
            }
        };
        let inner = &mut self.inner;
        let read = match future::or(known, async { Ok(inner.recvmsg(rest).await) }).await {
            Ok(read) => read,
            Err(name) => {
                bytes.truncate(place);
                bytes.splice(0..0, self.clients.take_waiting(&name));
                return Ok(());
            }
        };
        bytes.truncate(place + read.as_ref().map_or(0, |(read, _)| *read));
        let (read, with) = read?;
        self.is_empty = read < READ;
        fds.extend(with);
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

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
            self.skipped(message, &bytes);
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

fn word(bytes: &[u8], at: usize, endian: Endian) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(match endian {
        Endian::Little => u32::from_le_bytes(word),
        Endian::Big => u32::from_be_bytes(word),
    })
}

fn without_body(mut head: Vec<u8>, endian: Endian) -> Option<Message> {
    head.get_mut(4..8)?.fill(0);
    let data = Data::new(head, Encoding::new_dbus(endian, 0));
    // SAFETY: the bus has looked at the encoding of what it passes on, as for every message that is
    // read from it.
    unsafe { Message::from_bytes(data) }.ok()
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
            if already.len() < BEGINNING {
                if self.is_empty && self.known.is_empty() && unheard >= FLOOD {
                    Timer::after(PAUSE).await;
                }
                self.read(already, fds).await?;
                continue;
            }
            let Some(message) = Beginning::read(already) else {
                return self.inner.receive_message(number, already, fds).await;
            };
            let bytes = usize::try_from(message.bytes()).unwrap_or(usize::MAX);
            if message.is_too_long() {
                let known = bytes.min(already.len());
                self.skip(already.drain(..known).collect(), message).await?;
                continue;
            }
            if ![CALL, SIGNAL].contains(&message.kind) {
                return self.inner.receive_message(number, already, fds).await;
            }
            if already.len() < bytes {
                self.read(already, fds).await?;
                continue;
            }
            let whole = &already[..bytes];
            let (head, body) = whole.split_at(usize::try_from(message.head).unwrap_or(bytes));
            let is_heard = match message.kind {
                CALL => self.hears(message, head, whole),
                _ => !self.ends_stranger(message, head, body),
            };
            if is_heard {
                return self.inner.receive_message(number, already, fds).await;
            }
            already.drain(..bytes);
            unheard += 1;
            if unheard % UNHEARD_IN_A_ROW == 0 {
                future::yield_now().await;
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
