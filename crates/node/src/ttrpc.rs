//! Calls of ttrpc, as far as NRI makes them: one request, one response.
//!
//! A message has a header of ten bytes: the payload's length and the stream's number, each of 4
//! bytes, the highest first; its kind; and flags, of which these calls use none. The payload is in
//! Protocol Buffers.

use prost::Message as _;

use crate::mux::{ProtocolError, word};

const HEADER: usize = 10;

pub const LONGEST_PAYLOAD: usize = 4 << 20;

pub const LONGEST: usize = HEADER + LONGEST_PAYLOAD;

/// The kinds of messages. NRI has no parts of streams, which are of others.
pub const REQUEST: u8 = 1;
pub const RESPONSE: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TtrpcMessage {
    pub stream: u32,
    pub kind: u8,
    /// A [`TtrpcRequest`] or a [`Response`].
    pub payload: Vec<u8>,
}

impl TtrpcMessage {
    pub(crate) fn take(bytes: &mut Vec<u8>) -> Result<Option<Self>, ProtocolError> {
        let Some((header, rest)) = bytes.split_at_checked(HEADER) else {
            return Ok(None);
        };
        let length = word(header, 0);
        if length as usize > LONGEST_PAYLOAD {
            return Err(ProtocolError::LongMessage { length });
        }
        let Some(payload) = rest.get(..length as usize) else {
            return Ok(None);
        };
        let message = Self {
            stream: word(header, 4),
            kind: header.get(8).copied().unwrap_or_default(),
            payload: payload.to_vec(),
        };
        bytes.drain(..HEADER + length as usize);
        Ok(Some(message))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.payload.len() as u32).to_be_bytes().to_vec();
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend([self.kind, 0]);
        bytes.extend(&self.payload);
        bytes
    }

    pub fn request(
        stream: u32,
        service: &str,
        method: &str,
        argument: &impl prost::Message,
    ) -> Self {
        let request = TtrpcRequest {
            service: service.to_owned(),
            method: method.to_owned(),
            payload: argument.encode_to_vec(),
        };
        Self {
            stream,
            kind: REQUEST,
            payload: request.encode_to_vec(),
        }
    }

    pub fn response(stream: u32, answer: Result<Vec<u8>, CallStatus>) -> Self {
        let response = match answer {
            Ok(payload) => Response {
                status: None,
                payload,
            },
            Err(status) => Response {
                status: Some(status),
                payload: Vec::new(),
            },
        };
        Self {
            stream,
            kind: RESPONSE,
            payload: response.encode_to_vec(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TtrpcRequest {
    #[prost(string, tag = "1")]
    pub service: String,
    #[prost(string, tag = "2")]
    pub method: String,
    #[prost(bytes = "vec", tag = "3")]
    pub payload: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Response {
    /// Why the call failed, if its code is not 0.
    #[prost(message, optional, tag = "1")]
    pub status: Option<CallStatus>,
    #[prost(bytes = "vec", tag = "2")]
    pub payload: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CallStatus {
    /// 0: it went well.
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

impl CallStatus {
    pub(crate) fn invalid(error: &prost::DecodeError) -> Self {
        Self {
            code: 3,
            message: format!("onbeat-node cannot read the message: {error}"),
        }
    }

    pub(crate) fn unimplemented(method: &str) -> Self {
        Self {
            code: 12,
            message: format!("onbeat-node has no method {method}"),
        }
    }
}
