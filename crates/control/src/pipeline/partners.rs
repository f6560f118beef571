//! Threads that are tracked though nobody asked for them: who they are, whom each may work for, and
//! when it is let go.
//!
//! A partner is there for the sake of those that it works for: first the one that it was found
//! with, then the heads of the paths that it comes to work on. It stays as long as one of them is
//! tracked, and its wishes count as much as theirs.

use onbeat_model::{Actuator, Instant, Span, TaskId};

use super::Partner;
use super::known::{Pipelines, Requested};
use super::role::Watched;
use super::shares::{Counts, Limits, Room};
use crate::run_loop::Controller;
use crate::task::Thread;
use crate::task::table::Slot;

/// So many threads are watched at a time, as long as they are no stages.
const WATCHED_AT_A_TIME: Limits = Limits { each: 16, all: 64 };
/// A watched thread that is no stage is let go after so long.
const WATCHED: Span = Span::from_secs(10);
/// And after so long if its users show no rhythm.
const WATCHED_AT_MOST: Span = Span::from_secs(60);

impl<A: Actuator> Controller<A> {
    /// The threads that the sensor is to track alone since this was last asked; it may refuse.
    pub fn partners_to_track(&mut self) -> Vec<Partner> {
        let pipelines = self.pipelines.as_mut();
        pipelines.map_or_else(Vec::new, |pipelines| {
            std::mem::take(&mut pipelines.to_track)
        })
    }

    /// The sensor did not track this one: another may be watched in its place.
    pub fn partner_refused(&mut self, partner: Partner, now: Instant) {
        // Whom it was to work for may be gone by now.
        let requested = |pipelines: &Pipelines| Some(pipelines.requested.get(&partner.tid)?.payer);
        let payer = self.pipelines.as_ref().and_then(requested);
        let payer = payer.unwrap_or_else(|| self.payer_of(partner.of));
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.turn_away(payer, partner.tid, now);
        }
    }

    /// The threads that the sensor is to track no longer since this was last asked.
    pub fn partners_to_untrack(&mut self) -> Vec<TaskId> {
        let pipelines = self.pipelines.as_mut();
        pipelines.map_or_else(Vec::new, |pipelines| {
            std::mem::take(&mut pipelines.to_untrack)
        })
    }

    /// The tracked threads for whose sake the partner `task` is tracked; none of a thread that is
    /// no partner.
    pub fn works_for(&self, task: TaskId) -> &[TaskId] {
        let slot = self.tasks.find(task);
        let thread = slot.and_then(|slot| self.tasks.get(slot));
        let partner = thread.and_then(|thread| thread.path.partner());
        partner.map_or(&[], |partner| &partner.of)
    }

    /// Somebody else is behind the thread from now on.
    pub fn changed_party(&mut self, task: TaskId) {
        let party = (self.settings.parties)(task);
        if let Some(thread) = self
            .tasks
            .find(task)
            .and_then(|slot| self.tasks.get_mut(slot))
        {
            thread.party = party;
        }
    }

    fn payer_of(&self, task: TaskId) -> u32 {
        let slot = self.tasks.find(task);
        slot.map_or_else(
            || (self.settings.parties)(task).payer,
            |slot| self.party(slot).payer,
        )
    }

    /// A thread comes to be tracked: perhaps because it was to be watched.
    pub(crate) fn announced(&mut self, slot: Slot, now: Instant) {
        let Some(pipelines) = &mut self.pipelines else {
            return;
        };
        let Some(task) = self.tasks.get(slot).map(|thread| thread.task) else {
            return;
        };
        let Some(Requested { of, payer, .. }) = pipelines.requested.remove(&task.id.tid) else {
            return;
        };
        pipelines.exchanges.remove((payer, task.id.tid));
        let is_outsider = pipelines.is_outsider(task.pid);
        let user = self.tasks.find(of).and_then(|slot| self.tasks.get(slot));
        let watched = Watched::new(of, user.is_some_and(Thread::is_on_the_beat), now);
        if let Some(thread) = self.tasks.get_mut(slot) {
            thread.path.set_partner(Some(watched));
        }
        if is_outsider {
            self.let_partner_go(slot, now);
        }
    }

    /// The thread is watched no more, and gets back what it had.
    pub(super) fn let_partner_go(&mut self, slot: Slot, now: Instant) {
        let payer = self.party(slot).payer;
        let Some(thread) = self.tasks.get_mut(slot) else {
            return;
        };
        let task = thread.task.id;
        thread.leave_path();
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.turn_away(payer, task.tid, now);
            pipelines.to_untrack.push(task);
        }
        self.forget(task, now);
    }

    /// A watched thread is let go if all that it was watched for are gone, or it has not become a
    /// stage.
    pub(super) fn look_at_partner(&mut self, slot: Slot, now: Instant) {
        let partner = self.tasks.get_mut(slot).and_then(|t| t.path.partner_mut());
        let Some(partner) = partner else {
            return;
        };
        let before = std::mem::take(&mut partner.of);
        let (since, beat) = (partner.since, partner.beats);
        let Some(thread) = self.tasks.get(slot) else {
            return;
        };
        let heads = thread.path.contacts().iter();
        let heads = heads.filter(|(head, _)| self.heard(*head).is_some());
        let heads = heads.map(|(head, contacts)| (*head, contacts.standing(now).is_some()));
        let (sure, unsure): (Vec<_>, Vec<_>) = heads.partition(|(_, is_sure)| *is_sure);
        let mut of: Vec<TaskId> = sure.into_iter().map(|(head, _)| head).collect();
        // A player that pauses comes back.
        if of.is_empty() {
            of = before;
            of.retain(|user| self.heard(*user).is_some());
            of.extend(unsure.into_iter().map(|(head, _)| head));
            of.sort_unstable();
            of.dedup();
        }
        let is_stage = thread.path.stage().is_some();
        let mut users = of.iter().filter_map(|user| self.heard(*user));
        let beats = users.any(Thread::is_on_the_beat);
        let longest = if beats { WATCHED } else { WATCHED_AT_MOST };
        let is_over = beat == beats && now.since(since) >= longest;
        let is_alone = of.is_empty();
        if let Some(partner) = self.tasks.get_mut(slot).and_then(|t| t.path.partner_mut()) {
            partner.of = of;
            if beat != beats {
                partner.since = now;
                partner.beats = beats;
            }
        }
        if is_alone || (is_over && !is_stage) {
            self.let_partner_go(slot, now);
        } else {
            self.arbiter
                .weigh_anew(&mut self.tasks, slot, &self.settings);
        }
    }

    /// The thread, if the sensor tells of it.
    fn heard(&self, task: TaskId) -> Option<&Thread> {
        let slot = self.tasks.find(task)?;
        let thread = self.tasks.get(slot)?;
        (!thread.unheard).then_some(thread)
    }

    /// Whoever exchanges most wakeups with the paths is watched from now on, as far as there is
    /// room.
    pub(super) fn watch_others(&mut self, now: Instant) {
        let threads = self.tasks.iter();
        let watched = threads.filter(|t| t.path.is_partner() && t.path.stage().is_none());
        let mut counts: Counts = watched.map(|thread| thread.party.payer).collect();
        let Some(pipelines) = &mut self.pipelines else {
            return;
        };
        pipelines.give_up_requests(now - WATCHED, now);
        pipelines.forgive(now);
        pipelines.count_requested(&mut counts);
        let mut asked_for = Vec::new();
        for ((payer, tid), exchange) in pipelines.worth_watching(now) {
            // Two payers' threads may wait for the same one: one of them asks first.
            if asked_for.contains(&tid) || self.tasks.find_number(tid).is_some() {
                continue;
            }
            match counts.room(payer, WATCHED_AT_A_TIME) {
                Room::None => continue,
                Room::Free => {}
                Room::InPlaceOf(other) => {
                    if !self.let_longest_watched_go(other, now) {
                        continue;
                    }
                    counts.take(other);
                }
            }
            counts.add(payer);
            asked_for.push(tid);
            let (of, since) = (exchange.with, now);
            if let Some(pipelines) = &mut self.pipelines {
                pipelines.request(tid, Requested { of, payer, since });
            }
        }
    }

    /// Of those that are watched for the payer and are no stages. Whether there was one.
    fn let_longest_watched_go(&mut self, payer: u32, now: Instant) -> bool {
        let watched = self.tasks.slots().filter_map(|slot| {
            let thread = self.tasks.get(slot)?;
            let since = thread.path.partner()?.since;
            let is_theirs = thread.party.payer == payer && thread.path.stage().is_none();
            is_theirs.then_some((since, slot))
        });
        let longest = watched.min();
        if let Some((_, slot)) = longest {
            self.let_partner_go(slot, now);
        }
        longest.is_some()
    }
}
