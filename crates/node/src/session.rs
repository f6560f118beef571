//! One connection to the runtime, from the registration to its end.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use prost::Message as _;

use crate::api::{RUNTIME, RegisterPluginRequest};
use crate::mux::{Connection, Incoming, ProtocolError, frame};
use crate::plugin::Plugin;
use crate::rules::plain;
use crate::ttrpc::{CallStatus, REQUEST, RESPONSE, Response, TtrpcMessage, TtrpcRequest};
use crate::{EndingSignals, WaitEnd};

const NAME: &str = "onbeat";

/// The stream of the plugin's one call. Callers use odd numbers.
const REGISTRATION: u32 = 1;

/// The runtime must list its containers within this time. It gives a plugin 5 s to register.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time for one answer. The runtime gives up a plugin after 2 s.
const WRITING: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("no container runtime listens ({0}); it must have NRI enabled")]
    NotThere(#[source] io::Error),
    #[error("the connection to the container runtime failed: {0}")]
    Socket(#[from] io::Error),
    #[error("the container runtime has closed the connection")]
    Closed,
    #[error("the container runtime does not speak NRI: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("the container runtime refuses the plugin: {0}")]
    Refused(String),
    #[error("the container runtime has not listed its containers within {} s", PATIENCE.as_secs())]
    Silent,
}

/// Registers as the plugin of this index at `socket`, and answers until a signal comes.
pub fn serve(
    socket: &Path,
    index: &str,
    plugin: &mut Plugin,
    signals: &EndingSignals,
) -> Result<(), Broken> {
    let mut stream = UnixStream::connect(socket).map_err(Broken::NotThere)?;
    stream.set_write_timeout(Some(WRITING))?;
    plugin.begin();
    let registration = RegisterPluginRequest {
        plugin_name: NAME.to_owned(),
        plugin_idx: index.to_owned(),
    };
    let call = TtrpcMessage::request(REGISTRATION, RUNTIME, "RegisterPlugin", &registration);
    stream.write_all(&frame(Connection::Runtime, &call))?;
    let began = Instant::now();
    let mut incoming = Incoming::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let patience =
            (!plugin.is_synchronized()).then(|| PATIENCE.saturating_sub(began.elapsed()));
        if patience == Some(Duration::ZERO) {
            return Err(Broken::Silent);
        }
        match signals.wait(Some(stream.as_fd()), patience)? {
            WaitEnd::ToEnd => return Ok(()),
            WaitEnd::ToRead => {}
            WaitEnd::ByTime => continue,
        }
        let count = match stream.read(&mut buffer)? {
            0 => return Err(Broken::Closed),
            count => count,
        };
        for (connection, message) in incoming.feed(buffer.get(..count).unwrap_or_default())? {
            match (connection, message.kind) {
                (Connection::Plugin, REQUEST) => {
                    let answer = answer(plugin, &message);
                    stream.write_all(&frame(Connection::Plugin, &answer))?;
                }
                (Connection::Runtime, RESPONSE) if message.stream == REGISTRATION => {
                    registered(&message.payload)?;
                }
                _ => {}
            }
        }
    }
}

fn answer(plugin: &mut Plugin, call: &TtrpcMessage) -> TtrpcMessage {
    let request = TtrpcRequest::decode(call.payload.as_slice());
    let answer = request
        .map_err(|error| CallStatus::invalid(&error))
        .and_then(|request| plugin.answer(&request));
    TtrpcMessage::response(call.stream, answer)
}

fn registered(payload: &[u8]) -> Result<(), Broken> {
    let refused = |why: String| Broken::Refused(plain(&why));
    let response = Response::decode(payload).map_err(|error| refused(error.to_string()))?;
    match response.status {
        Some(status) if status.code != 0 => Err(refused(status.message)),
        _ => Ok(()),
    }
}
