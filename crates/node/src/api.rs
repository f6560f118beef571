//! The messages of NRI's `api.proto` (package `nri.pkg.api.v1alpha1`), as far as the plugin needs
//! them.

use std::collections::BTreeMap;

/// The service that runtimes have for plugins.
pub const RUNTIME: &str = "nri.pkg.api.v1alpha1.Runtime";

/// The service that plugins have for runtimes.
pub const PLUGIN: &str = "nri.pkg.api.v1alpha1.Plugin";

/// The first call, from the plugin.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RegisterPluginRequest {
    #[prost(string, tag = "1")]
    pub plugin_name: String,
    /// Two digits: where it stands in the order of all plugins.
    #[prost(string, tag = "2")]
    pub plugin_idx: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConfigureRequest {
    #[prost(string, tag = "2")]
    pub runtime_name: String,
    #[prost(string, tag = "3")]
    pub runtime_version: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConfigureResponse {
    /// One bit for each [`Event`], from the lowest for the first one.
    #[prost(int32, tag = "2")]
    pub events: i32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SynchronizeRequest {
    #[prost(message, repeated, tag = "1")]
    pub pods: Vec<PodSandbox>,
    #[prost(message, repeated, tag = "2")]
    pub containers: Vec<Container>,
    /// Another such message follows.
    #[prost(bool, tag = "3")]
    pub more: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SynchronizeResponse {
    /// The plugin waits for the next message.
    #[prost(bool, tag = "2")]
    pub more: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StateChangeEvent {
    #[prost(enumeration = "Event", tag = "1")]
    pub event: i32,
    #[prost(message, optional, tag = "2")]
    pub pod: Option<PodSandbox>,
    #[prost(message, optional, tag = "3")]
    pub container: Option<Container>,
}

/// The same, where the event is a method of its own.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StopContainerRequest {
    #[prost(message, optional, tag = "1")]
    pub pod: Option<PodSandbox>,
    #[prost(message, optional, tag = "2")]
    pub container: Option<Container>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandbox {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub namespace: String,
    #[prost(btree_map = "string, string", tag = "6")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Container {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub pod_sandbox_id: String,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(enumeration = "ContainerState", tag = "4")]
    pub state: i32,
    #[prost(message, optional, tag = "11")]
    pub linux: Option<LinuxContainer>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxContainer {
    #[prost(message, optional, tag = "3")]
    pub resources: Option<LinuxResources>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxResources {
    #[prost(message, optional, tag = "2")]
    pub cpu: Option<LinuxCpu>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxCpu {
    /// Its weight, 1024 for each CPU that was requested.
    #[prost(message, optional, tag = "1")]
    pub shares: Option<OptionalUInt64>,
    /// Its limit, in microseconds of each period; none if it is not above 0.
    #[prost(message, optional, tag = "2")]
    pub quota: Option<OptionalInt64>,
    #[prost(message, optional, tag = "3")]
    pub period: Option<OptionalUInt64>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct OptionalUInt64 {
    #[prost(uint64, tag = "1")]
    pub value: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct OptionalInt64 {
    #[prost(int64, tag = "1")]
    pub value: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Event {
    Unknown = 0,
    StartContainer = 6,
    /// A container has other resources now.
    PostUpdateContainer = 9,
    /// A container was stopped, or has ended.
    StopContainer = 10,
    RemoveContainer = 11,
}

impl Event {
    /// The events that the plugin asks for.
    pub const HEARD: [Self; 4] = [
        Self::StartContainer,
        Self::PostUpdateContainer,
        Self::StopContainer,
        Self::RemoveContainer,
    ];

    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::StartContainer => "StartContainer",
            Self::PostUpdateContainer => "PostUpdateContainer",
            Self::StopContainer => "StopContainer",
            Self::RemoveContainer => "RemoveContainer",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum ContainerState {
    ContainerUnknown = 0,
    ContainerCreated = 1,
    ContainerPaused = 2,
    ContainerRunning = 3,
    ContainerStopped = 4,
}
