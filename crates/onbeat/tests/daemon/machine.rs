//! A bus of its own with the service on it, users who ask, and tasks of theirs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use onbeat_act::attributes::{Attributes, Policy};
use serde_json::Value;

use crate::common::{Mortal, eventually};
use crate::copied::copy_program;
pub(crate) use crate::tasks::{is_reserved, reserved_thread, tids};

/// A user whom every Debian knows (the bus turns strangers away) and no process uses: `games`.
pub(crate) const ALICE: u32 = 5;
/// Another one: `lp`.
pub(crate) const BOB: u32 = 7;
/// One whose tasks no other test has: `news`.
pub(crate) const MALLORY: u32 = 9;
pub(crate) const ROOT: u32 = 0;

/// The service itself decides here about rights on the bus.
const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=@BUS@</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"#;

/// The configuration for a machine without polkit, beside what a test says.
pub(crate) const WITHOUT_POLKIT: &str = "onbeat.d/00-without-polkit.toml";

/// A bus, and the service on it. All of it ends with the test.
pub(crate) struct Machine {
    service: Option<Mortal>,
    /// The service's flags, beside the usual ones.
    pub(crate) flags: Vec<&'static str>,
    bus: Mortal,
    folder: tempfile::TempDir,
}

impl Machine {
    /// A bus without a service yet.
    pub(crate) fn bus() -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), all).expect("it is our own");
        let socket = folder.path().join("bus");
        let configuration = folder.path().join("bus.conf");
        let text = BUS.replace("@BUS@", &socket.to_string_lossy());
        std::fs::write(&configuration, text).expect("there is room for a file");
        // There is no polkit here to say who may have a priority, unless a test brings it.
        std::fs::create_dir(folder.path().join("onbeat.d")).expect("there is room for a folder");
        let all = "[realtimekit]\nwithout-polkit = true\n";
        std::fs::write(folder.path().join(WITHOUT_POLKIT), all).expect("there is room for a file");
        // Tests on a machine that may be idle look at what it does when it acts.
        std::fs::write(
            folder.path().join("onbeat.d/01-always.toml"),
            "always = true\n",
        )
        .expect("there is room for a file");
        // The programs of users must be where they may read them.
        for name in ["asking", "audio", "audio_thread", "hostile", "workload"] {
            copy_program(example(name), folder.path().join(name));
        }
        Self {
            service: None,
            flags: Vec::new(),
            bus: bus_in(folder.path()),
            folder,
        }
    }

    /// Ends the bus, as a crash would.
    pub(crate) fn end_bus(&mut self) {
        self.bus.0.kill().expect("it is our child");
        self.bus.0.wait().expect("it is our child");
        std::fs::remove_file(self.path("bus")).expect("nobody else removes it");
    }

    /// Sends the bus a signal.
    pub(crate) fn signal_bus(&self, signal: i32) {
        self.bus.signal(signal);
    }

    /// Another bus in the place of one that was ended.
    pub(crate) fn start_bus(&mut self) {
        self.bus = bus_in(self.folder.path());
    }

    /// A bus with the service on it.
    pub(crate) fn new() -> Self {
        let mut machine = Self::bus();
        machine.configure("");
        machine.start();
        machine
    }

    /// Writes the service's configuration.
    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.path("onbeat.toml"), text).expect("there is room for a file");
    }

    /// Sends the service a signal.
    pub(crate) fn signal(&self, signal: i32) {
        let service = self.service.as_ref().expect("it was started");
        service.signal(signal);
    }

    /// Starts the service and waits until it serves.
    pub(crate) fn start(&mut self) {
        let started = self.start_through(Command::new("env").arg("--"));
        assert!(started, "{}", self.log());
    }

    /// The same, through a command that runs another one. False if it ends instead of serving.
    pub(crate) fn start_through(&mut self, command: &mut Command) -> bool {
        let mut service = self.spawn(command);
        let serves = eventually("the service", || {
            let ended = service.0.try_wait().expect("it is our child").is_some();
            (ended || self.log().contains("serving")).then_some(!ended)
        });
        self.service = serves.then_some(service);
        serves
    }

    /// The same, where the log does not say when it serves.
    pub(crate) fn start_unheard(&mut self, command: &mut Command) {
        self.service = Some(self.spawn(command));
    }

    /// The number of the service's process.
    pub(crate) fn service_pid(&self) -> u32 {
        self.service.as_ref().expect("it was started").id()
    }

    /// A service, through a command that runs another one.
    pub(crate) fn spawn(&self, command: &mut Command) -> Mortal {
        let log = std::fs::File::create(self.path("log")).expect("there is room for a file");
        command
            .arg(env!("CARGO_BIN_EXE_onbeat"))
            .arg("daemon")
            .arg("--config")
            .arg(self.path("onbeat.toml"))
            .args(&self.flags)
            .env("ONBEAT_STATE_DIR", self.state())
            .env("DBUS_SYSTEM_BUS_ADDRESS", self.address())
            .stderr(log);
        Mortal::spawn(command)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn address(&self) -> String {
        format!("unix:path={}", self.path("bus").display())
    }

    /// The service's log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Ends the service by `signal` and waits for its end; its exit status, if it has one.
    pub(crate) fn end(&mut self, signal: i32) -> Option<i32> {
        self.signal(signal);
        self.ended()
    }

    /// Waits until the service has ended by itself; its exit status.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut service = self.service.take().expect("it was started");
        service.status()
    }

    /// A program that runs as `uid` and finds the bus.
    pub(crate) fn command(&self, uid: u32, program: &Path) -> Command {
        self.command_with(uid, "--clear-groups", program)
    }

    /// The same, in one more group.
    pub(crate) fn command_in(&self, uid: u32, group: &str, program: &Path) -> Command {
        self.command_with(uid, &format!("--groups={group}"), program)
    }

    fn command_with(&self, uid: u32, groups: &str, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &uid.to_string(), "--regid", &uid.to_string()])
            .arg(groups)
            .arg(program)
            .env("DBUS_SYSTEM_BUS_ADDRESS", self.address());
        command
    }

    /// A process of the user's with a thread that works 1 ms every 20 ms, both under SCHED_FIFO 7,
    /// and that thread. It may take a priority by itself, as PipeWire may where RLIMIT_RTPRIO lets
    /// it.
    pub(crate) fn beat_under_fifo(&self, uid: u32) -> (Mortal, u32) {
        let uid = uid.to_string();
        let mut command = Command::new("setpriv");
        command
            .args(["--inh-caps=+sys_nice", "--ambient-caps=+sys_nice"])
            .args(["--clear-groups", "--reuid", &uid, "--regid", &uid])
            .args(["chrt", "--fifo", "7"])
            .arg(self.path("workload"))
            .arg("beat:20000/1000")
            .stdout(Stdio::null());
        let process = as_itself(Mortal::spawn(&mut command), "workload");
        let tid = eventually("its thread", || {
            let mut threads = tids(process.id()).into_iter();
            threads.find(|&tid| tid != process.id())
        });
        (process, tid)
    }

    /// A user with a connection to the bus.
    pub(crate) fn client(&self, uid: u32) -> Client {
        self.speaker(&mut self.command(uid, &self.path("asking")))
    }

    /// A program that answers each line, once it is here.
    pub(crate) fn speaker(&self, command: &mut Command) -> Client {
        let mut process = Mortal::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let input = process.0.stdin.take().expect("it is piped");
        let output = BufReader::new(process.0.stdout.take().expect("it is piped"));
        let mut client = Client {
            process,
            input,
            output,
        };
        assert_eq!(client.answer(), "here");
        client
    }

    /// A task of `uid`'s that does nothing until the test's end.
    pub(crate) fn sleeper(&self, uid: u32) -> Mortal {
        let mut command = self.command(uid, Path::new("sleep"));
        as_itself(Mortal::spawn(command.arg("1000")), "sleep")
    }

    /// A task of `uid`'s with these threads.
    pub(crate) fn workload(&self, uid: u32, threads: &[&str]) -> Mortal {
        let mut command = self.command(uid, &self.path("workload"));
        let process = Mortal::spawn(command.args(threads).stdout(Stdio::null()));
        let process = as_itself(process, "workload");
        eventually("the workload's threads", || {
            (tids(process.id()).len() > threads.len()).then_some(())
        });
        process
    }
}

/// A bus that is configured in this folder, once it listens.
fn bus_in(folder: &Path) -> Mortal {
    let bus = Mortal::spawn(
        Command::new("dbus-daemon")
            .arg("--nofork")
            .arg("--config-file")
            .arg(folder.join("bus.conf"))
            .stderr(Stdio::null()),
    );
    // Its socket is there before it listens.
    eventually("the bus", || UnixStream::connect(folder.join("bus")).ok());
    bus
}

/// Waits until the process runs its own program, as its own user.
pub(crate) fn as_itself(process: Mortal, name: &str) -> Mortal {
    eventually("the program", || {
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", process.id())).ok()?;
        (comm.trim() == name).then_some(())
    });
    process
}

/// An example that this package builds with its tests.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    let target = own.parent().and_then(Path::parent);
    target
        .expect("target/PROFILE/deps")
        .join("examples")
        .join(name)
}

/// A user that asks. He leaves the bus when this is dropped.
pub(crate) struct Client {
    process: Mortal,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the client listens");
    }

    pub(crate) fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .expect("the client answers");
        line.trim_end().to_owned()
    }

    /// The answer to `line`. A client that polls too often is told to wait, and does.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        loop {
            self.say(line);
            let answer = self.answer();
            if !answer.starts_with("error org.onbeat.Error.TooManyCalls") {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The same, in JSON.
    pub(crate) fn told(&mut self, line: &str) -> Value {
        let answer = self.ask(line);
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{line}: {answer}"))
    }

    /// The error's name that is answered to `line`, without the service's own prefix.
    pub(crate) fn refused(&mut self, line: &str) -> String {
        let answer = self.ask(line);
        let error = answer.strip_prefix("error ");
        let error = error.unwrap_or_else(|| panic!("{line}: {answer}"));
        let name = error.split_whitespace().next().unwrap_or_default();
        name.trim_start_matches("org.onbeat.Error.").to_owned()
    }

    pub(crate) fn done(&mut self, line: &str) {
        assert_eq!(self.ask(line), "\"ok\"", "{line}");
    }

    /// The number of the client's process, and of its first thread.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Has it come to its end; how it ended.
    pub(crate) fn end(self) -> ExitStatus {
        drop(self.input);
        let mut process = self.process;
        process.0.wait().expect("it is our child")
    }

    /// Ends the client's process, without a word to the bus.
    pub(crate) fn die(mut self) {
        self.process.0.kill().expect("it is our child");
        self.process.0.wait().expect("it is our child");
    }
}

pub(crate) fn policy(tid: u32) -> Policy {
    Attributes::get(tid).expect("the thread lives").policy
}

pub(crate) fn is_ordinary(tid: u32) -> bool {
    Attributes::get(tid)
        .is_ok_and(|now| matches!(now.policy, Policy::Other(_)) && !now.reset_on_fork)
}
