//! The tracer in the kernel: hears tracked tasks through BPF, at a few hundred nanoseconds a burst.
//!
//! BPF programs on the scheduler's tracepoints keep the state of each tracked task in its task
//! storage and write one record per burst into a ring buffer, without a wakeup (`tracer.bpf.c`).
//! User space collects the records when it polls; only an exhausted budget, if it cannot wait, a
//! buffer that is half full, and the end of the last tracked task wake it early.

mod calls;
mod ends;
mod error;
mod features;
mod inbox;
mod interrupts;
mod load;
mod meter;
mod partners;
mod programs;
mod records;
mod shared;
mod skeleton;
mod waker;
mod wire;

use std::collections::BTreeSet;
use std::io::Read;
use std::os::fd::AsFd;

use libbpf_rs::{Iter, Link};
use onbeat_model::{Event, Flow, Follow, Instant, Origin, RunningProgram, Sensor, Span, TaskId};

pub use calls::CallSet;
pub use ends::{End, Ends};
pub use error::BpfError;
pub use features::{is_likely, probe, probe_tracer, tells_expiries, tells_wakers};
use load::Attached;
pub use meter::{Meter, Spender};
use partners::PartnerCounts;
use records::Records;
use shared::{IteratorCommand, SharedPage, UNWANTED};
pub use waker::Waker;

use crate::workload::{Workload, of_this_machine};
use onbeat_kernel::{proc, wait};

/// The size of the ring buffer, unless an option says otherwise: 16,384 records. 16,000 bursts a
/// second for a second.
const BUFFER_BYTES: u32 = 1 << 20;
/// A thread that begins is told within this time. Short beside the 3 s in which an application
/// begins, and long enough for the threads that one call begins.
const BEGIN_TOGETHER: Span = Span::from_ms(1);

/// The event in a record of the tracer's programs; none if the bytes are no record.
pub fn event_of_record(bytes: &[u8]) -> Option<Event> {
    wire::event(bytes)
}

/// The event in an entry of the map of wakeups, read at `now`; none if the bytes are no entry.
pub fn event_of_wakeups(key: &[u8], value: &[u8], now: Instant) -> Option<Event> {
    partners::woke(key, value, now)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BpfOptions {
    /// Report each wakeup too ([`Event::Wakeup`]), not only the bursts.
    pub raw_wakeups: bool,
    /// Tell whom tracked tasks wake that are not tracked ([`Event::Woke`]), to find who works with
    /// them.
    pub partners: bool,
    /// Tell which processes run a program of a [wanted](Sensor::tell_programs) name; when they
    /// begin to, at most 16 of one user's in a second, and none in a user namespace.
    pub tell_programs: bool,
    /// Tell bursts of one task that come too fast (more than some 2,000 a second) several as one: a
    /// tracked program may mean to keep user space from hearing others.
    pub bound_bursts: bool,
    /// The size of the ring buffer, rounded up to what the kernel takes (a power of two, at least
    /// a page). A record is 64 bytes; what finds no room is lost, and counted.
    pub buffer_bytes: u32,
    /// The largest number of tasks tracked at a time. One that starts when there is no room counts
    /// as one lost event.
    pub most_tasks: u32,
    pub hooks: Hooks,
    /// Tell the beginnings of these system calls, as moments without length, and no bursts; if
    /// there are any.
    pub calls: CallSet,
    /// There may be others to track when the last tracked task is gone: it is not the end then.
    pub endless: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hooks {
    /// On what this kernel takes: BTF tracepoints first.
    #[default]
    Probe,
    /// On BTF tracepoints, with the state of a task in its own storage. Linux 5.11.
    Btf,
    /// On raw tracepoints, with the state of tasks in a hash table: dearer.
    Raw,
}

/// How marks are heard ([`Event::Marked`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkHook {
    /// On the tracepoint of unknown options, which no other `prctl()` passes. Linux 6.13.
    Tracepoint,
    Fentry,
    Kprobe,
    Unheard,
}

impl MarkHook {
    /// The cheapest first.
    const ALL: [Self; 4] = [Self::Tracepoint, Self::Fentry, Self::Kprobe, Self::Unheard];
}

impl Default for BpfOptions {
    /// Bursts only, 4096 tasks, and room for 16,384 records: 0.3 s of 1,000 threads of 50 Hz. Half
    /// of it is read before that.
    fn default() -> Self {
        Self {
            raw_wakeups: false,
            partners: false,
            tell_programs: false,
            bound_bursts: false,
            buffer_bytes: BUFFER_BYTES,
            most_tasks: 4096,
            hooks: Hooks::Probe,
            calls: CallSet::default(),
            endless: false,
        }
    }
}

/// Hears tasks of the running kernel. Tracing ends when it is dropped.
#[derive(Debug)]
pub struct BpfSensor {
    chooser: Link,
    running: Option<Link>,
    mark_hook: MarkHook,
    attached: Attached,
    records: Records,
    partners: Option<PartnerCounts>,
    ends: Ends,
    meter: Meter,
    shared: SharedPage,
    lost: u64,
    missed: u64,
    /// With the hooks that the kernel took.
    options: BpfOptions,
    has_tracked: bool,
    /// A budget that runs out can wait for the end of a poll.
    waker: Waker,
    workload: Workload,
}

impl BpfSensor {
    pub fn new(options: BpfOptions) -> Result<Self, BpfError> {
        if !proc::has_machines_numbers() {
            return Err(BpfError::OtherNumbers);
        }
        let loaded = load::load(&options)?;
        let meter = Meter::new(loaded.meter, loaded.attached.look()?)?;
        Ok(Self {
            chooser: loaded.chooser,
            running: loaded.running,
            mark_hook: loaded.mark_hook,
            attached: loaded.attached,
            records: Records::new(loaded.records)?,
            partners: options
                .partners
                .then(|| PartnerCounts::new(loaded.partners)),
            ends: Ends::new(loaded.ends),
            meter,
            shared: SharedPage::map(&loaded.state)?,
            lost: 0,
            missed: 0,
            options: BpfOptions {
                hooks: loaded.hooks,
                ..options
            },
            has_tracked: false,
            waker: Waker::new()
                .map_err(|e| BpfError::kernel("make an event descriptor")(e.into()))?,
            workload: Workload::default(),
        })
    }

    pub fn tracked(&self) -> u64 {
        self.shared.alive()
    }

    /// The means by which another thread ends a [`poll`](Sensor::poll) before its time.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub fn ends(&self) -> Ends {
        self.ends.clone()
    }

    /// What tasks have used above ordinary priority.
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Where the programs hooked in: never [`Hooks::Probe`].
    pub fn hooks(&self) -> Hooks {
        self.options.hooks
    }

    pub fn tells_calls(&self) -> bool {
        !self.options.calls.is_empty()
    }

    pub fn mark_hook(&self) -> MarkHook {
        self.mark_hook
    }

    /// Sleeps until there is something to say or `longest` is over; false if a signal came.
    fn wait(&self, longest: Span) -> Result<bool, BpfError> {
        wait::readable(&[self.records.as_fd(), self.waker.as_fd()], Some(longest))
            .map_err(|e| BpfError::kernel("wait for the trace")(e.into()))
    }

    fn ask(&mut self, request: IteratorCommand<'_>) -> Result<shared::Answer, BpfError> {
        self.shared.ask(request);
        let mut pass =
            Iter::new(&self.chooser).map_err(BpfError::kernel("read the list of tasks"))?;
        let mut nothing = [0; 64];
        while pass
            .read(&mut nothing)
            .map_err(|e| BpfError::kernel("read the list of tasks")(e.into()))?
            > 0
        {}
        Ok(self.shared.answer())
    }

    /// Moves what the ring buffer holds to `events`; true if some of it cannot wait.
    fn collect(&mut self, events: &mut Vec<Event>) -> Result<bool, BpfError> {
        let urgent = self.records.read()?.hand_over(events);
        let lost = self.shared.lost();
        if lost > self.lost {
            events.push(Event::Lost {
                at: self.now(),
                count: lost - self.lost,
            });
            self.lost = lost;
        }
        let now = self.now();
        if let Some(partners) = &mut self.partners {
            partners.tell(now, events);
        }
        Ok(urgent)
    }
}

impl Sensor for BpfSensor {
    type Error = BpfError;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), BpfError> {
        loop {
            let answer = self.ask(IteratorCommand::Track { tid, follow })?;
            if answer.found == 0 {
                return Err(BpfError::NoSuchTask { tid });
            }
            self.has_tracked = true;
            if answer.refused > 0 && self.shared.alive() < u64::from(self.options.most_tasks) {
                let no_memory = libbpf_rs::Error::from_raw_os_error(libc::ENOMEM);
                return Err(BpfError::kernel("set memory aside for a task")(no_memory));
            }
            if answer.refused > 0 {
                return Err(BpfError::Full {
                    tid,
                    most: self.options.most_tasks,
                });
            }
            // A thread may start another behind the iterator's back until it is tracked itself.
            if answer.added == 0 {
                return Ok(());
            }
        }
    }

    /// As many as the iterator dismisses at a time, for each pass looks at every task of the
    /// machine.
    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), BpfError> {
        for part in tasks.chunks(UNWANTED) {
            self.ask(IteratorCommand::Untrack(part))?;
        }
        self.records.read()?.forget_all(tasks);
        for task in tasks {
            self.workload.forget(*task);
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, BpfError> {
        let mut until = self.now() + timeout;
        let heard = events.len();
        self.records.forget_origins();
        loop {
            let over = !self.options.endless && self.has_tracked && self.shared.alive() == 0;
            let seen = events.len();
            let ran_out = self.collect(events)?;
            let urgent = ran_out | self.waker.was_woken();
            let now = self.now();
            if events[seen..]
                .iter()
                .any(|event| matches!(event, Event::Tracked { .. }))
            {
                until = until.min(now + BEGIN_TOGETHER);
            }
            let left = until.since(now);
            if over || urgent || left.is_zero() || !self.wait(left)? {
                self.workload.forget_exited(&events[heard..]);
                for event in &events[heard..] {
                    if let Event::Exited { task, .. } = event {
                        self.meter.forget(*task);
                    }
                }
                return Ok(if over { Flow::Ended } else { Flow::Open });
            }
        }
    }

    fn assign(&mut self, task: TaskId, application: u32) {
        self.meter.assign(task, application);
    }

    fn spent(&mut self, application: u32) -> Option<Span> {
        // What runs without a switch would be charged when it sleeps.
        self.meter.look();
        Some(self.meter.spent(Spender::Application(application)))
    }

    fn others_real_time(&mut self) -> Option<Instant> {
        self.meter.others_real_time()
    }

    fn tell_programs(&mut self, names: &BTreeSet<String>) -> Result<(), BpfError> {
        self.attached.programs.tell(names)
    }

    fn programs(&mut self) -> Result<Vec<RunningProgram>, BpfError> {
        let why = BpfError::kernel("read the list of programs");
        let mut bytes = Vec::new();
        match &self.running {
            Some(running) => Iter::new(running).map_err(why)?.read_to_end(&mut bytes),
            None => Ok(0),
        }
        .map_err(|e| BpfError::kernel("read the list of programs")(e.into()))?;
        Ok(programs::all(&bytes))
    }

    fn take_begun(&mut self) -> Vec<RunningProgram> {
        self.records.take_begun()
    }

    fn origin(&self, task: TaskId) -> Option<Origin> {
        self.records.origin(task)
    }

    fn take_missed_starts(&mut self) -> bool {
        let missed = self.shared.missed();
        std::mem::replace(&mut self.missed, missed) != missed
    }

    of_this_machine!();
}
