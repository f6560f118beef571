//! Makes adjustments of the reservations in force from requests, in their right order.
//!
//! If all requests fit, each that changed is granted whole, up to the cap of one task. If not, all
//! requests are looked at, and compressed.

use std::collections::HashMap;
use std::vec::IntoIter;

use onbeat_decide::supervisor::{self, Limits, Request, SupervisorOutcome};
use onbeat_model::{Bandwidth, Refusal, Reservation, TaskId};

use super::bandwidth;
use super::filter::is_worth_raising;
use super::request::RequestRecord;
use super::requests::{RequestIndex, RequestTable};
use crate::Why;
use crate::slots::{BySlot, Slot};

/// All requests, and what has changed about them since the last arbitration.
pub(crate) struct Arbiter {
    pub(super) requests: RequestTable,
    pub(super) claims: BySlot<RequestRecord>,
    limits: Limits,
    changed: Vec<Slot>,
    /// Not every request was granted whole.
    pub(super) is_compressed: bool,
    /// The next arbitration looks at all requests.
    pub(super) is_stale: bool,
}

pub(crate) struct Arbitration {
    limits: Limits,
    changed: Vec<Slot>,
    next: usize,
    stage: ArbitrationStage,
}

enum ArbitrationStage {
    /// All fits: each that changed is granted whole.
    Each,
    All,
    Adjusting {
        adjustments: IntoIter<Adjustment>,
        is_compressed: bool,
    },
}

pub(crate) struct Adjustment {
    pub(crate) slot: Slot,
    pub(crate) held: Option<Reservation>,
    pub(crate) target: Option<Reservation>,
    pub(crate) why: Why,
}

impl Arbiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            requests: RequestTable::default(),
            claims: BySlot::default(),
            limits,
            changed: Vec::new(),
            is_compressed: false,
            is_stale: false,
        }
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.is_stale = true;
    }

    /// Has the next arbitration look at all requests.
    pub(crate) const fn look_at_all(&mut self) {
        self.is_stale = true;
    }

    pub(crate) const fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The threads whose requests changed since the last arbitration.
    pub(crate) fn changed(&self) -> &[Slot] {
        &self.changed
    }

    pub(crate) fn requests(&self) -> &[Request] {
        self.requests.requests()
    }

    /// The slot of the thread whose request is at `place`.
    pub(crate) fn slot(&self, place: RequestIndex) -> Option<Slot> {
        self.requests.slot(place)
    }

    /// Settles the thread's request in this turn. If there are several reasons, the last one
    /// counts, but a change of demand counts only alone.
    pub(crate) fn ask(&mut self, slot: Slot, why: Why) {
        let claim = self.claims.get_mut(slot);
        if claim.asked.is_none() {
            self.changed.push(slot);
        }
        if claim.asked.is_none() || !matches!(why, Why::Demand { .. }) {
            claim.asked = Some(why);
        }
    }

    pub(crate) fn forget(&mut self, slot: Slot) {
        self.claims.take(slot);
        self.changed.retain(|&other| other != slot);
    }

    /// Tests whether `wanted` fits whole beside the reservations promised to others.
    /// Fails with [`Refusal::NoRoom`] if it does not.
    pub(crate) fn admits(&self, slot: Slot, wanted: Reservation) -> Result<(), Refusal> {
        let bandwidth = wanted.bandwidth();
        if bandwidth > self.limits.per_task {
            return Err(Refusal::NoRoom {
                wanted: bandwidth,
                advice: format!("no task may have more than {}", self.limits.per_task),
            });
        }
        let others: Bandwidth = (0..self.requests.requests().len())
            .filter(|&place| self.requests.slot(place) != Some(slot))
            .filter_map(|place| Some(self.requests.request(place)?.least))
            .sum();
        if others + bandwidth > self.limits.total {
            return Err(Refusal::NoRoom {
                wanted: bandwidth,
                advice: format!(
                    "{others} of {} is held by others already: ask for less, or end another reservation",
                    self.limits.total
                ),
            });
        }
        Ok(())
    }

    /// Begins an arbitration, if one is due. No more than `admitted` is handed out, if the kernel
    /// has admitted no more.
    pub(crate) fn begin(
        &mut self,
        held: &dyn Fn(Slot) -> Option<Reservation>,
        admitted: Option<Bandwidth>,
    ) -> Option<Arbitration> {
        let limits = Limits {
            total: self.limits.total.min(admitted.unwrap_or(self.limits.total)),
            ..self.limits
        };
        if self.changed.is_empty() && !self.is_stale {
            return None;
        }
        let mut changed = std::mem::take(&mut self.changed);
        let fits = self.requests.sum() <= limits.total;
        let stage = if self.is_stale || self.is_compressed || !fits {
            ArbitrationStage::All
        } else {
            // Reservations that shrink come first, so that there is room for the others at any
            // moment.
            changed.sort_by_key(|&slot| bandwidth(self.wanted(slot)) > bandwidth(held(slot)));
            ArbitrationStage::Each
        };
        Some(Arbitration {
            limits,
            changed,
            next: 0,
            stage,
        })
    }

    pub(crate) fn next(
        &mut self,
        arbitration: &mut Arbitration,
        held: &dyn Fn(Slot) -> Option<Reservation>,
    ) -> Option<Adjustment> {
        loop {
            match &mut arbitration.stage {
                ArbitrationStage::Each => {
                    let slot = arbitration.next_changed()?;
                    let adjustment = self.grant(slot, held(slot), &arbitration.limits);
                    if adjustment.is_some() {
                        return adjustment;
                    }
                }
                ArbitrationStage::All => {
                    arbitration.stage = self.all(held, &arbitration.limits);
                }
                ArbitrationStage::Adjusting { adjustments, .. } => return adjustments.next(),
            }
        }
    }

    pub(crate) fn end(&mut self, arbitration: Arbitration) {
        let ArbitrationStage::Adjusting { is_compressed, .. } = arbitration.stage else {
            return;
        };
        self.is_compressed = is_compressed;
        for slot in arbitration.changed {
            self.claims.get_mut(slot).asked = None;
        }
    }

    fn grant(
        &mut self,
        slot: Slot,
        held: Option<Reservation>,
        limits: &Limits,
    ) -> Option<Adjustment> {
        let why = self.claims.get_mut(slot).asked.take();
        let request = self.request(slot)?;
        let outcome = supervisor::arbitrate(std::slice::from_ref(request), limits);
        let grant = outcome.grants.first()?;
        Some(Adjustment {
            slot,
            held,
            target: grant.reservation,
            why: why?,
        })
    }

    /// Looks at all requests, because not all fit, or all may fit again. Reservations that shrink
    /// come first, so that there is room for the others.
    fn all(
        &mut self,
        held: &dyn Fn(Slot) -> Option<Reservation>,
        limits: &Limits,
    ) -> ArbitrationStage {
        self.is_stale = false;
        let outcome = supervisor::arbitrate(self.requests.requests(), limits);
        let is_compressed = outcome
            .gave_way
            .iter()
            .any(|how| how.why != supervisor::GrantReason::TaskCap);
        let mut adjustments = self.adjustments(held, &outcome, is_compressed);
        adjustments.sort_by_key(Adjustment::raises);
        ArbitrationStage::Adjusting {
            adjustments: adjustments.into_iter(),
            is_compressed,
        }
    }

    fn adjustments(
        &self,
        held: &dyn Fn(Slot) -> Option<Reservation>,
        outcome: &SupervisorOutcome,
        is_compressed: bool,
    ) -> Vec<Adjustment> {
        let mut adjustments = Vec::new();
        let gave_way = if is_compressed {
            &*outcome.gave_way
        } else {
            &[]
        };
        let turns: HashMap<TaskId, usize> = (gave_way.iter().zip(1..))
            .map(|(how, turn)| (how.task, turn))
            .collect();
        for (place, grant) in outcome.grants.iter().enumerate() {
            let Some(slot) = self.requests.slot(place) else {
                continue;
            };
            let (held, asked) = (held(slot), self.claims.get(slot).asked.clone());
            if held == grant.reservation {
                continue;
            }
            let raises = bandwidth(grant.reservation) > bandwidth(held);
            if asked.is_none() && raises && !is_worth_raising(held, grant.reservation) {
                continue;
            }
            let turn = turns.get(&grant.task).copied();
            let why = match turn.and_then(|turn| Some((turn, *gave_way.get(turn - 1)?))) {
                Some((turn, how)) => Why::GaveWay {
                    turn,
                    of: gave_way.len(),
                    how,
                },
                None => asked.unwrap_or(Why::RoomAgain),
            };
            adjustments.push(Adjustment {
                slot,
                held,
                target: grant.reservation,
                why,
            });
        }
        adjustments
    }
}

impl Arbitration {
    fn next_changed(&mut self) -> Option<Slot> {
        let slot = self.changed.get(self.next).copied();
        self.next += 1;
        slot
    }
}

impl Adjustment {
    fn raises(&self) -> bool {
        bandwidth(self.target) > bandwidth(self.held)
    }
}
