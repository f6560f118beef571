//! The sensor of the tracers that hear switches outside the kernel (tracefs, perf): what it says
//! does not depend on where the switches are read.

use onbeat_model::{Event, Flow, Follow, Sensor, Span, TaskId};

use crate::task_set::{Followed, ThreadStatus, threads_of};
use crate::workload::{Workload, of_this_machine};
use onbeat_kernel::clock;

pub trait Source {
    type Error: std::error::Error + Send + Sync + 'static;

    /// Has the thread `tid` heard, and what it starts; false if it is gone.
    fn add(&mut self, tid: u32) -> Result<bool, Self::Error>;

    /// Tells what happened up to now, in its order.
    fn collect(
        &mut self,
        followed: &mut Followed,
        events: &mut Vec<Event>,
    ) -> Result<(), Self::Error>;

    /// Sleeps until there is something to read, but no longer than `longest`; false if a signal
    /// came.
    fn wait(&mut self, longest: Span) -> Result<bool, Self::Error>;

    /// There is no thread `tid` to be heard.
    fn nobody(tid: u32) -> Self::Error;
}

/// Hears threads by a [`Source`]. Tracing ends when it is dropped.
#[derive(Debug)]
pub struct Following<S> {
    source: S,
    followed: Followed,
    outbox: Vec<Event>,
    workload: Workload,
}

impl<S> Following<S> {
    pub(crate) fn by(source: S) -> Self {
        Self {
            source,
            followed: Followed::default(),
            outbox: Vec::new(),
            workload: Workload::default(),
        }
    }
}

impl<S: Source> Sensor for Following<S> {
    type Error = S::Error;

    fn track(&mut self, tid: u32, follow: Follow) -> Result<(), S::Error> {
        // The events of a thread from before it is tracked are not told.
        self.source.collect(&mut self.followed, &mut self.outbox)?;
        let mut known = Vec::new();
        loop {
            let mut found = threads_of(tid);
            found.retain(|&thread| {
                !known.contains(&thread) && (follow != Follow::Alone || thread == tid)
            });
            if found.is_empty() {
                break;
            }
            for thread in found {
                known.push(thread);
                if self.source.add(thread)?
                    && let Some(seen) = ThreadStatus::look(thread)
                {
                    let now = clock::now();
                    self.followed.track(now, seen, follow, &mut self.outbox);
                }
            }
        }
        if known.iter().any(|&thread| self.followed.has(thread)) {
            Ok(())
        } else {
            Err(S::nobody(tid))
        }
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), S::Error> {
        for &task in tasks {
            self.followed.untrack(task);
            self.workload.forget(task);
            self.outbox.retain(|event| event.task() != Some(task));
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, S::Error> {
        let until = clock::now() + timeout;
        let heard = events.len();
        events.append(&mut self.outbox);
        loop {
            let over = self.followed.is_over();
            self.source.collect(&mut self.followed, events)?;
            let left = until.since(clock::now());
            if over || self.followed.is_over() || left.is_zero() || !self.source.wait(left)? {
                break;
            }
        }
        self.workload
            .forget_exited(events.get(heard..).unwrap_or_default());
        Ok(if self.followed.is_over() {
            Flow::Ended
        } else {
            Flow::Open
        })
    }

    of_this_machine!();
}
