//! The look at all paths, a few times a second: who is a stage, and who is none any more.

use onbeat_infer::pipeline::Standing;
use onbeat_model::{Actuator, Instant, Rhythm, Span, TaskId};

use super::shares::{Counts, Limits, Room};
use super::{EVERY, KEPT, Stage};
use crate::Why;
use crate::run_loop::Controller;
use crate::task::table::Slot;
use crate::timer::TimerEvent;

/// A stage that is not sure to be one any more is kept for so long: a player that is behind for a
/// moment comes back.
const DOUBT: Span = Span::from_secs(5);
/// So many threads are stages at most.
const STAGES: Limits = Limits { each: 32, all: 128 };
/// A thread that was asked for and computes all the time is no stage for so long.
const COMPUTED: Span = Span::from_secs(15);
/// A thread that was asked for may show a rhythm of its own before it is taken for a stage of
/// another's path.
const OWN_RHYTHM_FIRST: Span = Span::from_secs(3);

/// On whose path a thread is found to work.
struct Found {
    head: TaskId,
    /// The head's, in every so many-th job of which the thread works.
    rhythm: Rhythm,
    standing: Standing,
    paths: usize,
}

impl<A: Actuator> Controller<A> {
    /// At the next turn, for a thread ended: others may have been served for it alone.
    pub(crate) fn review_soon(&mut self) {
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.next = Instant::ZERO;
        }
    }

    /// Looks at all paths, if it is time to.
    pub(crate) fn review_pipelines(&mut self, now: Instant) {
        let Some(pipelines) = &mut self.pipelines else {
            return;
        };
        let is_worth_a_look = std::mem::take(&mut pipelines.is_worth_a_look);
        if now >= pipelines.next {
            pipelines.next = now + EVERY;
            for slot in self.tasks.slots() {
                self.review_thread(slot, now);
            }
            self.watch_others(now);
            self.forget_exchanges();
        } else if is_worth_a_look {
            self.watch_others(now);
        }
    }

    /// What was exchanged long ago counts ever less.
    fn forget_exchanges(&mut self) {
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.exchanges.retain(|_, exchange| {
                exchange.weight *= KEPT;
                exchange.weight >= 0.1
            });
        }
    }

    fn review_thread(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.tasks.get(slot) else {
            return;
        };
        let is_stage = thread.path.stage().is_some();
        if !is_stage && !thread.path.is_partner() && thread.path.contacts().is_empty() {
            return;
        }
        self.forget_heads(slot);
        match self.path_of(slot, now) {
            Some(found) => self.serve(slot, &found, now),
            None if is_stage => self.doubt(slot, now),
            None => {}
        }
        self.look_at_partner(slot, now);
    }

    /// Forgets the thread's contacts with those that have no rhythm any more.
    fn forget_heads(&mut self, slot: Slot) {
        let Some(mut path) = self
            .tasks
            .get_mut(slot)
            .map(|t| std::mem::take(&mut t.path))
        else {
            return;
        };
        path.keep_contacts(|head| self.rhythm_of(head).is_some());
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.path = path;
        }
    }

    fn rhythm_of(&self, head: TaskId) -> Option<Rhythm> {
        let slot = self.tasks.find(head)?;
        self.tasks.get(slot)?.beats()
    }

    /// The path that the thread works on, with the rhythm of its own work there: of several, the
    /// one with the shortest period.
    fn path_of(&self, slot: Slot, now: Instant) -> Option<Found> {
        let mut found: Option<Found> = None;
        for &(head, contacts) in self.tasks.get(slot)?.path.contacts() {
            let rhythm = self.rhythm_of(head);
            let Some((rhythm, standing)) = rhythm.zip(contacts.standing(now)) else {
                continue;
            };
            let rhythm = Rhythm {
                period: rhythm.period * u64::from(standing.every),
                ..rhythm
            };
            let paths = found.as_ref().map_or(1, |found| found.paths + 1);
            match &mut found {
                Some(found) if found.rhythm.period <= rhythm.period => found.paths = paths,
                _ => {
                    found = Some(Found {
                        head,
                        rhythm,
                        standing,
                        paths,
                    });
                }
            }
        }
        found
    }

    /// The thread is a stage of this path: gets a budget in its period.
    fn serve(&mut self, slot: Slot, found: &Found, now: Instant) {
        let former = self.tasks.get(slot).and_then(|t| t.path.stage());
        let head = self.tasks.find(found.head);
        let head = head.and_then(|slot| Some(self.tasks.get(slot)?.task));
        let Some(head) = head else {
            return;
        };
        let same = former.filter(|former| former.head_tid == head.id.tid);
        let stage = Stage {
            head_tid: head.id.tid,
            head: head.comm,
            period: found.rhythm.period / u64::from(found.standing.every.max(1)),
            every: found.standing.every,
            number: same.map_or_else(|| self.next_number(head.id.tid), |former| former.number),
            paths: found.paths,
            confidence: found.standing.confidence,
        };
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let may_begin = || match thread.path.partner() {
            Some(partner) => partner.is_waited_for(found.standing.of),
            None => {
                now.since(thread.first_heard) >= OWN_RHYTHM_FIRST && !thread.path.stays_off(now)
            }
        };
        if thread.beats().is_some() || (former.is_none() && !may_begin()) {
            return;
        }
        if former.is_none() && !self.makes_room_for_stage(slot, now) {
            return;
        }
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let is_new = thread.lead(stage, found.rhythm, now, &self.settings);
        let task = thread.task.id;
        if let Some(at) = thread.look_due(now) {
            self.timers.set(at, TimerEvent::Look(task));
        }
        let seen = (found.standing.seen, found.standing.of);
        self.consider(slot, is_new.then_some(Why::OnPath { stage, seen }));
    }

    /// Whether the thread may be one more stage. Perhaps one of those who have most stages is none
    /// any more then.
    fn makes_room_for_stage(&mut self, slot: Slot, now: Instant) -> bool {
        let stages = self.tasks.slots().filter_map(|slot| {
            let thread = self.tasks.get(slot)?;
            Some((slot, thread.party.payer, thread.path.stage()?.confidence))
        });
        let stages: Vec<_> = stages.collect();
        let counts: Counts = stages.iter().map(|(_, payer, _)| *payer).collect();
        match counts.room(self.party(slot).payer, STAGES) {
            Room::Free => true,
            Room::None => false,
            Room::InPlaceOf(other) => {
                let theirs = stages.iter().filter(|(_, payer, _)| *payer == other);
                if let Some((least, ..)) = theirs.min_by(|a, b| a.2.total_cmp(&b.2)) {
                    self.end_stage(*least, now);
                }
                true
            }
        }
    }

    fn end_stage(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        if thread.path.is_partner() {
            self.let_partner_go(slot, now);
        } else if thread.leave_path() {
            self.withdraw(slot, Why::OffPath, now);
        }
    }

    /// The first stage is the head.
    fn next_number(&self, head_tid: u32) -> u32 {
        let threads = self.tasks.iter();
        let stages = threads.filter_map(|thread| thread.path.stage());
        let numbers = stages.filter(|stage| stage.head_tid == head_tid);
        numbers.map(|stage| stage.number).max().unwrap_or(1) + 1
    }

    /// The thread is not sure to be a stage any more: perhaps its user stumbles, and perhaps it is
    /// gone.
    fn doubt(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let has_head = !thread.path.contacts().is_empty();
        let since = thread.path.off_since(now);
        if has_head && now.since(since) < DOUBT {
            return;
        }
        thread.leave_path();
        self.withdraw(slot, Why::OffPath, now);
    }

    /// The thread computes all the time, whomever it wakes meanwhile: if it was a stage, that does
    /// not make it one again soon.
    pub(crate) fn no_stage_for_now(&mut self, slot: Slot, now: Instant) {
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        if thread.path.is_partner() {
            self.let_partner_go(slot, now);
        } else if thread.leave_path() {
            thread.path.stay_off(now + COMPUTED);
        }
    }
}
