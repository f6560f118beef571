//! The mode-change protocol: a rise at once; a fall only after all budgets have been raised, and
//! the longest reservation period has passed.
//!
//! Why the period: a raised budget of a task that has used up its old one counts from its next
//! replenishment, which is up to one of its periods away.
//!
//! ```text
//!              sampled: too busy -> Rise
//!            +---------------------------+
//!            v                           |
//!         steady --- sampled: idle ---> raising --- budgets_in_force ---> waiting
//!            ^        (all would fit)    |                                  |
//!            +-------- given_up ---------+---- due: no longer fits ---------+
//!            +------------------------------- due: the time is over --------+
//! ```

use onbeat_model::{Bandwidth, Instant, Ladder, Span, Speed};

use super::rule::{Band, Uniform, projected_fit, projected_share};
use crate::supervisor::{Limits, Request};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpeedStep {
    /// To be set at once, higher than before: then [`PowerManager::switched`].
    Rise(Speed),
    /// All budgets are to be raised to what they must be at this lower speed, the one that
    /// [`PowerManager::budgets_for`] now tells: then [`PowerManager::budgets_in_force`], or
    /// [`PowerManager::give_up`].
    RaiseBudgets(Speed),
    /// To be set now that all budgets are in force: then [`PowerManager::switched`].
    Fall(Speed),
    /// A fall after which the budgets would not fit, but come to this.
    Dismiss { to: Speed, projected: Bandwidth },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProtocolRule {
    Band(Band),
    Uniform(Uniform),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Steady,
    Raising { to: Speed },
    Waiting { to: Speed, until: Instant },
}

/// Assumes that (1) all CPUs have one speed, the `present` one; (2) `requests` are in time at the
/// speed that [`budgets_for`](Self::budgets_for) tells; (3) time does not run backwards.
#[derive(Clone, Debug)]
pub struct PowerManager {
    rule: ProtocolRule,
    ladder: Ladder,
    present: Speed,
    phase: Phase,
    /// The highest speed that budgets asked for since the last sample.
    pressed_for: Option<Speed>,
}

impl PowerManager {
    #[must_use]
    pub const fn new(rule: ProtocolRule, ladder: Ladder, present: Speed) -> Self {
        Self {
            rule,
            ladder,
            present,
            phase: Phase::Steady,
            pressed_for: None,
        }
    }

    #[must_use]
    pub const fn rule(&self) -> ProtocolRule {
        self.rule
    }

    #[must_use]
    pub const fn present(&self) -> Speed {
        self.present
    }

    /// The speed at which budgets must suffice: the lower one as soon as a fall has begun.
    #[must_use]
    pub const fn budgets_for(&self) -> Speed {
        match self.phase {
            Phase::Steady => self.present,
            Phase::Raising { to } | Phase::Waiting { to, .. } => to,
        }
    }

    #[must_use]
    pub const fn awaits_budgets(&self) -> bool {
        matches!(self.phase, Phase::Raising { .. })
    }

    /// The busiest CPU was in use for this share of the last sampling interval, and `requests` are
    /// what is wanted to last. A fall that is on its way goes on unless the rule wants a higher
    /// speed after it: then [`Self::budgets_for`] is the present speed again.
    pub fn sampled(
        &mut self,
        utilisation: Bandwidth,
        requests: &[Request],
        limits: &Limits,
    ) -> Option<SpeedStep> {
        if self.phase != Phase::Steady && self.may_go_on(utilisation, requests, limits) {
            return None;
        }
        let from = self.budgets_for();
        let to = self.wants(utilisation, requests, limits);
        self.pressed_for = None;
        self.phase = Phase::Steady;
        let to = to?;
        if to > self.present {
            return Some(SpeedStep::Rise(to));
        }
        Some(match projected_fit(requests, limits, from, to) {
            Ok(()) => {
                self.phase = Phase::Raising { to };
                SpeedStep::RaiseBudgets(to)
            }
            Err(projected) => SpeedStep::Dismiss { to, projected },
        })
    }

    /// The wanted speed has changed: under the uniform speed, a rise is not to wait for the next
    /// sample.
    pub fn pressed(&mut self, requests: &[Request], limits: &Limits) -> Option<SpeedStep> {
        let ProtocolRule::Uniform(uniform) = self.rule else {
            return None;
        };
        let wanted = uniform.wants(requests, limits, self.budgets_for(), &self.ladder)?;
        self.pressed_for = self.pressed_for.max(Some(wanted));
        (wanted > self.present).then_some(SpeedStep::Rise(wanted))
    }

    /// Another speed than the present one, if the rule wants one; where budgets asked for a higher
    /// one since the last sample, that one.
    #[must_use]
    pub fn wants(
        &self,
        utilisation: Bandwidth,
        requests: &[Request],
        limits: &Limits,
    ) -> Option<Speed> {
        match self.rule {
            ProtocolRule::Band(band) => band.wants(utilisation, self.present, &self.ladder),
            ProtocolRule::Uniform(uniform) => {
                let now = uniform.wants(requests, limits, self.budgets_for(), &self.ladder)?;
                let to = self.pressed_for.map_or(now, |pressed| pressed.max(now));
                (to != self.present).then_some(to)
            }
        }
    }

    /// Whether the rule would not want a higher speed after the fall that is on its way.
    fn may_go_on(&self, utilisation: Bandwidth, requests: &[Request], limits: &Limits) -> bool {
        let to = self.budgets_for();
        match self.rule {
            ProtocolRule::Band(band) => {
                projected_share(utilisation, self.present, to) <= band.high()
            }
            ProtocolRule::Uniform(uniform) => {
                uniform.fits(requests, limits, (to, to), self.ladder.highest())
            }
        }
    }

    /// All budgets for the fall have been put in force by `now`; `longest` is the longest period of
    /// any reservation. Without a fall on its way, nothing happens.
    pub fn budgets_in_force(&mut self, now: Instant, longest: Span) {
        if let Phase::Raising { to } = self.phase {
            let until = now + longest;
            self.phase = Phase::Waiting { to, until };
        }
    }

    pub fn give_up(&mut self) {
        self.phase = Phase::Steady;
    }

    /// The steps that are due by `now`. The wanted total may have grown meanwhile: then the fall is
    /// dismissed after all.
    pub fn due(
        &mut self,
        now: Instant,
        requests: &[Request],
        limits: &Limits,
    ) -> Option<SpeedStep> {
        let Phase::Waiting { to, until } = self.phase else {
            return None;
        };
        if let Err(projected) = projected_fit(requests, limits, to, to) {
            self.phase = Phase::Steady;
            return Some(SpeedStep::Dismiss { to, projected });
        }
        (now >= until).then_some(SpeedStep::Fall(to))
    }

    /// The CPUs have this speed now, whatever set it.
    pub fn switched(&mut self, speed: Speed) {
        self.present = speed;
        self.phase = Phase::Steady;
    }
}
