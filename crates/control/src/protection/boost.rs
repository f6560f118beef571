//! Boosts for threads without a reservation that notify onbeat of missed deadlines.

use std::fmt;

use onbeat_decide::notification::ordinary::{self, Ordinary};
use onbeat_model::{Actuator, Boost, Instant, Mark, Refusal, Span, Task};
use serde::Serialize;

use super::{LoopParts, Protector};
use crate::report::in_words;
use crate::report::reason::{COMPARES, NO_BETTER};
use crate::slots::Slot;
use crate::timer::TimerEvent;

/// The time between two looks at a thread that notified: its boost decays, and another program may
/// have changed it.
const LOOK_EVERY: Span = Span::from_ms(100);
/// How long a thread's share of sleep is remembered after a notification, which honest threads send
/// now and then.
const REMEMBERED: Span = Span::from_secs(30);

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
    /// Its application waits for CPUs that others use.
    Waits,
    /// Its application's shortest period is another one, which gives the priority.
    Period,
    /// Nobody else wants its application's CPUs any more.
    NoNeed,
    /// Its application has used up its account.
    UsedUp,
    /// Its application waits all the same: it goes without for a moment, to compare.
    Compares,
    /// Its application waits no longer without: it goes without for a while.
    NoBetter,
    /// Its user has used more than a quota gives.
    OverQuota,
    /// It gets a priority that it asked for.
    AsksForPriority,
    /// Its nice value was changed by itself or by another program.
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
            Self::Waits => f.write_str("its application waits for CPUs that others use"),
            Self::Period => f.write_str("by the shortest period in its application"),
            Self::NoNeed => f.write_str("nobody else wants its CPUs"),
            Self::UsedUp => f.write_str("its application has used up what it may use above others"),
            Self::Compares => f.write_str(COMPARES),
            Self::NoBetter => f.write_str(NO_BETTER),
            Self::OverQuota => f.write_str("its user has used more than the quota gives"),
            Self::AsksForPriority => {
                f.write_str("it asked for a real-time priority, and gets that")
            }
            Self::Changed => f.write_str("it or another program set its nice value"),
            Self::Decayed => f.write_str("its boost decayed"),
            Self::Shared => f.write_str("it shares its boost with other threads"),
            Self::Reserved => f.write_str("it has a reservation instead"),
            Self::Untracked => f.write_str("no client tracks it any more"),
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

/// All threads that have notified.
#[derive(Debug, Default)]
pub(super) struct Notifiers {
    heard: u32,
    /// The sum of the levels that they deserve.
    deserved: f64,
    /// The number of threads that were ever boosted.
    boosted: u64,
}

/// A thread that has notified.
#[derive(Debug, Default)]
pub(super) struct Pleading {
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

impl Notifiers {
    /// No thread has notified.
    pub(super) const fn is_empty(&self) -> bool {
        self.heard == 0
    }

    fn count(&mut self, pleading: &mut Pleading, now: Instant) {
        let levels = pleading.seen(now).levels();
        self.deserved += levels - std::mem::replace(&mut pleading.counted, levels);
    }
}

impl Pleading {
    pub(super) const fn in_force(&self) -> Option<Boost> {
        self.in_force
    }

    /// Takes in a burst from `woke` to `blocked`.
    pub(super) fn burst(&mut self, woke: Instant, blocked: Instant) {
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

impl Protector {
    /// The changes of boosts since this was last called.
    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, BoostEntry> {
        self.log.drain(..)
    }

    /// The number of threads that were ever boosted because they notified.
    pub(crate) const fn boosted(&self) -> u64 {
        self.boosts.boosted
    }

    /// The thread says that it missed a deadline. If it has no reservation that could be raised, it
    /// may deserve a boost. Returns the actuator's refusal if another program decides about the
    /// thread.
    pub(crate) fn plead<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        slot: Slot,
        mark: &Mark,
    ) -> Option<Refusal> {
        let server = around.enforcer.server(slot);
        if server.held().is_some() || server.is_over() {
            return None;
        }
        let thread = self.threads.get_mut(slot);
        if thread.pleading.is_none() {
            self.boosts.heard += 1;
            let at = mark.at + LOOK_EVERY;
            around.timers.set(at, TimerEvent::Boost(mark.task));
        }
        let pleading = thread.pleading.get_or_insert_default();
        pleading.judged.ready(mark.woke, mark.at);
        pleading.heard = true;
        pleading.judged.missed();
        pleading.missed = mark.at;
        self.boosts.count(pleading, mark.at);
        self.deserve(around, slot, BoostWhy::MissedDeadline)
    }

    /// Looks at a thread that has notified. Returns a refusal as [`plead`](Self::plead) does.
    pub(crate) fn look_at_boost<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        slot: Slot,
        executed: Option<Span>,
    ) -> Option<Refusal> {
        let now = around.now;
        let thread = around.tasks.get(slot)?;
        let pleading = self.threads.get_mut(slot).pleading.as_mut()?;
        pleading.look(now, executed);
        self.boosts.count(pleading, now);
        if around.enforcer.held(slot).is_some() {
            // The reservation has taken the boost's place.
            let old = pleading.in_force.take();
            if old.is_some() {
                let (what, why) = (BoostWhat::BoostEnded, BoostWhy::Reserved);
                self.enter_change(thread.task, what, why, (old, None), now);
            }
            self.stop_pleading(slot);
            return None;
        }
        let refusal = self.deserve(around, slot, BoostWhy::Decayed);
        let goes_on = self.of(slot).pleading.as_ref().is_some_and(|pleading| {
            pleading.in_force.is_some() || now.since(pleading.missed) < REMEMBERED
        });
        if goes_on {
            let event = TimerEvent::Boost(thread.task.id);
            around.timers.set(now + LOOK_EVERY, event);
        } else {
            self.stop_pleading(slot);
        }
        refusal
    }

    /// Forgets the thread's notifications.
    pub(super) fn stop_pleading(&mut self, slot: Slot) {
        let Some(pleading) = self.threads.get_mut(slot).pleading.take() else {
            return;
        };
        self.boosts.heard -= 1;
        self.boosts.deserved -= pleading.counted;
        if self.boosts.heard == 0 {
            // Rounding may have left something.
            self.boosts.deserved = 0.0;
        }
    }

    /// Ends the thread's boost for good. Returns a refusal as [`plead`](Self::plead) does.
    pub(crate) fn end_boost<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        slot: Slot,
        why: BoostWhy,
    ) -> Option<Refusal> {
        let refusal = self.put_boost(around, slot, None, why);
        self.stop_pleading(slot);
        refusal
    }

    /// Puts the thread's deserved boost in force.
    fn deserve<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        slot: Slot,
        why: BoostWhy,
    ) -> Option<Refusal> {
        let cpus = around.enforcer.capacity().cpus;
        let dilution = ordinary::dilution(self.boosts.deserved, cpus);
        let pleading = self.of(slot).pleading.as_ref()?;
        let boost = pleading.seen(around.now).boost(dilution);
        let why = match why {
            BoostWhy::Decayed if dilution < 1.0 => BoostWhy::Shared,
            why => why,
        };
        // A flood of notifications asks for nothing new. At a look, others' shares may have
        // changed.
        if boost == pleading.in_force && why == BoostWhy::MissedDeadline {
            return None;
        }
        self.put_boost(around, slot, boost, why)
    }

    fn put_boost<A: Actuator>(
        &mut self,
        around: &mut LoopParts<'_, A>,
        slot: Slot,
        new: Option<Boost>,
        why: BoostWhy,
    ) -> Option<Refusal> {
        let task = around.tasks.get(slot)?.task;
        let thread = self.threads.get_mut(slot);
        let is_protected = thread.is_in_force();
        let pleading = thread.pleading.as_mut();
        let pleading = pleading.filter(|pleading| !pleading.refused)?;
        let old = pleading.in_force;
        if (old, new) == (None, None) {
            return None;
        }
        if is_protected {
            // Protection is more. When it ends, this boost is put in force.
            pleading.in_force = new;
            return None;
        }
        match around.enforcer.boost(task.id, new) {
            Ok(()) => {
                pleading.in_force = new;
                let first = new.is_some() && !std::mem::replace(&mut pleading.was_boosted, true);
                self.boosts.boosted += u64::from(first);
                let what = match (old, new) {
                    (None, _) => BoostWhat::Boosted,
                    (_, None) => BoostWhat::BoostEnded,
                    _ => BoostWhat::BoostChanged,
                };
                if old != new {
                    self.enter_change(task, what, why, (old, new), around.now);
                }
                None
            }
            Err(refusal) => {
                pleading.in_force = None;
                match refusal {
                    Refusal::Gone => None,
                    Refusal::TakenOver { .. } => {
                        self.stop_pleading(slot);
                        Some(refusal)
                    }
                    refusal => {
                        pleading.refused = true;
                        if refusal != Refusal::NoBoosts {
                            let (what, why) = (BoostWhat::BoostRefused, BoostWhy::Refused(refusal));
                            self.enter_change(task, what, why, (old, new), around.now);
                        }
                        None
                    }
                }
            }
        }
    }

    pub(super) fn enter_change(
        &mut self,
        task: Task,
        what: BoostWhat,
        why: BoostWhy,
        (old_boost, new_boost): (Option<Boost>, Option<Boost>),
        at: Instant,
    ) {
        self.log.push(BoostEntry {
            at,
            task,
            what,
            why,
            old_boost,
            new_boost,
        });
    }
}
