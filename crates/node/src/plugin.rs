//! The plugin's answers to the runtime's calls.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use prost::Message as _;

use crate::annotations::entitlement;
use crate::api::{
    ConfigureRequest, ConfigureResponse, Container, ContainerState, Event, PLUGIN, PodSandbox,
    StateChangeEvent, StopContainerRequest, SynchronizeRequest, SynchronizeResponse,
};
use crate::rules::{ContainerId, Folder, plain};
use crate::ttrpc::{CallStatus, TtrpcRequest};

#[derive(Debug)]
pub struct Plugin {
    folder: Folder,
    /// Pods and containers of a synchronisation that has not ended.
    pods: BTreeMap<String, PodSandbox>,
    containers: Vec<Container>,
    is_synchronized: bool,
}

impl Plugin {
    pub const fn new(folder: Folder) -> Self {
        Self {
            folder,
            pods: BTreeMap::new(),
            containers: Vec::new(),
            is_synchronized: false,
        }
    }

    /// A connection begins. Rules stay until the runtime has listed the containers that live.
    pub fn begin(&mut self) {
        self.pods.clear();
        self.containers.clear();
        self.is_synchronized = false;
    }

    /// Whether the runtime has listed all its containers since [`begin`](Self::begin).
    pub const fn is_synchronized(&self) -> bool {
        self.is_synchronized
    }

    pub fn end(&self) -> io::Result<()> {
        self.folder.remove_all_but(&BTreeSet::new()).map(|_| ())
    }

    /// The answer to a call.
    /// Fails if there is no such method, or its argument cannot be read. A mistake of a pod is no
    /// error: its containers start without rules.
    pub fn answer(&mut self, call: &TtrpcRequest) -> Result<Vec<u8>, CallStatus> {
        if call.service != PLUGIN {
            return Err(CallStatus::unimplemented(&plain(&call.service)));
        }
        let payload = call.payload.as_slice();
        let invalid = |error| CallStatus::invalid(&error);
        match call.method.as_str() {
            "Configure" => {
                let runtime = ConfigureRequest::decode(payload).map_err(invalid)?;
                eprintln!(
                    "onbeat-node: connected to {} {}",
                    plain(&runtime.runtime_name),
                    plain(&runtime.runtime_version)
                );
                let bits = Event::HEARD.map(|event| 1 << (event as i32 - 1));
                let events = bits.iter().sum();
                return Ok(ConfigureResponse { events }.encode_to_vec());
            }
            "Synchronize" => {
                let request = SynchronizeRequest::decode(payload).map_err(invalid)?;
                let more = request.more;
                self.synchronize(request);
                return Ok(SynchronizeResponse { more }.encode_to_vec());
            }
            "StateChange" => {
                let change = StateChangeEvent::decode(payload).map_err(invalid)?;
                if let (Some(pod), Some(container)) = (&change.pod, &change.container) {
                    self.handle_event(change.event(), pod, container);
                }
            }
            "Shutdown" => {}
            method => {
                let mut events = Event::HEARD.into_iter();
                let event = events.find(|event| event.method() == method);
                let event = event.ok_or_else(|| CallStatus::unimplemented(&plain(method)))?;
                let request = StopContainerRequest::decode(payload).map_err(invalid)?;
                if let (Some(pod), Some(container)) = (&request.pod, &request.container) {
                    self.handle_event(event, pod, container);
                }
            }
        }
        // All other answers are messages without a field that is set.
        Ok(Vec::new())
    }

    /// Makes the rules those of the containers that live, once the last part has come.
    fn synchronize(&mut self, request: SynchronizeRequest) {
        let pods = request.pods.into_iter();
        self.pods.extend(pods.map(|pod| (pod.id.clone(), pod)));
        self.containers.extend(request.containers);
        if request.more {
            return;
        }
        let (pods, containers) = (
            std::mem::take(&mut self.pods),
            std::mem::take(&mut self.containers),
        );
        let mut kept = BTreeSet::new();
        for container in &containers {
            let pod = pods.get(&container.pod_sandbox_id);
            if container.state() != ContainerState::ContainerStopped
                && let Some(pod) = pod
                && let Some(id) = self.keep(pod, container)
            {
                kept.insert(id);
            }
        }
        match self.folder.remove_all_but(&kept) {
            Ok(0) => {}
            Ok(count) => eprintln!(
                "onbeat-node: removed {count} rules of containers that are gone or no longer ask"
            ),
            Err(error) => eprintln!(
                "onbeat-node: cannot remove the rules of containers that are gone: {error}"
            ),
        }
        self.is_synchronized = true;
        eprintln!(
            "onbeat-node: {} containers run, {} of them are served",
            containers.len(),
            kept.len()
        );
    }

    fn handle_event(&self, event: Event, pod: &PodSandbox, container: &Container) {
        match event {
            Event::StartContainer => {
                self.keep(pod, container);
            }
            // A container that no longer asks, or asks for too much, has no rule.
            Event::PostUpdateContainer => {
                if self.keep(pod, container).is_none() {
                    self.forget(pod, container);
                }
            }
            Event::StopContainer | Event::RemoveContainer => self.forget(pod, container),
            Event::Unknown => {}
        }
    }

    /// Writes the container's rule, if its pod asks for one. Returns its id if it has one.
    fn keep(&self, pod: &PodSandbox, container: &Container) -> Option<ContainerId> {
        let name = name(pod, container);
        let not_kept = |why: String| {
            eprintln!("onbeat-node: {name} is not served, and starts as usual: {why}");
        };
        let asked = entitlement(&pod.annotations, container);
        let bandwidth = asked
            .map_err(|mistake| not_kept(mistake.to_string()))
            .ok()??;
        let Some(id) = ContainerId::new(&container.id) else {
            not_kept(format!(
                "its id '{}' has not 64 hexadecimal digits",
                plain(&container.id)
            ));
            return None;
        };
        // Two containers of one name may live for a moment, and rules differ by name.
        let digits = container.id.get(..12).unwrap_or_default();
        let put = self.folder.put(&id, &format!("{name} {digits}"), bandwidth);
        put.map_err(|error| not_kept(format!("cannot write its rule: {error}")))
            .ok()?;
        eprintln!("onbeat-node: {name} is served: at most {bandwidth}");
        Some(id)
    }

    fn forget(&self, pod: &PodSandbox, container: &Container) {
        let Some(id) = ContainerId::new(&container.id) else {
            return;
        };
        match self.folder.remove(&id) {
            Ok(false) => {}
            Ok(true) => eprintln!("onbeat-node: {} is no longer served", name(pod, container)),
            Err(error) => eprintln!(
                "onbeat-node: cannot remove the rule of {}: {error}",
                name(pod, container)
            ),
        }
    }
}

/// The container as people know it. All parts come from outside.
fn name(pod: &PodSandbox, container: &Container) -> String {
    plain(&format!(
        "{}/{}/{}",
        pod.namespace, pod.name, container.name
    ))
}
