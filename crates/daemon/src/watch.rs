//! The meter, and the thread that ends what the meter says is overdrawn, and boosts when the loop
//! stands still. The service has them, and so has a command that acts by itself.

use std::io;

use onbeat_act::attributes::{Attributes, Policy};
use onbeat_act::watcher::{HearsChanges, Loses, Watcher, lower};
use onbeat_model::{Bandwidth, Instant, Span, TaskId};
use onbeat_sense::bpf::Meter;

/// The meter's window, in which a task may lend its reservation's part, or this if that is less: an
/// honest holder of a lock, in PipeWire or JACK, has it for microseconds.
const LENDING: Span = Span::from_ms(100);
pub const LENT: Span = Span::from_ms(5);
/// The same while its account has used too much: many that lend a little each would go on.
const LENT_IN_DEBT: Span = Span::from_us(100);

/// See the file's head. Copies are of the same.
#[derive(Clone, Debug)]
pub struct Watch {
    pub meter: Meter,
    watcher: Watcher,
    least: Span,
}

impl Watch {
    /// Starts the thread, which calls `tell` when one more task is overdrawn.
    /// Fails if there can be no such thread.
    pub fn start(meter: Meter, least: Span, tell: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (waited_on, looked_at) = (meter.clone(), meter.clone());
        let wait = move |time| {
            let is_woken = waited_on.wait(time);
            if is_woken {
                tell();
            }
            is_woken
        };
        let watcher = Watcher::start(wait, move |stands_still| {
            looked_at.look();
            // Again, while the loop has not heard of it: it may have just put back what is lowered.
            looked_at.overdrawn(|task, _| _ = lower(task.tid, Loses::Lendable));
            let mut is_needed = false;
            looked_at.lenders(|task| {
                is_needed = true;
                let _ = stands_still && lower(task.tid, Loses::Boost);
            });
            is_needed
        })?;
        Ok(Self {
            meter,
            watcher,
            least,
        })
    }

    /// The loop turns, and does so again by `next`.
    pub fn turned(&self, next: Instant) {
        self.watcher.turned(next);
    }

    /// What it may lend from now on, as [`changed`](HearsChanges::changed) says.
    pub fn lends(&self, task: TaskId, is_given: bool, is_in_debt: bool) {
        let now = Attributes::get(task.tid).ok();
        let ours = now.filter(|now| now.reset_on_fork).map(|now| now.policy);
        let allowance = if let Some(Policy::Deadline(held)) = ours {
            let [runtime, period] = [held.runtime_ns, held.period_ns].map(Span::from_ns);
            let part = Bandwidth::of(runtime, period).runtime_in(LENDING);
            Some(part.max(self.least))
        } else {
            is_given.then_some(LENT)
        };
        let most = if is_in_debt { LENT_IN_DEBT } else { Span::MAX };
        self.meter.lends(task, allowance.map(|it| it.min(most)));
        if allowance.is_some() {
            self.watcher.wake();
        }
    }
}

impl HearsChanges for Watch {
    fn changed(&self, task: TaskId, is_given: bool) {
        self.lends(task, is_given, false);
    }
}
