//! The program with a container runtime that is played at its socket.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use onbeat_node::api::{
    Container, ContainerState, Event, LinuxContainer, LinuxCpu, LinuxResources, OptionalUInt64,
    PLUGIN, PodSandbox, StateChangeEvent, SynchronizeRequest, SynchronizeResponse,
};
use onbeat_node::mux::{Connection, Incoming, frame};
use onbeat_node::ttrpc::{RESPONSE, Response, TtrpcMessage, TtrpcRequest};
use prost::Message as _;

use ContainerState::{
    ContainerCreated as Created, ContainerRunning as Running, ContainerStopped as Stopped,
};

struct Runtime {
    folder: tempfile::TempDir,
    listener: UnixListener,
    plugin: Child,
}

impl Runtime {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("nri.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat-node"));
        command.arg("--socket").arg(socket);
        command.arg("--rules").arg(folder.path().join("rules"));
        command.stderr(fs::File::create(folder.path().join("log")).unwrap());
        let plugin = command.stdin(Stdio::null()).spawn().unwrap();
        Self {
            folder,
            listener,
            plugin,
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn rules(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("rules"));
        let paths = entries.into_iter().flatten();
        paths.map(|entry| entry.unwrap().path()).collect()
    }

    /// The plugin connects and registers.
    fn accept(&self) -> Call {
        let (stream, _) = self.listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut call = Call {
            stream,
            incoming: Incoming::default(),
            number: 1,
        };
        let (connection, registration) = call.hear();
        assert_eq!(connection, Connection::Runtime);
        let request = TtrpcRequest::decode(registration.payload.as_slice()).unwrap();
        assert_eq!(request.method, "RegisterPlugin");
        let answer = TtrpcMessage::response(registration.stream, Ok(Vec::new()));
        call.stream.write_all(&frame(connection, &answer)).unwrap();
        call
    }

    fn end(&mut self, signal: i32) -> ExitStatus {
        // SAFETY: the process is our child, and not waited for yet.
        unsafe { libc::kill(self.plugin.id() as i32, signal) };
        self.plugin.wait().unwrap()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.plugin.kill();
        let _ = self.plugin.wait();
    }
}

/// One connection of the plugin's.
struct Call {
    stream: UnixStream,
    incoming: Incoming,
    number: u32,
}

impl Call {
    fn hear(&mut self) -> (Connection, TtrpcMessage) {
        let mut buffer = [0; 4096];
        loop {
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the plugin has closed the connection");
            if let Some(message) = self.incoming.feed(&buffer[..count]).unwrap().pop() {
                return message;
            }
        }
    }

    fn call(&mut self, method: &str, argument: &impl prost::Message) -> Response {
        let request = TtrpcMessage::request(self.number, PLUGIN, method, argument);
        let request = frame(Connection::Plugin, &request);
        self.stream.write_all(&request).unwrap();
        let (connection, answer) = self.hear();
        assert_eq!((connection, answer.kind), (Connection::Plugin, RESPONSE));
        assert_eq!(answer.stream, self.number);
        self.number += 2;
        Response::decode(answer.payload.as_slice()).unwrap()
    }

    fn synchronize(&mut self, containers: &[Container], more: bool) {
        let told = SynchronizeRequest {
            pods: vec![pod("true")],
            containers: containers.to_vec(),
            more,
        };
        let answer = self.call("Synchronize", &told);
        assert_eq!(answer.status, None);
        let answer = SynchronizeResponse::decode(answer.payload.as_slice()).unwrap();
        assert_eq!(answer.more, more);
    }

    fn tell(&mut self, event: Event, pod: PodSandbox, container: Container) {
        let change = StateChangeEvent {
            event: event.into(),
            pod: Some(pod),
            container: Some(container),
        };
        assert_eq!(self.call("StateChange", &change).status, None);
    }
}

fn pod(keep: &str) -> PodSandbox {
    PodSandbox {
        id: "pod".to_owned(),
        name: "film".to_owned(),
        namespace: "media".to_owned(),
        annotations: [("onbeat.dev/keep".to_owned(), keep.to_owned())].into(),
    }
}

fn container(digit: char, state: ContainerState) -> Container {
    let shares = Some(OptionalUInt64 { value: 256 });
    let cpu = Some(LinuxCpu {
        shares,
        ..LinuxCpu::default()
    });
    let resources = Some(LinuxResources { cpu });
    Container {
        id: digit.to_string().repeat(64),
        pod_sandbox_id: "pod".to_owned(),
        name: "app".to_owned(),
        state: state.into(),
        linux: Some(LinuxContainer { resources }),
    }
}

#[test]
fn rules_follow_the_containers_across_a_restart_of_the_runtime_and_go_with_the_plugin() {
    let mut runtime = Runtime::new();
    let mut call = runtime.accept();
    call.synchronize(&[container('a', Running)], true);
    assert_eq!(runtime.rules().len(), 0, "not all is told");
    call.synchronize(&[container('b', Stopped), container('c', Created)], false);
    assert_eq!(runtime.rules().len(), 2);
    call.tell(Event::StartContainer, pod("true"), container('d', Created));
    assert_eq!(
        runtime.rules().len(),
        3,
        "the container has not started yet"
    );
    call.tell(Event::StopContainer, pod("true"), container('a', Running));
    call.tell(Event::RemoveContainer, pod("true"), container('a', Stopped));
    assert_eq!(runtime.rules().len(), 2);
    drop(call);
    let mut call = runtime.accept();
    assert_eq!(runtime.rules().len(), 2, "the containers live");
    call.synchronize(&[container('d', Running)], false);
    assert_eq!(runtime.rules().len(), 1);
    assert!(runtime.end(libc::SIGTERM).success());
    assert_eq!(runtime.rules().len(), 0);
}

#[test]
fn what_a_killed_plugin_has_left_goes_when_the_next_one_hears_which_containers_live() {
    let mut runtime = Runtime::new();
    runtime
        .accept()
        .synchronize(&[container('a', Running)], false);
    assert!(!runtime.end(libc::SIGKILL).success());
    assert_eq!(runtime.rules().len(), 1);
    let folder = std::mem::replace(&mut runtime.folder, tempfile::tempdir().unwrap());
    let mut next = Runtime::new();
    fs::rename(
        folder.path().join("rules"),
        next.folder.path().join("rules"),
    )
    .unwrap();
    next.accept().synchronize(&[container('b', Running)], false);
    let rules = next.rules();
    assert!(
        rules.len() == 1 && rules[0].to_string_lossy().contains("bbbb"),
        "{rules:?}"
    );
    assert!(next.end(libc::SIGINT).success());
}

#[test]
fn a_mistake_is_told_with_pod_and_container_and_holds_nothing_up() {
    let runtime = Runtime::new();
    let mut call = runtime.accept();
    call.tell(Event::StartContainer, pod("maybe"), container('a', Created));
    let mut other = container('a', Created);
    other.id = "../../etc/onbeat/onbeat".to_owned();
    call.tell(Event::StartContainer, pod("true"), other);
    assert_eq!(runtime.rules().len(), 0);
    let log = runtime.log();
    let told = "media/film/app is not served, and starts as usual: the annotation onbeat.dev/keep is 'maybe': write";
    assert!(log.contains(told), "{log}");
    assert!(log.contains("has not 64 hexadecimal digits"), "{log}");
    // It lives, and knows what it does not know.
    let answer = call.call("ValidateContainerAdjustment", &pod("true"));
    assert_eq!(answer.status.map(|status| status.code), Some(12));
    call.tell(Event::StartContainer, pod("true"), container('a', Created));
    assert_eq!(runtime.rules().len(), 1);
}

#[test]
fn bytes_that_are_not_nri_s_end_the_connection_and_not_the_plugin() {
    let runtime = Runtime::new();
    let mut call = runtime.accept();
    call.stream
        .write_all(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff])
        .unwrap();
    let mut rest = Vec::new();
    let _ = call.stream.read_to_end(&mut rest);
    runtime
        .accept()
        .synchronize(&[container('a', Running)], false);
    assert_eq!(runtime.rules().len(), 1);
    assert!(
        runtime
            .log()
            .contains("does not speak NRI: a frame of 4294967295 bytes")
    );
}
