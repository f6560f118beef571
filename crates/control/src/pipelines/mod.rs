//! Threads that nobody asked for, but that work on the path of those that are kept: found by who wakes whom, and
//! served with them.
//!
//! 1. Whoever exchanges wakeups with a thread that was asked for, or with a stage found before, is *watched*: tracked
//!    alone, at most a few threads at a time. That costs it nothing but its bursts' records.
//! 2. A watched thread that has to do with the jobs of a rhythm (`onbeat_infer::pipeline`), and has since woken threads
//!    of the path a quarter as often at least, is a *stage* of it. Who only listens, as the reader of a player's messages does,
//!    keeps it from nothing. A stage need not wake anybody to stay one: who is served well is often not waited for.
//! 3. It is reserved for, in the period of the path or of each second to fourth job, what all its work in a period
//!    takes: also what it does for others, for a display server that were held to one player's share would stand still
//!    for everybody else. Of several paths the shortest period counts; the sum of what it does for all of them is in its
//!    demand already.
//! 4. Where a thread shows no rhythm, perhaps because one that it waits for starves, that one may be tried as any
//!    thread that starves.
//! 5. A thread that is no stage after a while, or was one and computes all the time, is let go, and watched again ever
//!    more rarely. A stage whose users are gone, stand still or have lost their rhythm gets back what it had.

mod review;
mod stage;

use std::collections::HashMap;

use onbeat_model::{Actuator, Burst, Instant, Span, Task, TaskId};

use crate::PipelineSettings;
use crate::controller::Controller;
use crate::roster::Slot;
use crate::thread::{HEADS, Thread, Watched};
pub use stage::Stage;

/// How often paths are looked at.
const EVERY: Span = Span::from_ms(250);
/// A thread is watched that exchanges so many wakeups...
const WORTH_WATCHING: f64 = 6.0;
/// ... of which this share still counts a look later: three a second are enough in the long run.
const KEPT: f64 = 0.875;
/// So many threads are watched at most, and so many are stages.
const MOST_WATCHED: usize = 16;
const MOST_STAGES: usize = 32;
/// So many threads are counted, and turned away, at most.
const MOST_KNOWN: usize = 256;
/// The first process, which brings up all others.
const FIRST_PROCESS: u32 = 1;

/// A thread to track alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// Its number.
    pub tid: u32,
    /// The thread that it may work for.
    pub of: TaskId,
}

/// What is known of threads that are not tracked, and what is wanted of the sensor.
pub(crate) struct Pipelines {
    settings: PipelineSettings,
    next: Instant,
    /// Somebody has come to be worth watching since the last look.
    is_worth_a_look: bool,
    exchanges: HashMap<u32, Exchange>,
    /// Who was woken by whom in this turn.
    woken: Vec<Woken>,
    /// They are to be watched, from when on.
    requested: HashMap<u32, (TaskId, Instant)>,
    turned_away: HashMap<u32, TurnedAway>,
    to_track: Vec<Partner>,
    to_untrack: Vec<TaskId>,
}

/// Wakeups between a thread that is not tracked and one that is.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    with: TaskId,
    weight: f64,
}

#[derive(Clone, Copy, Debug)]
struct Woken {
    at: Instant,
    task: TaskId,
    waker: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct TurnedAway {
    until: Instant,
    times: u32,
}

impl Pipelines {
    pub(crate) fn new(settings: PipelineSettings) -> Self {
        Self {
            settings,
            next: Instant::ZERO,
            is_worth_a_look: false,
            exchanges: HashMap::new(),
            woken: Vec::new(),
            requested: HashMap::new(),
            turned_away: HashMap::new(),
            to_track: Vec::new(),
            to_untrack: Vec::new(),
        }
    }

    /// The burst's thread was woken, perhaps by another one.
    pub(crate) fn woken(&mut self, burst: &Burst) {
        if burst.waker != 0 {
            self.woken.push(Woken {
                at: burst.woke,
                task: burst.task,
                waker: burst.waker,
            });
        }
    }

    fn is_outsider(&self, pid: u32) -> bool {
        pid == FIRST_PROCESS || self.settings.outsiders.contains(&pid)
    }

    fn exchanged(&mut self, tid: u32, with: TaskId, count: u64) {
        let is_full = self.exchanges.len() >= MOST_KNOWN || self.turned_away.len() >= MOST_KNOWN;
        if is_full && !self.exchanges.contains_key(&tid) {
            return;
        }
        let weight = 0.0;
        let exchange = self
            .exchanges
            .entry(tid)
            .or_insert(Exchange { with, weight });
        let before = exchange.weight;
        exchange.weight += count as f64;
        self.is_worth_a_look |= before < WORTH_WATCHING && exchange.weight >= WORTH_WATCHING;
    }

    /// Somebody decides about it himself.
    pub(crate) fn forget(&mut self, tid: u32) {
        self.requested.remove(&tid);
        self.to_track.retain(|partner| partner.tid != tid);
    }

    /// Where too many were turned away, those whose time is over are not remembered for it.
    fn forgive(&mut self, now: Instant) {
        if self.turned_away.len() >= MOST_KNOWN {
            self.turned_away.retain(|_, away| away.until > now);
        }
    }

    /// It is not to be watched again soon, and ever more rarely.
    fn turn_away(&mut self, tid: u32, now: Instant) {
        const FIRST: Span = Span::from_secs(15);
        self.forgive(now);
        if self.turned_away.len() < MOST_KNOWN {
            let away = self.turned_away.entry(tid).or_default();
            away.until = now + FIRST * (1 << away.times.min(5));
            away.times += 1;
        }
        self.exchanges.remove(&tid);
        self.requested.remove(&tid);
    }
}

impl<A: Actuator> Controller<A> {
    /// The threads that the sensor is to track alone since this was last asked; it may refuse.
    pub fn partners_to_track(&mut self) -> Vec<Partner> {
        let pipelines = self.pipelines.as_mut();
        pipelines.map_or_else(Vec::new, |pipelines| {
            std::mem::take(&mut pipelines.to_track)
        })
    }

    /// The sensor did not track this one: another may be watched in its place.
    pub fn partner_refused(&mut self, tid: u32, now: Instant) {
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.turn_away(tid, now);
        }
    }

    /// The threads that the sensor is to track no longer since this was last asked.
    pub fn partners_to_untrack(&mut self) -> Vec<TaskId> {
        let pipelines = self.pipelines.as_mut();
        pipelines.map_or_else(Vec::new, |pipelines| {
            std::mem::take(&mut pipelines.to_untrack)
        })
    }

    /// The tracked `task` woke another thread `count` times, which was not tracked then.
    pub(crate) fn woke(&mut self, task: TaskId, wakee: &Task, count: u64) {
        let on_path = self
            .roster
            .find(task)
            .is_some_and(|slot| self.is_on_path(slot));
        if on_path
            && self.roster.find(wakee.id).is_none()
            && let Some(pipelines) = &mut self.pipelines
            && !pipelines.is_outsider(wakee.pid)
        {
            pipelines.exchanged(wakee.id.tid, task, count);
        }
    }

    /// Who woke a thread in this turn has to do with it. Sensors tell of threads one after another, and of a burst when
    /// it ends; contacts count in the order of their times.
    pub(crate) fn hear_contacts(&mut self) {
        let Some(pipelines) = &mut self.pipelines else {
            return;
        };
        let mut woken = std::mem::take(&mut pipelines.woken);
        woken.sort_by_key(|woken| woken.at);
        for woken in woken.drain(..) {
            self.contact(woken);
        }
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.woken = woken;
        }
    }

    fn contact(&mut self, woken: Woken) {
        let Some(slot) = self.roster.find(woken.task) else {
            return;
        };
        let Some(waker) = self.roster.find_number(woken.waker) else {
            if self.is_on_path(slot)
                && let Some(pipelines) = &mut self.pipelines
            {
                pipelines.exchanged(woken.waker, woken.task, 1);
            }
            return;
        };
        if waker == slot {
            return;
        }
        self.contact_of(waker, slot, woken.at);
        self.contact_of(slot, waker, woken.at);
        if self.is_on_path(slot)
            && let Some(partner) = self.thread(waker).and_then(|t| t.path.partner_mut())
        {
            partner.waited_for = partner.waited_for.saturating_add(1);
        }
    }

    /// Who begins a watched thread's jobs: it is woken after a rest of half a period of the path.
    pub(crate) fn begin_of_job(&mut self, slot: Slot, burst: &Burst) {
        let thread = self.threads.get(slot).and_then(Option::as_deref);
        let Some(of) = thread.and_then(|thread| Some(thread.path.partner()?.of)) else {
            return;
        };
        let user = self.roster.find(of);
        let path = user.and_then(|user| self.heads_of(user).into_iter().flatten().next());
        if let (Some((_, period)), Some(thread)) = (path, self.thread(slot))
            && let Some(partner) = thread.path.partner_mut()
        {
            partner.woke(burst, period / 2);
        }
    }

    /// The thread in `slot` had to do with `other`, and so with the paths that that one works on.
    fn contact_of(&mut self, slot: Slot, other: Slot, at: Instant) {
        let heads = self.heads_of(other);
        let is_head = self.threads.get(other).and_then(Option::as_deref);
        let is_head = is_head.is_some_and(|other| other.beats().is_some());
        let Some(thread) = self.thread(slot) else {
            return;
        };
        // Another player at the same rate, which the same server draws for, is no stage of this one's path.
        let begins = thread.path.partner().is_some_and(Watched::begins_by_itself);
        if thread.beats().is_some() || (begins && !is_head) {
            return;
        }
        let own = thread.task.id;
        for (head, period) in heads.into_iter().flatten().filter(|(head, _)| *head != own) {
            thread.path.contact(head, period, at);
        }
    }

    /// The heads of the paths on which a thread works, with their periods: itself, if it has a rhythm of its own.
    fn heads_of(&self, slot: Slot) -> [Option<(TaskId, Span)>; HEADS] {
        let mut heads = [None; HEADS];
        let Some(thread) = self.threads.get(slot).and_then(Option::as_deref) else {
            return heads;
        };
        if let (Some(rhythm), Some(first)) = (thread.beats(), heads.first_mut()) {
            *first = Some((thread.task.id, rhythm.period));
        } else if thread.path.stage().is_some() {
            let contacts = thread.path.contacts().iter();
            for (head, (id, contacts)) in heads.iter_mut().zip(contacts) {
                *head = Some((*id, contacts.period()));
            }
        }
        heads
    }

    /// Whoever exchanges wakeups with it is worth watching.
    fn is_on_path(&self, slot: Slot) -> bool {
        let thread = self.threads.get(slot).and_then(Option::as_deref);
        thread.is_some_and(|thread| !thread.path.is_partner() || thread.path.stage().is_some())
    }

    /// A thread comes to be tracked: perhaps because it was to be watched.
    pub(crate) fn announced(&mut self, slot: Slot, now: Instant) {
        let Some(pipelines) = &mut self.pipelines else {
            return;
        };
        let Some(task) = self.threads.get(slot).and_then(|t| Some(t.as_ref()?.task)) else {
            return;
        };
        let Some((of, _)) = pipelines.requested.remove(&task.id.tid) else {
            return;
        };
        pipelines.exchanges.remove(&task.id.tid);
        let is_outsider = pipelines.is_outsider(task.pid);
        let user = self
            .roster
            .find(of)
            .and_then(|slot| self.threads.get(slot)?.as_deref());
        let watched = Watched::new(of, user.is_some_and(Thread::is_on_the_beat), now);
        if let Some(thread) = self.thread(slot) {
            thread.path.set_partner(Some(watched));
        }
        if is_outsider {
            self.let_partner_go(slot, now);
        }
    }

    /// The thread is watched no more, and gets back what it had.
    fn let_partner_go(&mut self, slot: Slot, now: Instant) {
        let Some(task) = self.thread(slot).map(|thread| thread.task.id) else {
            return;
        };
        if let Some(thread) = self.thread(slot) {
            thread.leave_path();
        }
        if let Some(pipelines) = &mut self.pipelines {
            pipelines.turn_away(task.tid, now);
            pipelines.to_untrack.push(task);
        }
        self.forget(task, now);
    }
}
