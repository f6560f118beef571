//! The look at all paths, a few times a second: which threads are stages, and which are no longer.

use onbeat_infer::pipeline::PathStanding;
use onbeat_model::{Instant, Rhythm, Span, TaskId};

use super::partners::WATCHED;
use super::shares::{Counts, Room, ShareLimits};
use super::{PipelineFinder, party};
use crate::Stage;
use crate::slots::Slot;
use crate::task::table::TaskTable;
use crate::timer::QUARTER;

const STAGES: ShareLimits = ShareLimits { each: 32, all: 128 };
/// A thread that was asked for may show a period of its own before it is taken for a stage of
/// another's path.
const OWN_RHYTHM_FIRST: Span = Span::from_secs(3);

/// On whose path a thread is found to work.
struct FoundStage {
    head: TaskId,
    /// The head's, in every so many-th job of which the thread works.
    rhythm: Rhythm,
    standing: PathStanding,
    paths: usize,
}

pub(crate) enum Review {
    Unknown,
    Same,
    /// It is this stage of a path whose head has this rhythm.
    Serve {
        stage: Stage,
        rhythm: Rhythm,
        /// In how many jobs it was seen, and of how many.
        seen: (u64, u64),
        /// This one is no stage any more, to make room.
        in_place_of: Option<Slot>,
    },
    Leave,
}

impl PipelineFinder {
    /// Has all paths reviewed at the next turn, because a thread ended: others may have been served
    /// for it alone.
    pub(crate) fn review_soon(&mut self) {
        self.next = Instant::ZERO;
    }

    /// Whether it is time for a review: of all paths, or else only of the threads to be watched.
    pub(crate) fn review_due(&mut self, now: Instant) -> Option<bool> {
        self.settings.as_ref()?;
        let is_worth_a_look = self.candidates.take_worth_a_look();
        let all = now >= self.next;
        if all {
            self.next = now + QUARTER;
        }
        (all || is_worth_a_look).then_some(all)
    }

    pub(crate) fn end_review(&mut self) {
        self.candidates.forget_exchanges();
    }

    pub(crate) fn review(&mut self, tasks: &TaskTable, slot: Slot, now: Instant) -> Review {
        let role = self.role(slot);
        let is_stage = role.stage().is_some();
        if !is_stage && !role.is_partner() && role.contacts().is_empty() {
            return Review::Unknown;
        }
        let role = self.roles.get_mut(slot);
        role.keep_contacts(|head| rhythm_of(tasks, head).is_some());
        match self.path_of(tasks, slot, now) {
            Some(found) => self.serve(tasks, slot, &found, now),
            None if is_stage => self.doubt(slot, now),
            None => Review::Same,
        }
    }

    /// The path that the thread works on, with the rhythm of its own work there: of several, the
    /// one with the shortest period.
    fn path_of(&self, tasks: &TaskTable, slot: Slot, now: Instant) -> Option<FoundStage> {
        let mut found: Option<FoundStage> = None;
        for &(head, contacts) in self.role(slot).contacts() {
            let rhythm = rhythm_of(tasks, head);
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
                    found = Some(FoundStage {
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
    fn serve(&mut self, tasks: &TaskTable, slot: Slot, found: &FoundStage, now: Instant) -> Review {
        let role = self.role(slot);
        let former = role.stage();
        let (Some(head), Some(thread)) = (tasks.with_id(found.head), tasks.get(slot)) else {
            return Review::Same;
        };
        let head = head.task;
        let may_begin = || match role.partner() {
            Some(partner) => partner.is_waited_for(found.standing.of),
            None => {
                let age = now.since(thread.estimator.first_heard());
                age >= OWN_RHYTHM_FIRST && !role.stays_off(now)
            }
        };
        let may_be = thread.estimator.own_rhythm().is_none();
        if !may_be || (former.is_none() && !may_begin()) {
            return Review::Same;
        }
        let same = former.filter(|former| former.head_tid == head.id.tid);
        let stage = Stage {
            head_tid: head.id.tid,
            head: head.comm,
            period: found.rhythm.period / u64::from(found.standing.every.max(1)),
            every: found.standing.every,
            number: same.map_or_else(
                || self.next_number(tasks, head.id.tid),
                |former| former.number,
            ),
            paths: found.paths,
            confidence: found.standing.confidence,
        };
        let room = if former.is_some() {
            Some(None)
        } else {
            self.room_for_stage(tasks, slot)
        };
        let Some(in_place_of) = room else {
            return Review::Same;
        };
        self.roles.get_mut(slot).serve(stage);
        Review::Serve {
            stage,
            rhythm: found.rhythm,
            seen: (found.standing.seen, found.standing.of),
            in_place_of,
        }
    }

    /// Whether the thread may be one more stage, and which other one ends for it: of the payer that
    /// has most.
    fn room_for_stage(&self, tasks: &TaskTable, slot: Slot) -> Option<Option<Slot>> {
        let stages = tasks.iter().filter_map(|(slot, thread)| {
            let confidence = self.role(slot).stage()?.confidence;
            Some((slot, thread.party.payer, confidence))
        });
        let stages: Vec<_> = stages.collect();
        let counts: Counts = stages.iter().map(|(_, payer, _)| *payer).collect();
        match counts.room(party(tasks, slot).payer, STAGES) {
            Room::Free => Some(None),
            Room::None => None,
            Room::InPlaceOf(other) => {
                let theirs = stages.iter().filter(|(_, payer, _)| *payer == other);
                let least = theirs.min_by(|a, b| a.2.total_cmp(&b.2));
                Some(least.map(|(least, ..)| *least))
            }
        }
    }

    /// The first stage is the head.
    fn next_number(&self, tasks: &TaskTable, head_tid: u32) -> u32 {
        let stages = tasks.iter().filter_map(|(slot, _)| self.role(slot).stage());
        let numbers = stages.filter(|stage| stage.head_tid == head_tid);
        numbers.map(|stage| stage.number).max().unwrap_or(1) + 1
    }

    /// The thread is not sure to be a stage any more: perhaps its user stumbles, and perhaps it is
    /// gone.
    fn doubt(&mut self, slot: Slot, now: Instant) -> Review {
        let role = self.roles.get_mut(slot);
        let has_head = !role.contacts().is_empty();
        let since = role.off_since(now);
        // A player that is behind for a moment comes back.
        if has_head && now.since(since) < WATCHED / 2 {
            Review::Same
        } else {
            Review::Leave
        }
    }

    /// The thread computes all the time, whomever it wakes meanwhile: if it was a stage, that does
    /// not make it one again soon.
    pub(crate) fn stay_off(&mut self, slot: Slot, now: Instant) {
        self.roles.get_mut(slot).stay_off(now + WATCHED);
    }
}

fn rhythm_of(tasks: &TaskTable, head: TaskId) -> Option<Rhythm> {
    tasks.with_id(head)?.estimator.own_rhythm()
}
