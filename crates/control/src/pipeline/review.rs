//! The look at all paths, a few times a second: which threads are stages, and which are no longer.

use std::collections::HashMap;

use onbeat_infer::pipeline::PathStanding;
use onbeat_model::{Instant, Rhythm, Span, TaskId};

use super::candidates::Requested;
use super::{Partner, PipelineFinder, Watched, party};
use crate::Stage;
use crate::task::{Slot, TaskTable, TrackedThread};
use crate::timer::QUARTER;

/// The most of a payer.
const STAGES: usize = 32;
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
    Serve {
        stage: Stage,
        rhythm: Rhythm,
        /// In how many jobs it was seen, and of how many.
        seen: (u64, u64),
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
        if former.is_none() && !self.has_room_for_stage(tasks, slot) {
            return Review::Same;
        }
        self.roles.get_mut(slot).serve(stage);
        Review::Serve {
            stage,
            rhythm: found.rhythm,
            seen: (found.standing.seen, found.standing.of),
        }
    }

    fn has_room_for_stage(&self, tasks: &TaskTable, slot: Slot) -> bool {
        let payer = party(tasks, slot).payer;
        let theirs = tasks
            .iter()
            .filter(|(_, thread)| thread.party.payer == payer);
        let stages = theirs.filter(|(slot, _)| self.role(*slot).stage().is_some());
        stages.count() < STAGES
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

/// Of a payer.
const WATCHED_AT_A_TIME: usize = 16;
/// A watched thread that has become no stage is let go after this time.
pub(super) const WATCHED: Span = Span::from_secs(10);

impl PipelineFinder {
    /// The threads that the sensor is to track alone since this was last asked; it may refuse.
    pub(crate) fn take_to_track(&mut self) -> Vec<Partner> {
        std::mem::take(&mut self.to_track)
    }

    /// The threads that the sensor is to track no longer since this was last asked.
    pub(crate) fn take_to_untrack(&mut self) -> Vec<TaskId> {
        std::mem::take(&mut self.to_untrack)
    }

    /// The sensor did not track this one: another may be watched in its place. `payer` is charged
    /// for it if it is not to be watched any more.
    pub(crate) fn refused(&mut self, partner: Partner, payer: impl FnOnce() -> u32, now: Instant) {
        // The thread that it was to work for may be gone by now.
        let requested = self.candidates.requested.get(&partner.tid);
        let payer = requested.map_or_else(payer, |requested| requested.payer);
        self.candidates.reject(payer, partner.tid, now);
    }

    pub(crate) fn works_for(&self, slot: Slot) -> &[TaskId] {
        let partner = self.role(slot).partner();
        partner.map_or(&[], |partner| &partner.of)
    }

    /// A thread comes to be tracked: perhaps because it was to be watched. True if it is to be let
    /// go at once.
    pub(crate) fn announced(&mut self, tasks: &TaskTable, slot: Slot, now: Instant) -> bool {
        let Some(task) = tasks.get(slot).map(|thread| thread.task) else {
            return false;
        };
        let Some(Requested { of, .. }) = self.candidates.take_request(task.id.tid) else {
            return false;
        };
        let user = tasks.find(of);
        let user = user.and_then(|slot| Some((slot, tasks.get(slot)?)));
        let beats = user.is_some_and(|(slot, user)| self.is_on_the_beat(slot, user));
        self.roles.get_mut(slot).watch(Watched::new(of, beats, now));
        self.is_outsider(task.pid)
    }

    pub(crate) fn forget_number(&mut self, tid: u32) {
        self.candidates.requested.remove(&tid);
        self.to_track.retain(|partner| partner.tid != tid);
    }

    pub(crate) fn leave(&mut self, slot: Slot) -> bool {
        self.roles.get_mut(slot).leave()
    }

    pub(crate) fn let_go(&mut self, payer: u32, task: TaskId, now: Instant) {
        self.candidates.reject(payer, task.tid, now);
        self.to_untrack.push(task);
    }

    /// A watched thread is let go, which is false, if all that it was watched for are gone, or it
    /// has not become a stage. None of a thread that is not watched.
    pub(crate) fn look_at_partner(
        &mut self,
        tasks: &TaskTable,
        slot: Slot,
        now: Instant,
    ) -> Option<bool> {
        let partner = self.roles.get_mut(slot).partner_mut()?;
        let before = std::mem::take(&mut partner.of);
        let (since, beat) = (partner.since, partner.beats);
        let role = self.role(slot);
        let heads = role.contacts().iter();
        let heads = heads.filter(|(head, _)| tracked(tasks, *head).is_some());
        let heads = heads.map(|(head, contacts)| (*head, contacts.standing(now).is_some()));
        let (sure, unsure): (Vec<_>, Vec<_>) = heads.partition(|(_, is_sure)| *is_sure);
        let mut of: Vec<TaskId> = sure.into_iter().map(|(head, _)| head).collect();
        // A player that pauses comes back.
        if of.is_empty() {
            of = before;
            of.retain(|user| tracked(tasks, *user).is_some());
            of.extend(unsure.into_iter().map(|(head, _)| head));
            of.sort_unstable();
            of.dedup();
        }
        let is_stage = role.stage().is_some();
        let mut users = of.iter().filter_map(|user| tracked(tasks, *user));
        let beats = users.any(|(slot, user)| self.is_on_the_beat(slot, user));
        // Users without a period may come to show one.
        let longest = WATCHED * if beats { 1 } else { 6 };
        let is_over = beat == beats && now.since(since) >= longest;
        let is_alone = of.is_empty();
        if let Some(partner) = self.roles.get_mut(slot).partner_mut() {
            partner.of = of;
            if beat != beats {
                partner.since = now;
                partner.beats = beats;
            }
        }
        Some(!is_alone && (is_stage || !is_over))
    }

    /// Has the threads that exchange most wakeups with the paths watched from now on, as far as
    /// there is room.
    pub(crate) fn search(&mut self, tasks: &TaskTable, now: Instant) {
        self.candidates.give_up_requests(now - WATCHED, now);
        self.candidates.expire_rejections(now);
        let watched = tasks.iter().filter(|(slot, _)| self.is_watched(*slot));
        let watched = watched.map(|(_, thread)| thread.party.payer);
        let requested = self.candidates.requested.values();
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for payer in watched.chain(requested.map(|requested| requested.payer)) {
            *counts.entry(payer).or_default() += 1;
        }
        for ((payer, tid), exchange) in self.candidates.worth_watching(now) {
            let count = counts.entry(payer).or_default();
            // Two payers' threads may wait for the same one: one of them asks first.
            let is_wanted = self.candidates.requested.contains_key(&tid);
            if *count >= WATCHED_AT_A_TIME || is_wanted || tasks.find_number(tid).is_some() {
                continue;
            }
            *count += 1;
            let (of, since) = (exchange.with, now);
            self.to_track.push(Partner { tid, of });
            let requested = Requested { of, payer, since };
            self.candidates.requested.insert(tid, requested);
        }
    }

    fn is_watched(&self, slot: Slot) -> bool {
        let role = self.role(slot);
        role.is_partner() && role.stage().is_none()
    }
}

fn tracked(tasks: &TaskTable, task: TaskId) -> Option<(Slot, &TrackedThread)> {
    let slot = tasks.find(task)?;
    let thread = tasks.get(slot)?;
    (!thread.unheard).then_some((slot, thread))
}
