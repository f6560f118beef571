//! A bus of its own with the service on it, users who ask, and tasks of theirs.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{ChildStdin, ChildStdout, ExitStatus};

use crate::prelude::*;
pub(crate) use crate::tasks::{is_reserved, reserved_thread, tids};

/// A tenth of a CPU.
pub(crate) const TENTH: &str = "1000000 10000000 10000000";

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
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), all).unwrap();
        let text = BUS.replace("@BUS@", &path("bus").to_string_lossy());
        fs::write(path("bus.conf"), text).unwrap();
        // There is no polkit here to say who may have a priority, unless a test brings it.
        fs::create_dir(path("onbeat.d")).unwrap();
        let all = "[realtimekit]\nwithout-polkit = true\n";
        fs::write(path(WITHOUT_POLKIT), all).unwrap();
        // Tests on a machine that may be idle look at what it does when it acts.
        fs::write(path("onbeat.d/01-always.toml"), "always = true\n").unwrap();
        // The programs of users must be where they may read them.
        for name in ["asking", "audio", "audio_thread", "hostile", "workload"] {
            copy_program(example(name), path(name));
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
        self.bus.0.kill().unwrap();
        self.bus.0.wait().unwrap();
        fs::remove_file(self.path("bus")).unwrap();
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
        Self::with("")
    }

    /// The same, with this configuration.
    pub(crate) fn with(configuration: &str) -> Self {
        Self::with_flags(&[], |_| configuration.to_owned())
    }

    /// The same with a rule that names the machine's workloads.
    pub(crate) fn with_rule(more: &str) -> Self {
        Self::with_flags(&[], |machine| machine.rule(more))
    }

    pub(crate) fn with_flags(
        flags: &[&'static str],
        configuration: impl FnOnce(&Self) -> String,
    ) -> Self {
        let mut machine = Self::bus();
        machine.configure(&configuration(&machine));
        machine.flags = flags.to_vec();
        machine.start();
        machine
    }

    /// Writes the service's configuration.
    pub(crate) fn configure(&self, text: &str) {
        self.write("onbeat.toml", text);
    }

    /// A configuration whose rule names the machine's workloads.
    pub(crate) fn rule(&self, more: &str) -> String {
        let program = self.path("workload");
        let program = program.display();
        format!("scan = \"50ms\"\n[[rule]]\nname = \"mine\"\nprogram = \"{program}\"\n{more}")
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// A new file, for what a program says.
    pub(crate) fn file(&self, name: &str) -> fs::File {
        fs::File::create(self.path(name)).unwrap()
    }

    /// A new folder.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        fs::create_dir(self.path(name)).unwrap();
        self.path(name)
    }

    /// A new folder of the user's, in which programs of a session have their files.
    pub(crate) fn home(&self, uid: u32) -> PathBuf {
        let home = self.folder("home");
        std::os::unix::fs::chown(&home, Some(uid), Some(uid)).unwrap();
        home
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
            let ended = service.0.try_wait().unwrap().is_some();
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
        command
            .arg(env!("CARGO_BIN_EXE_onbeat"))
            .arg("daemon")
            .arg("--config")
            .arg(self.path("onbeat.toml"))
            .args(&self.flags)
            .env("ONBEAT_STATE_DIR", self.state())
            .env("DBUS_SYSTEM_BUS_ADDRESS", self.address())
            .stderr(self.file("log"));
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
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// How many lines of the log have this.
    pub(crate) fn said(&self, part: &str) -> usize {
        let log = self.log();
        log.lines().filter(|line| line.contains(part)).count()
    }

    /// Waits until the log has this.
    pub(crate) fn says(&self, part: &str) {
        until(part, || self.said(part) > 0);
    }

    /// The value of a metric without labels, by the service's answer to Prometheus; it needs the
    /// flags for that.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let log = self.log();
        let (_, place) = log.split_once("http://")?;
        let mut stream = std::net::TcpStream::connect(place.split('/').next()?).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
        let page = std::io::read_to_string(stream).ok()?;
        let mut lines = page.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value?.parse().ok()
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

    /// The same with a home, in a session whose bus is the machine's.
    pub(crate) fn in_session(&self, uid: u32, program: impl AsRef<Path>) -> Command {
        let mut command = self.command(uid, program.as_ref());
        for folder in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"] {
            command.env(folder, self.path("home"));
        }
        command
            .env("DBUS_SESSION_BUS_ADDRESS", self.address())
            .env_remove("DISPLAY")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// The same under a limit of CPU time, without which RealtimeKit gives nothing.
    pub(crate) fn limited(&self, uid: u32, program: impl AsRef<Path>) -> Command {
        let mut command = self.command(uid, Path::new("prlimit"));
        let limit = "--rttime=150000:150000";
        command
            .arg(limit)
            .arg(program.as_ref())
            .stdout(Stdio::null());
        command
    }

    /// A task of `uid`'s under that limit, which does nothing.
    pub(crate) fn limited_sleeper(&self, uid: u32) -> Mortal {
        as_itself(
            Mortal::spawn(self.limited(uid, "sleep").arg("1000")),
            "sleep",
        )
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

    /// onbeat as the user runs it.
    pub(crate) fn onbeat(&self, uid: u32) -> Command {
        let program = self.path("onbeat");
        if !program.exists() {
            copy_program(env!("CARGO_BIN_EXE_onbeat"), &program);
        }
        self.command(uid, &program)
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
        let tid = eventually("its thread", || tids(process.id()).get(1).copied());
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
        until("the workload's threads", || {
            tids(process.id()).len() > threads.len()
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
    until("the program", || comm(process.id()) == name);
    process
}

/// Compiles a C program of this folder to where users may read it.
pub(crate) fn compile(machine: &Machine, source: &str, name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/daemon");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-pthread", "-o"])
        .arg(machine.path(name));
    let compiled = compiler.arg(format!("{folder}/{source}")).status();
    assert!(compiled.expect("cc is there").success());
    machine.path(name)
}

/// The CPU time of a thread, in nanoseconds.
pub(crate) fn executed_ns(tid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{tid}/schedstat")).expect("it lives");
    text.split(' ').next().unwrap().parse().unwrap()
}

/// A figure in KiB of a process's status.
pub(crate) fn in_kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// Whether the task runs a set-user-ID program of root's that Alice executed.
pub(crate) fn is_roots(tid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status"));
    status.is_ok_and(|status| status.contains(&format!("\nUid:\t{ALICE}\t0\t")))
}

/// A program that sleeps, root's, and with his rights: as passwd and su are.
pub(crate) fn set_user_id(machine: &Machine) -> PathBuf {
    let program = machine.path("set-user-id");
    copy_program("/bin/sleep", &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    program
}

/// An example that this package builds with its tests.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
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
        self.output.read_line(&mut line).unwrap();
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

    /// Gets a tenth of a CPU for the thread.
    pub(crate) fn reserve(&mut self, tid: u32) {
        self.done(&format!("reserve {tid} {TENTH}"));
    }

    pub(crate) fn track(&mut self, process: &Mortal) {
        self.done(&format!("track {}", process.id()));
    }

    /// Gets this nice value for the process by RealtimeKit's protocol.
    pub(crate) fn nice(&mut self, process: &Mortal, level: i32) {
        self.done(&format!("nice {0} {0} {level}", process.id()));
    }

    /// One of the statistics.
    pub(crate) fn figure(&mut self, name: &str) -> Value {
        self.told("statistics")[name].clone()
    }

    pub(crate) fn is_about(&mut self, name: &str, value: f64) -> bool {
        let told = self.figure(name).as_f64();
        told.is_some_and(|told| (told - value).abs() < 1e-6)
    }

    /// The threads that the user is told of.
    pub(crate) fn list(&mut self) -> Vec<Value> {
        self.told("list").as_array().unwrap().clone()
    }

    /// The entry of the list for the thread.
    pub(crate) fn listed(&mut self, tid: u32) -> Option<Value> {
        self.list().into_iter().find(|one| one["thread"] == tid)
    }

    /// Whether the thread has a rhythm and a reservation that follows it.
    pub(crate) fn is_kept(&mut self, tid: u32) -> bool {
        is_reserved(tid) && self.listed(tid).is_some_and(|one| one["state"] == "kept")
    }

    /// Some thread of the process that is kept.
    pub(crate) fn kept(&mut self, process: u32) -> Option<u32> {
        tids(process).into_iter().find(|&tid| self.is_kept(tid))
    }

    /// The number of the client's process, and of its first thread.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Has it come to its end; how it ended.
    pub(crate) fn end(self) -> ExitStatus {
        drop(self.input);
        let mut process = self.process;
        process.0.wait().unwrap()
    }

    /// Ends the client's process, without a word to the bus.
    pub(crate) fn die(mut self) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
    }
}

pub(crate) fn policy(tid: u32) -> Policy {
    Attributes::get(tid).expect("the thread lives").policy
}

/// Runtime, deadline and period of its reservation, in nanoseconds.
pub(crate) fn times(tid: u32) -> (u64, u64, u64) {
    match policy(tid) {
        Policy::Deadline(now) => (now.runtime_ns, now.deadline_ns, now.period_ns),
        other => panic!("no reservation: {other:?}"),
    }
}

pub(crate) fn ordinary(nice: i32, reset_on_fork: bool) -> Attributes {
    let policy = Policy::Other(Fair { nice, slice_ns: 0 });
    Attributes {
        policy,
        reset_on_fork,
    }
}

pub(crate) fn nice_of(tid: u32) -> Option<i32> {
    Attributes::get(tid).expect("the thread lives").nice()
}

pub(crate) fn is_ordinary(tid: u32) -> bool {
    Attributes::get(tid)
        .is_ok_and(|now| matches!(now.policy, Policy::Other(_)) && !now.reset_on_fork)
}

/// Waits until the thread has back what it had.
pub(crate) fn goes_back(tid: u32) {
    until("the way back", || is_ordinary(tid));
}
