//! The traced program (roles.c) and the sensor that hears it, as the tests handle them.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use onbeat_kernel::proc::started_ticks;
use onbeat_model::{Burst, Event, Flow, Follow, Sensor, Span, TaskId};
use onbeat_sense::bpf::{BpfOptions, BpfSensor, Hooks};

/// After this long, what should come to pass never will.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// Lets the thread go before all ordinary ones, and nothing that it starts.
pub(crate) fn set_round_robin(tid: u32) {
    set_real_time(tid, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK);
}

pub(crate) fn set_real_time(tid: u32, policy: i32) {
    let parameters = libc::sched_param { sched_priority: 1 };
    let tid = i32::try_from(tid).unwrap();
    // SAFETY: the parameters outlive the call.
    let set = unsafe { libc::sched_setscheduler(tid, policy, &raw const parameters) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// The sensor; none, with the reason printed, where a user's machine cannot have it.
pub(crate) fn sensor(options: BpfOptions) -> Option<BpfSensor> {
    match BpfSensor::new(options) {
        Ok(sensor) => Some(sensor),
        Err(error) if std::env::var_os("CI").is_some() => panic!("{error}"),
        Err(error) => {
            let test = thread::current();
            println!("skipped: {}: {error}", test.name().unwrap_or("live"));
            None
        }
    }
}

/// A sensor with these options; ends a test that cannot have it.
macro_rules! sensor_or_skip {
    ($($option:ident: $value:expr),*) => {{
        let defaults = onbeat_sense::bpf::BpfOptions::default();
        let options = onbeat_sense::bpf::BpfOptions { $($option: $value,)* ..defaults };
        match crate::role::sensor(options) {
            Some(sensor) => sensor,
            None => return,
        }
    }};
}
pub(crate) use sensor_or_skip;

/// A sensor with each kind of hooks, which must not differ.
pub(crate) fn sensors(options: BpfOptions) -> impl Iterator<Item = (Hooks, BpfSensor)> {
    [Hooks::Btf, Hooks::Raw]
        .into_iter()
        .filter_map(move |hooks| Some((hooks, sensor(BpfOptions { hooks, ..options })?)))
}

/// The events of the sensor up to now, but for waits, which depend on what else the machine does.
pub(crate) fn heard(sensor: &mut impl Sensor) -> Vec<Event> {
    let mut events = Vec::new();
    sensor.poll(Span::ZERO, &mut events).unwrap();
    events.retain(|event| !matches!(event, Event::Waited { .. }));
    events
}

pub(crate) fn heard_to_the_end(sensor: &mut impl Sensor) -> Vec<Event> {
    let mut events = Vec::new();
    eventually("every tracked task is gone", || {
        sensor.poll(Span::from_ms(10), &mut events).unwrap() == Flow::Ended
    });
    events.retain(|event| !matches!(event, Event::Waited { .. }));
    events
}

pub(crate) fn bursts_of(events: &[Event], task: TaskId) -> Vec<Burst> {
    let burst = |event: &Event| match event {
        Event::Burst(burst) if burst.task == task => Some(*burst),
        _ => None,
    };
    events.iter().filter_map(burst).collect()
}

/// The tasks alive after `events`, by what they tell alone.
pub(crate) fn alive_after(events: &[Event]) -> Vec<TaskId> {
    let mut alive = Vec::new();
    for event in events {
        match event {
            Event::Tracked { task, .. } => {
                assert!(!alive.contains(&task.id), "{task:?} tracked twice");
                alive.push(task.id);
            }
            Event::Exited { task, .. } => {
                let at = alive.iter().position(|t| t == task);
                alive.remove(at.expect("only what was tracked exits"));
            }
            _ => {}
        }
    }
    alive
}

pub(crate) struct Role {
    process: Child,
    commands: Option<ChildStdin>,
    answers: ChildStdout,
}

impl Role {
    pub(crate) fn start() -> Self {
        let role = Self::of(&mut Command::new(program(false)));
        role.settle();
        role
    }

    pub(crate) fn tracked_by<S: Sensor<Error: std::fmt::Debug>>(sensor: &mut S) -> Self {
        let role = Self::start();
        sensor.track(role.pid(), Follow::Threads).unwrap();
        role
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut role = Self {
            commands: process.stdin.take(),
            answers: process.stdout.take().unwrap(),
            process,
        };
        role.hear_answer();
        role
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn id(&self) -> TaskId {
        TaskId {
            tid: self.pid(),
            started_ticks: started_ticks(self.pid()).unwrap(),
        }
    }

    pub(crate) fn other_threads(&self) -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let number = |entry: std::io::Result<fs::DirEntry>| {
            let name = entry.unwrap().file_name();
            name.to_str().unwrap().parse().unwrap()
        };
        let mut others: Vec<u32> = tasks.map(number).filter(|tid| *tid != self.pid()).collect();
        others.sort_unstable();
        others
    }

    pub(crate) fn tell(&mut self, command: u8) {
        let commands = self.commands.as_mut().expect("not dismissed yet");
        commands.write_all(&[command]).unwrap();
    }

    fn hear_answer(&mut self) {
        self.answers.read_exact(&mut [0]).unwrap();
    }

    /// Gives a command and waits until it is carried out and the role is blocked again.
    pub(crate) fn ask(&mut self, command: u8) {
        self.tell(command);
        self.hear_answer();
        self.settle();
    }

    /// Waits until it is off the CPU, asleep in a read. (`/proc/TID/syscall` says "running" of a
    /// task that is on a run queue, also of one about to sleep.)
    fn settle(&self) {
        let path = format!("/proc/{}/syscall", self.pid());
        let asleep = format!("{} 0x0 ", libc::SYS_read);
        eventually("the role waits for a command", || {
            fs::read_to_string(&path).is_ok_and(|call| call.starts_with(&asleep))
        });
    }

    pub(crate) fn account_ns(&self) -> u64 {
        let account = fs::read_to_string(format!("/proc/{}/schedstat", self.pid())).unwrap();
        account.split(' ').next().unwrap().parse().unwrap()
    }

    /// Closes its standard input, at which it exits, and waits for that.
    pub(crate) fn dismiss(&mut self) {
        self.commands = None;
        self.process.wait().unwrap();
    }

    /// Has it carry out `command` and exit, without waiting for either.
    pub(crate) fn dismiss_after(&mut self, command: u8) {
        self.tell(command);
        self.commands = None;
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // Both fail on a process that is gone already, as it should be.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Compiles roles.c, once, with the compiler that the crate's build needs anyway.
pub(crate) fn program(is_static: bool) -> &'static PathBuf {
    static PROGRAMS: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
    PROGRAMS[usize::from(is_static)].get_or_init(|| {
        let kind = if is_static { "static" } else { "dynamic" };
        let name = format!("roles-{kind}-{}", std::process::id());
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        compile(is_static, &program);
        program
    })
}

fn compile(is_static: bool, to: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/roles.c");
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../../libonbeat/include");
    let compiled = Command::new("clang")
        .args(["-O1", "-Wall", "-Werror", "-pthread", "-I", library, "-o"])
        .args([to.as_os_str(), source.as_ref()])
        .args(is_static.then_some("-static"))
        .status();
    assert!(compiled.is_ok_and(|status| status.success()), "roles.c");
}
