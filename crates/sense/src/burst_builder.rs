//! One thread's course between sleep and CPU, as raw events tell it: what makes a burst.
//!
//! A burst runs from a wakeup to the switch at which the thread no longer wants the CPU. Recordings
//! have holes: some switches are hidden from tracing, others were filtered away. Missing events are
//! not made up, but some can be concluded:
//! - Woken and not yet seen to run, the thread writes an event itself: it has run since then, or
//!   since its wakeup if the wakeup was handled on the same CPU and that was idle, or if every
//!   switch is recorded that the kernel does not hide: some kernels hide those from an idle CPU,
//!   and no other.
//! - Woken and woken again: it ran and slept in between unseen, or its switches were not recorded
//!   at all. That burst has no length, at its wakeup.
//! - On a CPU, and another thread is seen there: it left at the last sign of it; whether it slept
//!   shows in whether a wakeup is next.
//! - On a CPU though it was never woken: a burst begins at the switch.

use onbeat_model::{Burst, Instant, TaskId};

use crate::switch_event::WakeupKind;

/// The known state of a thread. Each method is something seen, and gives the burst that it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BurstState {
    /// Nothing yet, or events were lost: what is going on began unseen.
    Unknown,
    Asleep,
    Woken {
        burst: Burst,
        by: WakeupKind,
        unseen: Unseen,
    },
    Running {
        open: OpenBurst,
        since: Instant,
        seen: Instant,
        cpu: Option<u32>,
        woken_again: Option<Wakeup>,
    },
    Preempted(OpenBurst),
    /// Off the CPU, and it is unknown why.
    Left(OpenBurst),
    Gone,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenBurst {
    burst: Burst,
    whole: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wakeup {
    pub(crate) at: Instant,
    pub(crate) kind: WakeupKind,
    /// The thread that woke it; zero if unknown.
    pub(crate) waker: u32,
    pub(crate) cpu: Option<u32>,
    /// The thread that ran there; zero for the idle task.
    pub(crate) current: u32,
    /// Every switch to the thread is recorded, unless the kernel hides it.
    pub(crate) switches: bool,
}

impl Wakeup {
    fn unseen(&self) -> Unseen {
        match self.cpu.filter(|_| self.current == 0) {
            _ if self.switches => Unseen::AtOnce,
            Some(cpu) => Unseen::AtOnceOn(cpu),
            None => Unseen::Later,
        }
    }
}

/// When a woken thread that is seen running got the CPU, if the switch to it was not seen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unseen {
    /// When it was woken.
    AtOnce,
    /// When it was woken if it runs on this CPU, which was idle then.
    AtOnceOn(u32),
    /// It is not known; before it was seen.
    Later,
}

impl Unseen {
    fn is_at_once(self, cpu: Option<u32>) -> bool {
        match self {
            Self::AtOnce => true,
            Self::AtOnceOn(idle) => cpu == Some(idle),
            Self::Later => false,
        }
    }
}

impl OpenBurst {
    fn new(task: TaskId, (woke, waker): (Instant, u32), first_ran: Instant, whole: bool) -> Self {
        let burst = Burst {
            woke,
            waker,
            ..Burst::pulse(task, first_ran)
        };
        Self { burst, whole }
    }

    fn ran(mut self, from: Instant, to: Instant) -> Self {
        self.burst.executed += to.since(from);
        self.burst.blocked = self.burst.blocked.max(to);
        self
    }

    fn ended(self) -> Option<Burst> {
        self.whole.then_some(self.burst)
    }
}

impl BurstState {
    const fn running(open: OpenBurst, since: Instant, cpu: Option<u32>) -> Self {
        Self::Running {
            open,
            since,
            seen: since,
            cpu,
            woken_again: None,
        }
    }

    pub(crate) fn woken(&mut self, task: TaskId, wakeup: Wakeup) -> Option<Burst> {
        let unseen = wakeup.unseen();
        let woken = Self::Woken {
            burst: OpenBurst::new(task, (wakeup.at, wakeup.waker), wakeup.at, true).burst,
            by: wakeup.kind,
            unseen,
        };
        let ended = match *self {
            Self::Unknown | Self::Asleep => None,
            Self::Woken {
                burst,
                by: WakeupKind::Waking,
                ..
            } if wakeup.kind != WakeupKind::Waking => {
                *self = Self::Woken {
                    burst,
                    by: wakeup.kind,
                    unseen,
                };
                return None;
            }
            Self::Woken { burst, .. } => Some(burst),
            Self::Running {
                open,
                since,
                seen,
                cpu: Some(cpu),
                ..
            } if Some(cpu) == wakeup.cpu && wakeup.current != task.tid => {
                open.ran(since, seen).ended()
            }
            Self::Running {
                ref mut woken_again,
                ..
            } => {
                *woken_again = Some(wakeup);
                return None;
            }
            Self::Left(open) => open.ended(),
            Self::Preempted(_) => return None,
            Self::Gone if wakeup.kind == WakeupKind::New => None,
            Self::Gone => return None,
        };
        *self = woken;
        ended
    }

    /// It wrote an event on `cpu`, so it is running, even if no switch to it was seen.
    pub(crate) fn seen_running(&mut self, at: Instant, cpu: Option<u32>) {
        match self {
            Self::Woken { burst, unseen, .. } => {
                let mut burst = *burst;
                burst.first_ran = if unseen.is_at_once(cpu) {
                    burst.woke
                } else {
                    at
                };
                let open = OpenBurst { burst, whole: true };
                *self = Self::running(open, burst.first_ran, cpu);
            }
            Self::Running { seen, cpu: own, .. } => {
                *seen = at;
                *own = cpu.or(*own);
            }
            _ => {}
        }
    }

    pub(crate) fn on_cpu(&mut self, task: TaskId, at: Instant, cpu: Option<u32>) -> Option<Burst> {
        let mut ended = None;
        let open = match *self {
            Self::Unknown => OpenBurst::new(task, (at, 0), at, false),
            Self::Asleep => OpenBurst::new(task, (at, 0), at, true),
            Self::Woken { mut burst, .. } => {
                burst.first_ran = at;
                OpenBurst { burst, whole: true }
            }
            Self::Preempted(open) | Self::Left(open) => open,
            Self::Running {
                open,
                since,
                seen,
                woken_again,
                ..
            } => {
                let open = open.ran(since, seen);
                match woken_again {
                    None => open,
                    Some(wakeup) => {
                        ended = open.ended();
                        OpenBurst::new(task, (wakeup.at, wakeup.waker), at, true)
                    }
                }
            }
            Self::Gone => return None,
        };
        *self = Self::running(open, at, cpu);
        ended
    }

    pub(crate) fn off_cpu(&mut self, task: TaskId, at: Instant, ready: bool) -> Option<Burst> {
        let mut open = match *self {
            Self::Unknown | Self::Asleep => OpenBurst::new(task, (at, 0), at, false),
            Self::Woken { burst, .. } => OpenBurst { burst, whole: true },
            Self::Preempted(open) | Self::Left(open) => open,
            Self::Running { open, since, .. } => open.ran(since, at),
            Self::Gone => return None,
        };
        if ready {
            open.burst.preempted = open.burst.preempted.saturating_add(1);
            *self = Self::Preempted(open);
            return None;
        }
        open.burst.blocked = at;
        *self = Self::Asleep;
        open.ended()
    }

    /// Another thread was seen on `cpu`, where this one was thought to be.
    pub(crate) fn displaced(&mut self, cpu: u32) {
        match *self {
            Self::Running {
                open,
                since,
                seen,
                cpu: Some(own),
                woken_again: None,
            } if own == cpu => *self = Self::Left(open.ran(since, seen)),
            _ => {}
        }
    }

    pub(crate) fn exited(&mut self, at: Instant) -> Option<Burst> {
        let ended = match *self {
            Self::Running { open, since, .. } => open.ran(since, at).ended(),
            // It must have run to exit, unseen.
            Self::Woken { burst, .. } => Some(burst),
            Self::Left(open) | Self::Preempted(open) => open.ended(),
            Self::Unknown | Self::Asleep | Self::Gone => None,
        };
        *self = Self::Gone;
        ended
    }

    /// Events were lost: nothing is known any more, except that the dead stay dead.
    pub(crate) fn lost(&mut self) {
        if !matches!(self, Self::Gone) {
            *self = Self::Unknown;
        }
    }
}
