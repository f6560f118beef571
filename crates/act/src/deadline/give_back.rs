//! Giving tasks back what they had: when, how long a throttled one is waited for, and what the
//! books say afterwards.

use onbeat_model::{Instant, Refusal, Span, TaskId};

use super::{DeadlineActuator, ReservedTask, TaskOwnership};
use crate::attributes::with_kept_nice;
use crate::deadline::MARGIN;
use crate::server::{Leaving, SchedulerClock, Server, leave};
use crate::task;
use onbeat_kernel::{clock, wait};

/// Between two looks at a throttled task: one file is read each time.
const LOOK_EVERY: Span = Span::from_ms(2);
/// How long a throttled task is waited for: until the next one, or, after an overrun, the second.
const PERIODS_OF_PATIENCE: u64 = 2;

impl DeadlineActuator {
    /// Gives every task back, waiting up to `patience` for those that are better waited for.
    /// Answers which could not be given back, and why; those stay in the state file.
    pub fn release_all(&mut self, patience: Span) -> Vec<(TaskId, Refusal)> {
        let end = clock::now() + patience;
        while clock::now() < end {
            let refused = self.give_all_back(true);
            if !refused.iter().any(|(_, why)| why.retry_at().is_some()) {
                return refused;
            }
            wait::sleep(LOOK_EVERY);
        }
        self.give_all_back(false)
    }

    fn give_all_back(&mut self, waits: bool) -> Vec<(TaskId, Refusal)> {
        let held = |entry: &TaskOwnership| matches!(entry, TaskOwnership::Held(_));
        let tasks = self.tasks.iter().filter(|(_, entry)| held(entry));
        let mut tasks: Vec<TaskId> = tasks.map(|(&task, _)| task).collect();
        tasks.sort_unstable();
        let refusals = tasks
            .into_iter()
            .filter_map(|task| Some((task, self.give_back(task, waits).err()?)))
            .filter(|(_, refusal)| *refusal != Refusal::Gone);
        refusals.collect()
    }

    /// A task that has ended with its reservation is [`Refusal::Gone`], once. One that is better
    /// waited for is refused with the time to ask again, if the caller `waits`.
    pub(super) fn give_back(&mut self, task: TaskId, waits: bool) -> Result<(), Refusal> {
        let is_held = matches!(self.tasks.get(&task), Some(TaskOwnership::Held(_)));
        let held = match self.look_at_held(task) {
            Ok((_, Some(held))) => held,
            Ok((_, None)) => return Ok(()),
            Err(Refusal::Gone) if !is_held => return Ok(()),
            Err(refusal) => return Err(refusal),
        };
        let server = Server::read(task);
        let asleep = task::is_asleep(task);
        if waits
            && server.is_some_and(|server| server.is_throttled())
            && let Some(until) = self.wait_for(task, held, clock::now())
        {
            return Err(Refusal::Settling { until });
        }
        match leave(task, server, asleep, &held.set, &held.before) {
            Ok(Leaving::TakenOver(now)) => Err(self.take_over(task, now)),
            Ok(Leaving::Left) => {
                let until = self.settled_by(&held, server, asleep);
                self.tasks.remove(&task);
                self.leave_books(task, held.reservation, until);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                self.forget(task);
                Err(Refusal::Gone)
            }
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(Refusal::NotPermitted {
                advice: format!(
                    "task {task} cannot get {} back: run 'onbeat restore' with CAP_SYS_NICE",
                    held.before
                ),
            }),
            Err(error) => Err(task::refused(task.tid, &error)),
        }
    }

    /// When the kernel has forgotten a reservation that has just been left.
    fn settled_by(&mut self, held: &ReservedTask, server: Option<Server>, asleep: bool) -> Instant {
        let now = clock::now();
        let least = held.settled_by(now);
        if self.clock.is_none_or(|clock| clock.is_stale(now)) {
            self.clock = SchedulerClock::measure().or(self.clock);
        }
        match (server, self.clock) {
            (Some(server), Some(clock)) => {
                let zero_lag = server.zero_lag(held.reservation, asleep, &clock);
                least.max(zero_lag + MARGIN)
            }
            _ => least,
        }
    }

    /// A task that is throttled for good is helped by leaving: its 0-lag time being past, the
    /// kernel forgets its server at once. Then it is reserved anew. One that pays by another's
    /// reservation goes without its own until it has. Answers whether it still has its reservation.
    pub(super) fn unstick(&mut self, task: TaskId, held: ReservedTask) -> bool {
        let Some((server, clock)) = Server::read(task).zip(self.clock) else {
            return true;
        };
        let now = clock::now();
        if server.pays_for_another(held.reservation, &clock, now) {
            return self.give_back(task, false).is_err();
        }
        if task::is_asleep(task) || !server.is_stuck(held.reservation, &clock, now) {
            return true;
        }
        let before = with_kept_nice(held.before, &held.set, task.tid);
        if before.and_then(|before| before.set(task.tid)).is_err() {
            return true;
        }
        if held.set.set(task.tid).is_ok() {
            return true;
        }
        self.tasks.remove(&task);
        self.leave_books(task, held.reservation, held.settled_by(now));
        false
    }

    /// When to look at the throttled task again; none if it has been waited for long enough.
    fn wait_for(&mut self, task: TaskId, held: ReservedTask, now: Instant) -> Option<Instant> {
        let since = held.waiting_since.unwrap_or(now);
        let waiting = ReservedTask {
            waiting_since: Some(since),
            ..held
        };
        self.tasks.insert(task, TaskOwnership::Held(waiting));
        let end = since + held.reservation.period() * PERIODS_OF_PATIENCE;
        (now < end).then(|| now + LOOK_EVERY)
    }
}
