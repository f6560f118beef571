//! How fast the CPUs are to run, without a job noticing that they run slower (LFS++, section 6.3).
//!
//! One [rule](Band::wants) is powernowd's: the highest speed at once when the machine is too busy,
//! one speed less when it has too little to do. The [other](Uniform::wants) is GRACE-OS's: the
//! lowest speed at which all budgets fit. A fall makes every job longer, so it is made in two
//! steps, the mode-change protocol: budgets first, by the [projection](projected_share) of eq. 6,
//! and the speed only when every task certainly has its new budget. A fall after which not all
//! budgets would fit is dismissed. [`PowerManager`] keeps that order.

use onbeat_model::{Bandwidth, Instant, Ladder, Reservation, Span, Speed};

use crate::supervisor::{Limits, Request, arbitrate};

// What is used and promised is projected to another speed (LFS++, eq. 6): U_dest = U_curr f_curr /
// f_dest. Assumes that a job takes the same cycles at any speed. Work that waits for memory takes
// fewer at a lower one, so the projection of a fall errs on the safe side; predictors correct it.

/// The utilisation of a CPU that is neither too high nor too low.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    low: Bandwidth,
    high: Bandwidth,
}

impl Default for Band {
    /// 20% to 80% (LFS++, section 6.3; powernowd's own default).
    fn default() -> Self {
        Self {
            low: Bandwidth::from_cpus(0.2),
            high: Bandwidth::from_cpus(0.8),
        }
    }
}

impl Band {
    /// A band from `low` to `high`; none unless 0 <= low < high <= 1 CPU.
    #[must_use]
    pub fn new(low: Bandwidth, high: Bandwidth) -> Option<Self> {
        (low < high && high <= Bandwidth::ONE).then_some(Self { low, high })
    }

    /// The utilisation above which the highest speed is wanted.
    #[must_use]
    pub const fn high(&self) -> Bandwidth {
        self.high
    }

    /// The speed that is wanted at this `utilisation` of the busiest CPU; none if the `present` one
    /// is right.
    #[must_use]
    pub fn wants(&self, utilisation: Bandwidth, present: Speed, ladder: &Ladder) -> Option<Speed> {
        if utilisation > self.high {
            let highest = ladder.highest();
            return (highest > present).then_some(highest);
        }
        if utilisation >= self.low {
            return None;
        }
        let lower = ladder.below(present)?;
        (projected_share(utilisation, present, lower) <= self.high).then_some(lower)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniform {
    /// The share that best-effort programs are to keep, of all CPUs at the highest speed.
    pub best_effort: f64,
    pub cpus: u32,
}

impl Uniform {
    /// Whether all `requests`, made at the speed `from`, would be granted in full at the speed
    /// `to`, with room for best-effort programs beside them; `highest` is the one that their share
    /// is of.
    #[must_use]
    pub fn fits(
        &self,
        requests: &[Request],
        limits: &Limits,
        (from, to): (Speed, Speed),
        highest: Speed,
    ) -> bool {
        let cpus = f64::from(self.cpus);
        let best_effort = Bandwidth::from_cpus(self.best_effort * cpus);
        let promised: Bandwidth = requests.iter().map(|r| r.wanted.bandwidth()).sum();
        let all = projected_share(promised, from, to) + projected_share(best_effort, highest, to);
        all <= Bandwidth::from_cpus(cpus) && projected_fit(requests, limits, from, to).is_ok()
    }

    /// The lowest speed at which they fit; the highest where they fit at none. None if nothing is
    /// requested: as long as no thread has shown what it needs, nothing follows for the speed (the
    /// paper runs its first 100 jobs at the highest).
    #[must_use]
    pub fn wants(
        &self,
        requests: &[Request],
        limits: &Limits,
        from: Speed,
        ladder: &Ladder,
    ) -> Option<Speed> {
        if requests.is_empty() {
            return None;
        }
        let highest = ladder.highest();
        let fits = |to: &Speed| self.fits(requests, limits, (from, *to), highest);
        Some(ladder.speeds().find(fits).unwrap_or(highest))
    }
}

#[must_use]
pub fn projected_share(share: Bandwidth, from: Speed, to: Speed) -> Bandwidth {
    Bandwidth::from_cpus(share.as_cpus() * from.ratio(to))
}

/// Whether all `requests`, made at the speed `from`, would be granted in full at the speed `to`:
/// the supervisor's own test (eq. 1, and its cap for one task) of the projected budgets.
/// Fails with the bandwidth that they would come to if not.
pub fn projected_fit(
    requests: &[Request],
    limits: &Limits,
    from: Speed,
    to: Speed,
) -> Result<(), Bandwidth> {
    let total = || {
        let shares = requests.iter().map(|request| request.wanted.bandwidth());
        projected_share(shares.sum(), from, to)
    };
    let projected: Option<Vec<Request>> = requests
        .iter()
        .map(|request| projected_request(request, from, to))
        .collect();
    match projected {
        Some(projected) if arbitrate(&projected, limits).gave_way.is_empty() => Ok(()),
        _ => Err(total()),
    }
}

/// None if the job would not even fit before its deadline.
fn projected_request(request: &Request, from: Speed, to: Speed) -> Option<Request> {
    let wanted = request.wanted;
    let runtime = wanted.runtime().scale(from.ratio(to));
    let wanted = Reservation::new(runtime, wanted.deadline(), wanted.period()).ok()?;
    Some(Request { wanted, ..*request })
}

// The mode-change protocol: a rise at once; a fall only after all budgets have been raised, and the
// longest reservation period has passed, because a raised budget of a task that has used up its old
// one counts from its next replenishment.
//
// ```text
//              sampled: too busy -> Rise
//            +---------------------------+
//            v                           |
//         steady --- sampled: idle ---> raising --- budgets_in_force ---> waiting
//            ^        (all would fit)    |                                  |
//            +-------- given_up ---------+---- due: no longer fits ---------+
//            +------------------------------- due: the time is over --------+
// ```

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

    pub fn switched(&mut self, speed: Speed) {
        self.present = speed;
        self.phase = Phase::Steady;
    }
}

#[cfg(test)]
mod tests;
