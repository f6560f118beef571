//! The speed of the CPUs: looked at in every sampling interval, raised at once, and lowered only
//! when all budgets are in force for it (`decide`'s `power`; LFS++, section 6.3; GRACE-OS, section
//! 2.4).
//!
//! Everything the loop keeps is in time at the present speed. While a fall is on its way, requests
//! are stretched to what they will be; after a change, what was learnt is projected to the new
//! speed.

use std::collections::BTreeMap;
use std::fmt;

use onbeat_decide::power::{PowerManager, ProtocolRule, SpeedStep, Uniform};
use onbeat_decide::supervisor::{Limits, Request};
use onbeat_model::{Actuator, Bandwidth, Instant, Refusal, Span, Speed, Speeds};
use serde::Serialize;

use crate::enforcement::{Enforcer, LONGEST_RETRY};
use crate::report::in_words;
use crate::{PowerSettings, SpeedRule, Why};

pub(crate) struct SpeedGovernor {
    manager: PowerManager,
    highest: Speed,
    runtimes_follow_speed: bool,
    every: Span,
    /// When the CPUs' idle times were last looked at, and what they were.
    sampled: Option<(Instant, Vec<Span>)>,
    account: SpeedAccount,
    log: Vec<SpeedEntry>,
    /// The last entry was a refusal: another one is no news.
    refused: bool,
    /// The actuator's, until another program takes the speed over.
    ours: bool,
    /// Budgets were raised for nothing: until then, they are not raised for a fall again.
    no_fall_before: Instant,
}

impl SpeedGovernor {
    pub(crate) fn new(settings: PowerSettings, speeds: Speeds, cpus: u32) -> Self {
        let highest = speeds.ladder.highest();
        let rule = match settings.rule {
            SpeedRule::Band(band) => ProtocolRule::Band(band),
            SpeedRule::Uniform { best_effort } => {
                ProtocolRule::Uniform(Uniform { best_effort, cpus })
            }
        };
        Self {
            manager: PowerManager::new(rule, speeds.ladder, speeds.present),
            highest,
            runtimes_follow_speed: speeds.runtimes_follow_speed,
            every: settings.sampling,
            sampled: None,
            account: SpeedAccount::default(),
            log: Vec::new(),
            refused: false,
            ours: true,
            no_fall_before: Instant::ZERO,
        }
    }

    /// By what factor jobs will take longer at the speed at which budgets must suffice.
    pub(crate) fn stretch(&self) -> f64 {
        self.manager.present().ratio(self.manager.budgets_for())
    }

    /// By what factor the scheduler counts runtimes: budgets are in time at the speed at which they
    /// must suffice, and the scheduler's own time may be that at the highest.
    pub(crate) fn scale(&self) -> Option<f64> {
        let scale = self.manager.budgets_for().ratio(self.highest);
        self.runtimes_follow_speed.then_some(scale)
    }

    fn enter(&mut self, at: Instant, what: SpeedWhat, why: SpeedWhy, new: Option<Speed>) {
        self.log.push(SpeedEntry {
            at,
            what,
            why,
            old: Some(self.manager.present()),
            new,
        });
    }

    pub(crate) const fn follows_budgets(&self) -> bool {
        matches!(self.manager.rule(), ProtocolRule::Uniform(_))
    }

    pub(crate) fn wants_idle(&self, now: Instant) -> bool {
        let due = self.sampled.as_ref().map(|(at, _)| *at + self.every);
        self.ours && due.is_none_or(|due| due <= now)
    }

    /// Decides about the speed by how long each CPU has been idle; nothing if CPUs came or went
    /// since the last look.
    pub(crate) fn idle<A: Actuator>(
        &mut self,
        on: &mut Governed<'_, A>,
        idle: Vec<Span>,
    ) -> Option<Renewal> {
        let Some((at, before)) = self.sampled.replace((on.now, idle)) else {
            return self.set_speed(on, self.highest, SpeedWhy::Began);
        };
        let (_, idle) = self.sampled.as_ref()?;
        let over = on.now.since(at);
        if idle.len() != before.len() || over.is_zero() {
            return None;
        }
        let idle = idle.iter().zip(&before).map(|(&now, &then)| now - then);
        self.decide(on, Bandwidth::ONE - Bandwidth::of(idle.min()?, over))
    }

    fn decide<A: Actuator>(
        &mut self,
        on: &mut Governed<'_, A>,
        utilisation: Bandwidth,
    ) -> Option<Renewal> {
        let (requests, limits, now) = (&on.requests, &on.limits, on.now);
        let falling = self.manager.budgets_for();
        let wanted = self.manager.wants(utilisation, requests, limits);
        let falls = wanted.is_some_and(|to| to < self.manager.present());
        if now < self.no_fall_before && falls {
            return None;
        }
        let step = self.manager.sampled(utilisation, requests, limits);
        let (busy, idle) = if self.follows_budgets() {
            let why = SpeedWhy::Budgets(promised(requests));
            (why.clone(), why)
        } else {
            (
                SpeedWhy::Busy { utilisation },
                SpeedWhy::Idle { utilisation },
            )
        };
        match step {
            Some(SpeedStep::Rise(to)) => return self.set_speed(on, to, busy),
            Some(SpeedStep::RaiseBudgets(to)) => {
                self.enter(now, SpeedWhat::Announced, idle, Some(to));
                let from = self.manager.present();
                return Some(Renewal {
                    factor: None,
                    requests: Some(Why::SpeedFalls { from, to }),
                });
            }
            Some(SpeedStep::Dismiss { to, projected }) => {
                self.refuse(to, SpeedWhy::NoRoom(projected), now);
            }
            None if falling < self.manager.budgets_for() => {
                self.enter(now, SpeedWhat::GivenUp, busy, Some(falling));
            }
            Some(SpeedStep::Fall(_)) | None => {}
        }
        None
    }

    /// Requests have changed: where the speed follows from them, it rises before they are settled.
    pub(crate) fn press<A: Actuator>(&mut self, on: &mut Governed<'_, A>) -> Option<Renewal> {
        if !self.ours {
            return None;
        }
        let Some(SpeedStep::Rise(to)) = self.manager.pressed(&on.requests, &on.limits) else {
            return None;
        };
        let why = SpeedWhy::Budgets(promised(&on.requests));
        self.set_speed(on, to, why)
    }

    pub(crate) fn awaits_budgets(&self) -> bool {
        self.manager.awaits_budgets()
    }

    /// All requests are settled. `longest` is the longest period of all, if each is in force as it
    /// is. If not, the fall is given up.
    pub(crate) fn arbitrated(&mut self, longest: Option<Span>, now: Instant) {
        if let Some(longest) = longest {
            self.manager.budgets_in_force(now, longest);
            return;
        }
        let to = self.manager.budgets_for();
        self.manager.give_up();
        self.no_fall_before = now + LONGEST_RETRY;
        self.enter(now, SpeedWhat::GivenUp, SpeedWhy::BudgetRefused, Some(to));
    }

    pub(crate) fn pace<A: Actuator>(&mut self, on: &mut Governed<'_, A>) -> Option<Renewal> {
        match self.manager.due(on.now, &on.requests, &on.limits) {
            Some(SpeedStep::Fall(to)) => self.set_speed(on, to, SpeedWhy::BudgetsInForce),
            Some(SpeedStep::Dismiss { to, projected }) => {
                let why = SpeedWhy::NoRoom(projected);
                self.enter(on.now, SpeedWhat::GivenUp, why, Some(to));
                None
            }
            _ => None,
        }
    }

    fn refuse(&mut self, to: Speed, why: SpeedWhy, now: Instant) {
        if !std::mem::replace(&mut self.refused, true) {
            self.enter(now, SpeedWhat::Refused, why, Some(to));
        }
    }

    fn set_speed<A: Actuator>(
        &mut self,
        on: &mut Governed<'_, A>,
        to: Speed,
        why: SpeedWhy,
    ) -> Option<Renewal> {
        let now = on.now;
        if let Err(refusal) = on.enforcer.set_speed(to) {
            self.manager.give_up();
            self.ours = !matches!(refusal, Refusal::TakenOver { .. });
            self.refuse(to, SpeedWhy::Refused(refusal), now);
            return None;
        }
        self.enter(now, SpeedWhat::Set, why, Some(to));
        self.refused = false;
        let from = self.manager.present();
        self.manager.switched(to);
        self.account.switched(to, now);
        // The scheduler gives less time by itself: the requests are to say so.
        let counted_anew = self.runtimes_follow_speed && to > from;
        Some(Renewal {
            factor: Some(from.ratio(to)),
            requests: counted_anew.then_some(Why::SpeedRose { from, to }),
        })
    }

    pub(crate) fn finish<A: Actuator>(
        &mut self,
        enforcer: &mut Enforcer<A>,
        now: Instant,
    ) -> Vec<AtSpeed> {
        let at_speeds = self.account.at_speeds(now);
        if self.ours {
            let (what, why) = match enforcer.release_speed() {
                Ok(()) => (SpeedWhat::Released, SpeedWhy::Finished),
                Err(refusal) => (SpeedWhat::Refused, SpeedWhy::Refused(refusal)),
            };
            self.enter(now, what, why, None);
        }
        at_speeds
    }

    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, SpeedEntry> {
        self.log.drain(..)
    }
}

/// By what the speed is decided, and who sets it.
pub(crate) struct Governed<'a, A> {
    pub(crate) enforcer: &'a mut Enforcer<A>,
    pub(crate) requests: Vec<Request>,
    pub(crate) limits: Limits,
    pub(crate) now: Instant,
}

pub(crate) struct Renewal {
    /// The ratio of execution times now to those before.
    pub(crate) factor: Option<f64>,
    pub(crate) requests: Option<Why>,
}

fn promised(requests: &[Request]) -> Bandwidth {
    requests
        .iter()
        .map(|request| request.wanted.bandwidth())
        .sum()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SpeedWhat {
    /// A lower speed is to be set: budgets are raised first.
    #[serde(rename = "speed-announced")]
    Announced,
    #[serde(rename = "speed-set")]
    Set,
    /// The lower speed that was announced is not set after all.
    #[serde(rename = "speed-given-up")]
    GivenUp,
    /// Another speed is wanted and cannot be.
    #[serde(rename = "speed-refused")]
    Refused,
    /// The speed is again in the hands that had it before.
    #[serde(rename = "speed-released")]
    Released,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SpeedWhy {
    Began,
    /// The busiest CPU is in use for so much of the time.
    Busy {
        utilisation: Bandwidth,
    },
    /// Even the busiest CPU is in use for so little of the time.
    Idle {
        utilisation: Bandwidth,
    },
    /// The lasting budgets come to so much, at the speed at which they must suffice.
    Budgets(Bandwidth),
    /// All budgets have been raised, and the longest reservation period is over.
    BudgetsInForce,
    /// The budgets would come to so much.
    NoRoom(Bandwidth),
    BudgetRefused,
    Refused(Refusal),
    Finished,
}

impl fmt::Display for SpeedWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began => f.write_str("the highest, until it is known how busy the CPUs are"),
            Self::Busy { utilisation } => {
                write!(f, "the busiest CPU is in use for {utilisation} of the time")
            }
            Self::Idle { utilisation } => write!(
                f,
                "even the busiest CPU is in use for only {utilisation} of the time"
            ),
            Self::Budgets(promised) => {
                write!(f, "the budgets come to {promised} of a CPU")
            }
            Self::BudgetsInForce => {
                f.write_str("all budgets are raised, and the longest period is over")
            }
            Self::NoRoom(projected) => {
                write!(
                    f,
                    "the reservations would come to {projected} of a CPU there"
                )
            }
            Self::BudgetRefused => f.write_str("not all budgets could be raised for it"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Finished => f.write_str("onbeat ends"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpeedEntry {
    #[serde(rename = "at_ns")]
    pub at: Instant,
    pub what: SpeedWhat,
    #[serde(serialize_with = "in_words")]
    pub why: SpeedWhy,
    #[serde(rename = "old_khz")]
    pub old: Option<Speed>,
    /// The speed from now on; of one that was announced, given up or refused, that one.
    #[serde(rename = "new_khz")]
    pub new: Option<Speed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtSpeed {
    #[serde(rename = "speed_khz")]
    pub speed: Speed,
    #[serde(rename = "time_ns")]
    pub time: Span,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SpeedAccount {
    present: Option<(Speed, Instant)>,
    past: BTreeMap<Speed, Span>,
}

impl SpeedAccount {
    pub(crate) fn switched(&mut self, speed: Speed, at: Instant) {
        if let Some((before, since)) = self.present.replace((speed, at)) {
            *self.past.entry(before).or_default() += at.since(since);
        }
    }

    pub(crate) fn at_speeds(&self, now: Instant) -> Vec<AtSpeed> {
        let mut times = self.past.clone();
        if let Some((speed, since)) = self.present {
            *times.entry(speed).or_default() += now.since(since);
        }
        let at = |(speed, time)| AtSpeed { speed, time };
        times.into_iter().map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mhz(mhz: u64) -> Speed {
        Speed::from_khz(mhz * 1000).unwrap()
    }

    #[test]
    fn an_entry_is_one_flat_line_with_units_in_its_names_and_its_reason_in_words() {
        let entry = SpeedEntry {
            at: Instant::from_ns(5),
            what: SpeedWhat::Announced,
            why: SpeedWhy::Idle {
                utilisation: Bandwidth::from_cpus(0.16),
            },
            old: Some(mhz(2400)),
            new: Some(mhz(1500)),
        };
        assert_eq!(
            serde_json::to_string(&entry).unwrap(),
            concat!(
                r#"{"at_ns":5,"what":"speed-announced","why":"even the busiest CPU is in use for "#,
                r#"only 16.0% of the time","old_khz":2400000,"new_khz":1500000}"#
            )
        );
    }
}
