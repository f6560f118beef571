//! Boosts for threads without a reservation that notify onbeat of missed deadlines.

use std::fmt;

use onbeat_decide::notification::ordinary::{self, Ordinary};
use onbeat_model::{Actuator, Boost, Instant, Mark, Refusal, Span, Task, TaskId};
use serde::{Serialize, Serializer};

use crate::run_loop::Controller;
use crate::task::table::Slot;
use crate::timer::TimerEvent;

/// The time between two looks at a thread that notified: its boost decays, and another program may
/// have changed it.
const LOOK_EVERY: Span = Span::from_ms(100);
/// How long a thread's share of sleep is remembered after a notification: honest threads notify now
/// and then.
const REMEMBERED: Span = Span::from_secs(30);
/// The fewest levels that are worth a boost.
const NOTHING: f64 = 0.01;

/// The change of a boost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostWhat {
    /// The thread got one.
    Boosted,
    /// It got a larger or a smaller one.
    BoostChanged,
    /// It has its former scheduling again.
    BoostEnded,
    /// The actuator refused, and is not asked again for this thread.
    BoostRefused,
}

/// Why.
#[derive(Clone, Debug, PartialEq)]
pub enum BoostWhy {
    /// It says that it missed a deadline.
    MissedDeadline,
    /// Its application has just begun.
    Starts,
    /// Its application keeps a beat.
    KeepsBeat,
    /// It starves, and is on probation.
    OnTrial,
    /// It computes without a pause.
    Computes,
    /// Its application keeps no beat any more.
    NoBeat,
    /// It has set its nice value itself, or somebody else has.
    Changed,
    /// Time has passed, and its share of sleep has changed.
    Decayed,
    /// The same, and others are boosted too.
    Shared,
    /// It has a reservation instead.
    Reserved,
    /// It is no longer tracked.
    Untracked,
    /// onbeat ends.
    Finished,
    /// The actuator refused.
    Refused(Refusal),
}

impl fmt::Display for BoostWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissedDeadline => f.write_str("it says that it missed a deadline"),
            Self::Starts => f.write_str("its application has just begun"),
            Self::KeepsBeat => f.write_str("its application keeps a beat"),
            Self::OnTrial => f.write_str("it starves, and has a chance to show a rhythm"),
            Self::Computes => f.write_str("it computes without a pause"),
            Self::Changed => f.write_str("its nice value was set by itself or by somebody else"),
            Self::NoBeat => f.write_str("its application keeps no beat"),
            Self::Decayed => f.write_str("time passed, and it sleeps as much as it does"),
            Self::Shared => f.write_str("boosts are shared by all that are boosted"),
            Self::Reserved => f.write_str("it has a reservation instead"),
            Self::Untracked => f.write_str("it is no longer to be kept on the beat"),
            Self::Finished => f.write_str("onbeat ends"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

/// One change of a thread's boost, or one that was not made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoostEntry {
    /// When, on the sensor's clock.
    #[serde(rename = "at_ns")]
    pub at: Instant,
    /// The thread.
    #[serde(flatten)]
    pub task: Task,
    /// The change.
    pub what: BoostWhat,
    /// Why.
    #[serde(serialize_with = "in_words")]
    pub why: BoostWhy,
    /// The boost until now.
    pub old_boost: Option<Boost>,
    /// The boost from now on; if refused, the requested one.
    pub new_boost: Option<Boost>,
}

fn in_words<S: Serializer>(why: &BoostWhy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(why)
}

/// All threads that have notified.
#[derive(Debug, Default)]
pub(crate) struct Boosts {
    heard: u32,
    /// The sum of the levels that they deserve.
    deserved: f64,
    pub(crate) boosted: u64,
    journal: Vec<BoostEntry>,
}

/// A thread that has notified.
#[derive(Debug, Default)]
pub(crate) struct Pleading {
    judged: Ordinary,
    /// Its levels in the sum of all.
    counted: f64,
    in_force: Option<Boost>,
    was_boosted: bool,
    /// Time of its last notification.
    missed: Instant,
    refused: bool,
    /// It had an event since the last look; and its CPU time at that look.
    heard: bool,
    executed: Option<Span>,
}

impl Boosts {
    pub(crate) fn enter(&mut self, entry: BoostEntry) {
        self.journal.push(entry);
    }

    fn count(&mut self, pleading: &mut Pleading, now: Instant) {
        let levels = pleading.seen(now).levels();
        self.deserved += levels - std::mem::replace(&mut pleading.counted, levels);
    }
}

impl Pleading {
    pub(crate) const fn in_force(&self) -> Option<Boost> {
        self.in_force
    }

    /// Takes in a burst from `woke` to `blocked`.
    pub(crate) fn burst(&mut self, woke: Instant, blocked: Instant) {
        self.judged.ready(woke, blocked);
        self.heard = true;
    }

    /// Looks at the thread's CPU time. A thread without an event that used some is in a burst.
    fn look(&mut self, now: Instant, executed: Option<Span>) {
        let ran = self.executed.is_some() && executed > self.executed;
        if !std::mem::take(&mut self.heard) && ran {
            self.judged.ready(Instant::ZERO, now);
        }
        self.executed = executed;
    }

    /// Its account at `now` if it has slept since its last event. It may wait for a CPU instead,
    /// which its next event tells, so the account is not kept.
    fn seen(&self, now: Instant) -> Ordinary {
        let mut seen = self.judged;
        seen.asleep(now);
        seen
    }
}

impl<A: Actuator> Controller<A> {
    /// The entries about boosts since this was last called.
    pub fn boost_journal(&mut self) -> std::vec::Drain<'_, BoostEntry> {
        self.boosting.boosts.journal.drain(..)
    }

    /// The thread says that it missed a deadline, and has no reservation that could be raised.
    pub(crate) fn plead(&mut self, slot: Slot, mark: &Mark) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        if thread.held().is_some() || thread.enforcement.is_over() {
            return;
        }
        if thread.pleading.is_none() {
            self.boosting.boosts.heard += 1;
            let at = mark.at + LOOK_EVERY;
            self.timers.set(at, TimerEvent::Boost(mark.task));
        }
        let pleading = thread.pleading.get_or_insert_default();
        pleading.judged.ready(mark.woke, mark.at);
        pleading.heard = true;
        pleading.judged.missed();
        pleading.missed = mark.at;
        self.boosting.boosts.count(pleading, mark.at);
        self.deserve(slot, BoostWhy::MissedDeadline, mark.at);
    }

    /// Looks at a thread that has notified.
    pub(crate) fn look_at_boost(&mut self, task: TaskId, now: Instant, executed: Option<Span>) {
        let Some(slot) = self.tasks.find(task) else {
            return;
        };
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let Some(pleading) = &mut thread.pleading else {
            return;
        };
        pleading.look(now, executed);
        self.boosting.boosts.count(pleading, now);
        if thread.enforcement.held().is_some() {
            // The reservation has taken the boost's place.
            let old = pleading.in_force.take();
            let task = thread.task;
            if old.is_some() {
                self.tell(
                    task,
                    BoostWhat::BoostEnded,
                    BoostWhy::Reserved,
                    (old, None),
                    now,
                );
            }
            self.stop_pleading(slot);
            return;
        }
        self.deserve(slot, BoostWhy::Decayed, now);
        let pleading = self
            .tasks
            .get_mut(slot)
            .and_then(|thread| thread.pleading.as_ref());
        let goes_on = pleading.is_some_and(|pleading| {
            pleading.in_force.is_some()
                || pleading.seen(now).levels() > NOTHING
                || now.since(pleading.missed) < REMEMBERED
        });
        if goes_on {
            self.timers.set(now + LOOK_EVERY, TimerEvent::Boost(task));
        } else {
            self.stop_pleading(slot);
        }
    }

    /// Forgets the thread's notifications.
    pub(crate) fn stop_pleading(&mut self, slot: Slot) {
        let Some(pleading) = self
            .tasks
            .get_mut(slot)
            .and_then(|thread| thread.pleading.take())
        else {
            return;
        };
        self.boosting.boosts.heard -= 1;
        self.boosting.boosts.deserved -= pleading.counted;
        if self.boosting.boosts.heard == 0 {
            // Rounding may have left something.
            self.boosting.boosts.deserved = 0.0;
        }
    }

    /// Ends the thread's boost for good.
    pub(crate) fn end_boost(&mut self, slot: Slot, why: BoostWhy, now: Instant) {
        self.put_boost(slot, None, why, now);
        self.stop_pleading(slot);
    }

    /// Puts the thread's deserved boost in force.
    fn deserve(&mut self, slot: Slot, why: BoostWhy, now: Instant) {
        let dilution =
            ordinary::dilution(self.boosting.boosts.deserved, self.enforcer.capacity().cpus);
        let thread = self.tasks.get(slot);
        let Some(pleading) = thread.and_then(|thread| thread.pleading.as_ref()) else {
            return;
        };
        let boost = pleading.seen(now).boost(dilution);
        let why = match why {
            BoostWhy::Decayed if dilution < 1.0 => BoostWhy::Shared,
            why => why,
        };
        // A flood of notifications asks for nothing new. At a look, others' shares may have
        // changed.
        if boost != pleading.in_force || why != BoostWhy::MissedDeadline {
            self.put_boost(slot, boost, why, now);
        }
    }

    fn put_boost(&mut self, slot: Slot, new: Option<Boost>, why: BoostWhy, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let task = thread.task;
        let Some(pleading) = thread
            .pleading
            .as_mut()
            .filter(|pleading| !pleading.refused)
        else {
            return;
        };
        let old = pleading.in_force;
        if (old, new) == (None, None) {
            return;
        }
        if thread.protection.is_in_force() {
            // Protection is more. When it ends, this boost is put in force.
            pleading.in_force = new;
            return;
        }
        match self.enforcer.boost(task.id, new) {
            Ok(()) => {
                pleading.in_force = new;
                let first = new.is_some() && !std::mem::replace(&mut pleading.was_boosted, true);
                self.boosting.boosts.boosted += u64::from(first);
                let what = match (old, new) {
                    (None, _) => BoostWhat::Boosted,
                    (_, None) => BoostWhat::BoostEnded,
                    _ => BoostWhat::BoostChanged,
                };
                if old != new {
                    self.tell(task, what, why, (old, new), now);
                }
            }
            Err(Refusal::Gone) => pleading.in_force = None,
            Err(refusal @ Refusal::TakenOver { .. }) => {
                pleading.in_force = None;
                self.stop_pleading(slot);
                self.yield_to_other(slot, Some(refusal), now);
            }
            Err(refusal) => {
                pleading.in_force = None;
                pleading.refused = true;
                if refusal != Refusal::NoBoosts {
                    let why = BoostWhy::Refused(refusal);
                    self.tell(task, BoostWhat::BoostRefused, why, (old, new), now);
                }
            }
        }
    }

    pub(super) fn tell(
        &mut self,
        task: Task,
        what: BoostWhat,
        why: BoostWhy,
        (old_boost, new_boost): (Option<Boost>, Option<Boost>),
        at: Instant,
    ) {
        self.boosting.boosts.enter(BoostEntry {
            at,
            task,
            what,
            why,
            old_boost,
            new_boost,
        });
    }
}
