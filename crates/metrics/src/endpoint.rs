//! The HTTP endpoint: one thread that listens on loopback, reads who asks for what, and has the
//! loop make the page.
//!
//! One caller at a time, each with a second to say what he wants; more wait in the kernel's queue.
//! What callers say is untrusted: httparse reads it.
//!
//! A web page that has its own name lead to this machine (DNS rebinding) would be read here by a
//! person's browser. Its requests say that name, so only who asks for an address or for localhost
//! is answered.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;
use crate::text::CONTENT_TYPE;

/// How long a caller may take, and the loop until it answers.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 30 } else { 1 });
/// The longest request that is read.
const LONGEST: usize = 8192;
/// The most header lines.
const HEADERS: usize = 64;

#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Somebody waits for a page.
    asked: Receiver<SyncSender<String>>,
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Endpoint {
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Error> {
        let failed = |source| Error::Address { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (ask, asked) = sync_channel(1);
        let ends = Arc::new(AtomicBool::new(false));
        let its_ends = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("metrics".to_owned());
        let listener = thread
            .stack_size(256 * 1024)
            .spawn(move || serve(&listener, &ask, &its_ends))
            .map_err(failed)?;
        Ok(Self {
            asked,
            address,
            ends,
            listener: Some(listener),
        })
    }

    /// Where it is.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes the page if somebody asked for it.
    pub(crate) fn answer(&self, page: impl FnOnce() -> String) {
        if let Ok(to) = self.asked.try_recv() {
            // He may have gone.
            let _ = to.try_send(page());
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // Wakes the thread; if that fails it is gone already.
        let _ = TcpStream::connect_timeout(&self.address, PATIENCE);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn serve(listener: &TcpListener, ask: &SyncSender<SyncSender<String>>, ends: &AtomicBool) {
    for caller in listener.incoming() {
        if ends.load(Ordering::Acquire) {
            return;
        }
        match caller {
            // A caller that goes away in the middle is his own concern.
            Ok(mut caller) => drop(attend(&mut caller, ask)),
            // No file is free: one that is closed meanwhile helps, trying again at once does not.
            Err(_) => std::thread::sleep(PATIENCE),
        }
    }
}

fn attend(caller: &mut TcpStream, ask: &SyncSender<SyncSender<String>>) -> io::Result<()> {
    let (status, kind, body) = match wanted(caller)? {
        Wanted::Metrics => match page(ask) {
            Some(page) => ("200 OK", CONTENT_TYPE, page),
            None => plain("503 Service Unavailable", "the loop does not answer"),
        },
        Wanted::Unknown => plain("404 Not Found", "the metrics are at /metrics"),
        Wanted::NotRead => plain("405 Method Not Allowed", "there is only GET /metrics"),
        Wanted::Elsewhere => plain("403 Forbidden", "ask for localhost, or for the address"),
        Wanted::Malformed => plain("400 Bad Request", "this is no HTTP"),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    tell(caller, (head + &body).as_bytes())
}

/// Writes all of it, unless that takes too long: others wait, and so does onbeat when it ends.
fn tell(caller: &mut TcpStream, mut answer: &[u8]) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    while !answer.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        caller.set_write_timeout(Some(left))?;
        match caller.write(answer) {
            Ok(written) => answer = answer.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn plain(status: &'static str, told: &str) -> (&'static str, &'static str, String) {
    (status, "text/plain; charset=utf-8", format!("{told}\n"))
}

fn page(ask: &SyncSender<SyncSender<String>>) -> Option<String> {
    let (to, from) = sync_channel(1);
    ask.try_send(to).ok()?;
    from.recv_timeout(PATIENCE).ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Metrics,
    Unknown,
    NotRead,
    Elsewhere,
    Malformed,
}

/// Reads a request up to the end of its head.
fn wanted(caller: &mut TcpStream) -> io::Result<Wanted> {
    let until = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > LONGEST {
            return Ok(Wanted::Malformed);
        }
        caller.set_read_timeout(Some(left))?;
        let read = caller.read(&mut part)?;
        request.extend_from_slice(part.get(..read).unwrap_or_default());
        if let Some(wanted) = understood(&request) {
            return Ok(wanted);
        }
        if read == 0 {
            return Ok(Wanted::Malformed);
        }
    }
}

/// What is wanted, once enough of it is there.
fn understood(request: &[u8]) -> Option<Wanted> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some(Wanted::Malformed),
        Ok(httparse::Status::Complete(_)) if !is_asked_for_here(parsed.headers) => {
            Some(Wanted::Elsewhere)
        }
        Ok(httparse::Status::Complete(_)) => {
            let path = parsed.path.unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default();
            Some(match (parsed.method, path) {
                (Some("GET"), "/metrics") => Wanted::Metrics,
                (Some("GET"), _) => Wanted::Unknown,
                _ => Wanted::NotRead,
            })
        }
    }
}

/// Whether each Host, if there is one, is an address or localhost, with a port or without.
fn is_asked_for_here(headers: &[httparse::Header<'_>]) -> bool {
    let mut hosts = headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("host"));
    hosts.all(|header| {
        let host = std::str::from_utf8(header.value).unwrap_or_default();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let six = host.strip_prefix('[').and_then(|six| six.split_once(']'));
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok()
            || six.is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok())
    })
}

#[cfg(test)]
mod tests;
