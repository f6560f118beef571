//! The kernel's scheduling events that would have shown the bursts of threads, for the tools that
//! read Perfetto's traces of a whole system.
//!
//! A burst does not tell its CPU, nor when it was preempted. Each is on the first lane that is
//! free, which stands for a CPU, and all that it waited after it first ran is one pause in its
//! middle.

use std::collections::HashMap;
use std::io::{self, Write};

use onbeat_model::{Burst, Event, Instant};

use crate::Timeline;
use crate::packet::{
    FtraceEvent, FtraceEventBundle, ProcessTree, Said, SchedSwitch, SchedThread, Thread,
    TracePacket,
};

/// `common_flags` of an event in an interrupt.
const HARD_INTERRUPT: u32 = 0x08;
/// `prev_state` of a thread that still wants to run, and of one that sleeps.
const READY: i64 = 0;
const ASLEEP: i64 = 1;

/// A schedule that is being written. The first error ends the writing; [`finish`](Self::finish)
/// returns it.
#[derive(Debug)]
pub struct Schedule<W> {
    timeline: Timeline<W>,
    names: HashMap<u32, String>,
    /// Until when each is in use.
    lanes: Vec<Instant>,
    lost: bool,
}

impl<W: Write> Schedule<W> {
    pub fn new(output: W) -> Self {
        Self {
            timeline: Timeline::new(output),
            names: HashMap::new(),
            lanes: Vec::new(),
            lost: false,
        }
    }

    /// Writes what is known of threads, their bursts and their ends. Bursts must come in the order
    /// of their ends.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Tracked { task, .. } | Event::Renamed { task, .. } => {
                let (tid, name) = (task.id.tid, task.comm.to_text());
                self.names.insert(tid, name.clone());
                let tgid = task.pid;
                self.timeline.write(TracePacket {
                    timestamp: Some(event.at().as_ns()),
                    process_tree: Some(ProcessTree {
                        threads: vec![Thread { tid, name, tgid }],
                    }),
                    ..TracePacket::default()
                });
            }
            Event::Burst(burst) => self.burst(burst),
            Event::Exited { at, task } => {
                let exit = Said::Exit(self.thread(task.tid));
                self.bundle(0, vec![event_of(*at, task.tid, 0, exit)]);
            }
            Event::Lost { .. } => self.lost = true,
            _ => {}
        }
    }

    pub fn finish(self) -> io::Result<()> {
        self.timeline.finish()
    }

    fn thread(&self, pid: u32) -> SchedThread {
        let comm = self.names.get(&pid).cloned().unwrap_or_default();
        SchedThread { comm, pid }
    }

    fn burst(&mut self, burst: &Burst) {
        let (begin, end) = (burst.first_ran, burst.blocked);
        let free = self.lanes.iter().position(|&until| until <= begin);
        let lane = free.unwrap_or(self.lanes.len());
        if lane == self.lanes.len() {
            self.lanes.push(end);
        }
        self.lanes[lane] = end;
        let flags = if burst.waker == 0 { HARD_INTERRUPT } else { 0 };
        let thread = self.thread(burst.task.tid);
        let idle = SchedThread {
            comm: "swapper".to_owned(),
            pid: 0,
        };
        let to_it = |at| switch(at, &idle, READY, &thread);
        let from_it = |at, state| switch(at, &thread, state, &idle);
        let woken = Said::Waking(thread.clone());
        let mut events = vec![
            event_of(burst.woke, burst.waker, flags, woken),
            to_it(begin),
        ];
        let waited = end.since(begin) - burst.executed;
        if burst.preempted > 0 || burst.exhausted {
            let pause = begin + burst.executed / 2;
            events.extend([from_it(pause, READY), to_it(pause + waited)]);
        }
        events.push(from_it(end, ASLEEP));
        self.bundle(u32::try_from(lane).unwrap_or(u32::MAX), events);
    }

    fn bundle(&mut self, cpu: u32, event: Vec<FtraceEvent>) {
        let lost_events = std::mem::take(&mut self.lost);
        self.timeline.write(TracePacket {
            ftrace_events: Some(FtraceEventBundle {
                cpu: Some(cpu),
                event,
                lost_events,
            }),
            ..TracePacket::default()
        });
    }
}

fn switch(at: Instant, from: &SchedThread, state: i64, to: &SchedThread) -> FtraceEvent {
    let said = Said::Switch(SchedSwitch {
        prev_comm: from.comm.clone(),
        prev_pid: Some(from.pid),
        prev_state: Some(state),
        next_comm: to.comm.clone(),
        next_pid: Some(to.pid),
    });
    event_of(at, from.pid, 0, said)
}

fn event_of(at: Instant, running: u32, flags: u32, said: Said) -> FtraceEvent {
    FtraceEvent {
        timestamp: Some(at.as_ns()),
        pid: Some(running),
        common_flags: Some(flags),
        said: Some(said),
    }
}
