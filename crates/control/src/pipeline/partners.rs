//! Threads that are tracked without a request: which ones, for which threads each may work, and
//! when it is let go.
//!
//! A partner is there for the sake of those that it works for: first the one that it was found
//! with, then the heads of the paths that it comes to work on. It stays as long as one of them is
//! tracked, and its wishes count as much as theirs.

use onbeat_model::{Instant, Span, TaskId};

use super::candidates::Requested;
use super::role::Watched;
use super::shares::{Counts, Room, ShareLimits};
use super::{Partner, PipelineFinder, party};
use crate::slots::Slot;
use crate::task::TrackedThread;
use crate::task::table::TaskTable;

const WATCHED_AT_A_TIME: ShareLimits = ShareLimits { each: 16, all: 64 };
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

    /// The threads for whose sake a partner is tracked; none of a thread that is no partner.
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

    /// Another part decides about the thread with this number.
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
    /// there is room. Returns those that are to be let go in their places.
    pub(crate) fn search(&mut self, tasks: &TaskTable, now: Instant) -> Vec<Slot> {
        let watched = tasks.iter().filter(|(slot, _)| self.is_watched(*slot));
        let mut counts: Counts = watched.map(|(_, thread)| thread.party.payer).collect();
        self.candidates.give_up_requests(now - WATCHED, now);
        self.candidates.expire_rejections(now);
        let requested = self.candidates.requested.values();
        requested.for_each(|requested| counts.add(requested.payer));
        let (mut found, mut let_go) = (Vec::new(), Vec::new());
        for ((payer, tid), exchange) in self.candidates.worth_watching(now) {
            // Two payers' threads may wait for the same one: one of them asks first.
            if found.contains(&tid) || tasks.find_number(tid).is_some() {
                continue;
            }
            match counts.room(payer, WATCHED_AT_A_TIME) {
                Room::None => continue,
                Room::Free => {}
                Room::InPlaceOf(other) => {
                    let Some(longest) = self.longest_watched(tasks, other, &let_go) else {
                        continue;
                    };
                    counts.take(other);
                    let_go.push(longest);
                }
            }
            counts.add(payer);
            found.push(tid);
            let (of, since) = (exchange.with, now);
            self.to_track.push(Partner { tid, of });
            let requested = Requested { of, payer, since };
            self.candidates.requested.insert(tid, requested);
        }
        let_go
    }

    fn longest_watched(&self, tasks: &TaskTable, payer: u32, but: &[Slot]) -> Option<Slot> {
        let watched = tasks.iter().filter_map(|(slot, _)| {
            let since = self.role(slot).partner()?.since;
            let is_theirs = party(tasks, slot).payer == payer && self.is_watched(slot);
            (is_theirs && !but.contains(&slot)).then_some((since, slot))
        });
        watched.min().map(|(_, slot)| slot)
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
