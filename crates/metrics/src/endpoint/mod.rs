//! The HTTP endpoint: one thread that listens on loopback, reads requests, and has the
//! loop make the page.
//!
//! The endpoint serves callers side by side, each for at most a second. If there are more than 64,
//! it drops the one that came first, so that connections that say nothing keep no caller out.
//! Requests are untrusted: httparse reads them.
//!
//! A web page that has its own name lead to this machine (DNS rebinding) would be read here by a
//! person's browser. Its requests say that name, so only who asks for an address or for localhost
//! is answered.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onbeat_kernel::wait::{PollFd, PollFlags, poll};
use onbeat_model::Span;

use crate::MetricsError;
use crate::text::CONTENT_TYPE;

/// How long a caller may take, and the loop until it answers.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 30 } else { 1 });
const LONGEST: usize = 8192;
const HEADERS: usize = 64;
const CALLERS: usize = 64;

#[derive(Debug)]
pub(crate) struct Endpoint {
    asked: Receiver<SyncSender<String>>,
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Endpoint {
    pub(crate) fn open(address: SocketAddr) -> Result<Self, MetricsError> {
        let failed = |source| MetricsError::Address { address, source };
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

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

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
    // Else one that has gone before it is accepted would hold up all others.
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let mut callers: VecDeque<HttpConnection> = VecDeque::new();
    loop {
        let mut files = vec![PollFd::new(listener, PollFlags::IN)];
        files.extend(callers.iter().map(HttpConnection::awaited));
        let until = callers.iter().map(|caller| caller.until).min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // The ready ones are seen below, also if this failed.
        let _ = poll(&mut files, left.map(span));
        if ends.load(Ordering::Acquire) {
            return;
        }
        let ready: Vec<bool> = files
            .iter()
            .map(|file| !file.revents().is_empty())
            .collect();
        let mut ready = ready.into_iter();
        let is_called = ready.next().unwrap_or(false);
        let now = Instant::now();
        callers.retain_mut(|caller| {
            let is_ready = ready.next().unwrap_or(false);
            // One that goes away in the middle is its own concern.
            caller.until > now && (!is_ready || caller.go_on(ask).is_ok_and(|goes_on| goes_on))
        });
        if is_called {
            match listener.accept() {
                Ok((stream, _)) => callers.extend(HttpConnection::new(stream)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // No file is free: the first caller's is, then.
                Err(_) if callers.pop_front().is_some() => {}
                Err(_) => std::thread::sleep(PATIENCE),
            }
        }
        if callers.len() > CALLERS {
            callers.pop_front();
        }
    }
}

/// Rounded up, so that no caller is looked at again before its time.
fn span(left: Duration) -> Span {
    Span::from_us(left.as_micros().try_into().unwrap_or(u64::MAX)) + Span::from_us(1)
}

struct HttpConnection {
    stream: TcpStream,
    until: Instant,
    talk: Talk,
}

enum Talk {
    Reading(Vec<u8>),
    Writing(Vec<u8>),
}

impl HttpConnection {
    fn new(stream: TcpStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self {
            stream,
            until: Instant::now() + PATIENCE,
            talk: Talk::Reading(Vec::new()),
        })
    }

    fn awaited(&self) -> PollFd<'_> {
        let events = match self.talk {
            Talk::Reading(_) => PollFlags::IN,
            Talk::Writing(_) => PollFlags::OUT,
        };
        PollFd::new(&self.stream, events)
    }

    /// Reads or writes what it can; false once the connection is done.
    fn go_on(&mut self, ask: &SyncSender<SyncSender<String>>) -> io::Result<bool> {
        match &mut self.talk {
            Talk::Reading(request) => {
                let mut part = [0; 1024];
                let read = self.stream.read(&mut part)?;
                request.extend_from_slice(part.get(..read).unwrap_or_default());
                let is_over = read == 0 || request.len() > LONGEST;
                let wanted = understood(request).or(is_over.then_some(RequestKind::Malformed));
                if let Some(wanted) = wanted {
                    self.talk = Talk::Writing(answer(wanted, ask).into_bytes());
                }
                Ok(true)
            }
            Talk::Writing(rest) => {
                let written = self.stream.write(rest)?;
                rest.drain(..written.min(rest.len()));
                Ok(!rest.is_empty())
            }
        }
    }
}

fn answer(wanted: RequestKind, ask: &SyncSender<SyncSender<String>>) -> String {
    let (status, kind, body) = match wanted {
        RequestKind::Metrics => match page(ask) {
            Some(page) => ("200 OK", CONTENT_TYPE, page),
            None => plain("503 Service Unavailable", "the loop does not answer"),
        },
        RequestKind::Unknown => plain("404 Not Found", "the metrics are at /metrics"),
        RequestKind::NotRead => plain("405 Method Not Allowed", "there is only GET /metrics"),
        RequestKind::Elsewhere => plain("403 Forbidden", "ask for localhost, or for the address"),
        RequestKind::Malformed => plain("400 Bad Request", "this is no HTTP"),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    head + &body
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
enum RequestKind {
    Metrics,
    Unknown,
    NotRead,
    Elsewhere,
    Malformed,
}

/// Whether these bytes ask for the page of metrics; none until the request is whole.
pub fn asks_for_metrics(request: &[u8]) -> Option<bool> {
    understood(request).map(|wanted| wanted == RequestKind::Metrics)
}

fn understood(request: &[u8]) -> Option<RequestKind> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some(RequestKind::Malformed),
        Ok(httparse::Status::Complete(_)) if !is_asked_for_here(parsed.headers) => {
            Some(RequestKind::Elsewhere)
        }
        Ok(httparse::Status::Complete(_)) => {
            let path = parsed.path.unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default();
            Some(match (parsed.method, path) {
                (Some("GET"), "/metrics") => RequestKind::Metrics,
                (Some("GET"), _) => RequestKind::Unknown,
                _ => RequestKind::NotRead,
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
