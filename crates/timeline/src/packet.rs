//! The part of Perfetto's trace format that is used: names and numbers as in its
//! `protos/perfetto/trace`.

use prost::{Enumeration, Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(crate) packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub(crate) ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub(crate) process_tree: Option<ProcessTree>,
    #[prost(uint64, optional, tag = "8")]
    pub(crate) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(crate) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(crate) track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    pub(crate) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub(crate) track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(crate) counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")]
    pub(crate) unit: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(crate) unit_name: Option<String>,
}

pub(crate) const UNIT_TIME_NS: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(crate) debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "Type", optional, tag = "9")]
    pub(crate) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub(crate) track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub(crate) name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub(crate) counter_value: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub(crate) enum Type {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DebugAnnotation {
    #[prost(string, optional, tag = "10")]
    pub(crate) name: Option<String>,
    #[prost(oneof = "AnnotationValue", tags = "3, 6")]
    pub(crate) value: Option<AnnotationValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum AnnotationValue {
    #[prost(uint64, tag = "3")]
    UintValue(u64),
    #[prost(string, tag = "6")]
    StringValue(String),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessTree {
    #[prost(message, repeated, tag = "2")]
    pub(crate) threads: Vec<Thread>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Thread {
    #[prost(uint32, tag = "1")]
    pub(crate) tid: u32,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(uint32, tag = "3")]
    pub(crate) tgid: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) event: Vec<FtraceEvent>,
    #[prost(bool, tag = "3")]
    pub(crate) lost_events: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) timestamp: Option<u64>,
    /// The thread that ran there.
    #[prost(uint32, optional, tag = "2")]
    pub(crate) pid: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub(crate) common_flags: Option<u32>,
    #[prost(oneof = "Said", tags = "4, 20, 238")]
    pub(crate) said: Option<Said>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Said {
    #[prost(message, tag = "4")]
    Switch(SchedSwitch),
    #[prost(message, tag = "20")]
    Waking(SchedThread),
    #[prost(message, tag = "238")]
    Exit(SchedThread),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedSwitch {
    #[prost(string, tag = "1")]
    pub(crate) prev_comm: String,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) prev_pid: Option<u32>,
    #[prost(int64, optional, tag = "4")]
    pub(crate) prev_state: Option<i64>,
    #[prost(string, tag = "5")]
    pub(crate) next_comm: String,
    #[prost(uint32, optional, tag = "6")]
    pub(crate) next_pid: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedThread {
    #[prost(string, tag = "1")]
    pub(crate) comm: String,
    #[prost(uint32, tag = "2")]
    pub(crate) pid: u32,
}
