//! The tracer for every user: a program that onbeat starts stops at the system calls in which it
//! can wait, and nowhere else.
//!
//! LFS++, section 6.2, and its QOSTRACE: tracing by `ptrace` needs no privilege. A seccomp filter,
//! which the program gets before its `exec`, lets all other calls run at full speed. The stops are
//! understood in `burst_builder`.
//!
//! Nothing outlives the tracer: without it a chosen call would fail, so that the kernel kills what
//! is traced if onbeat dies. A program that raises its privileges (set-user-ID) runs without them,
//! unless onbeat has CAP_SYS_ADMIN and CAP_SYS_PTRACE. No debugger can attach to what is traced.

mod burst_builder;
pub(crate) mod filter;
mod probe;
mod tracer;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use onbeat_model::{Event, Flow, Follow, Sensor, Span, TaskId};

pub use filter::Filter;

use crate::calls::Call;
use crate::identity;
use crate::inbox::Inbox;
use crate::preparation::{ExitStatuses, Preparation};
use crate::workload::{Workload, of_this_machine};

#[derive(Debug, thiserror::Error)]
pub enum PtraceError {
    #[error(
        "process {tid} was not started by onbeat: the ptrace tracer sees only programs that it starts itself; \
         start it under onbeat, or take another tracer"
    )]
    NotStartedHere { tid: u32 },
    #[error(
        "may not trace process {tid} ({source}): another tracer (gdb, strace) may hold it; end that, or take another \
         tracer"
    )]
    Refused { tid: u32, source: io::Error },
    #[error("ptrace is forbidden here ({source}): {remedy}")]
    Forbidden {
        source: io::Error,
        remedy: &'static str,
    },
    #[error(
        "a program cannot have a seccomp filter here ({source}): boot a kernel built with CONFIG_SECCOMP_FILTER=y; in a \
         container, have its own filter allow that"
    )]
    NoFilter { source: io::Error },
    #[error("a program does not stop at the calls of its seccomp filter here: take another tracer")]
    NeverStops,
    #[error(
        "/proc/TID/schedstat says nothing, and so not what a thread did between two calls: boot a kernel built with \
         CONFIG_SCHEDSTATS=y"
    )]
    NoAccount,
    #[error("cannot start a process to try ptrace with: {source}")]
    NoProcess { source: io::Error },
}

/// Hears programs that this process starts. The starter of a program has it wait, tracks it, and
/// lets it go on to install the filter of its [`preparation`](Self::preparation) and to execute the
/// program.
#[derive(Debug)]
pub struct PtraceSensor {
    calls: Vec<Call>,
    inbox: Arc<Inbox>,
    ignored: HashSet<TaskId>,
    workload: Workload,
}

impl PtraceSensor {
    pub fn new(calls: &[Call]) -> Result<Self, PtraceError> {
        probe::run()?;
        let own = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        if burst_builder::SchedStat::parse(&own).is_none_or(|own| own.slices == 0) {
            return Err(PtraceError::NoAccount);
        }
        Ok(Self {
            calls: calls.to_vec(),
            inbox: Arc::default(),
            ignored: HashSet::new(),
            workload: Workload::default(),
        })
    }

    /// The filter that a program is to install before it is executed, and the thread that tells how
    /// it ended.
    pub fn preparation(&self) -> Preparation {
        Preparation {
            filter: Some(Filter::new(&self.calls)),
            ends: Some(ExitStatuses(Arc::clone(&self.inbox))),
            ..Preparation::default()
        }
    }
}

impl Sensor for PtraceSensor {
    type Error = PtraceError;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), PtraceError> {
        if identity::parent(tid) != Some(std::process::id()) {
            return Err(PtraceError::NotStartedHere { tid });
        }
        tracer::start(tid, follow, &self.inbox)
            .map_err(|source| PtraceError::Refused { tid, source })
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), PtraceError> {
        tasks.iter().for_each(|task| self.workload.forget(*task));
        self.ignored.extend(tasks);
        Ok(())
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, PtraceError> {
        let mut heard = Vec::new();
        let over = self.inbox.collect(timeout, &mut heard);
        heard.retain(|event| {
            let task = event.task();
            task.is_none_or(|task| !self.ignored.contains(&task))
        });
        self.workload.forget_exited(&heard);
        events.append(&mut heard);
        Ok(if over { Flow::Ended } else { Flow::Open })
    }

    of_this_machine!();
}
