//! When another speed is wanted, and which.
//!
//! The band is powernowd's rule in its default mode: above it the highest speed at once, below it
//! one speed less. powernowd looks no further; here a fall must not carry the utilisation over the
//! band's other end, or a coarse ladder in a narrow band would be climbed up and down for ever.
//!
//! The uniform speed is GRACE-OS's: the lowest one at which everything promised fits (section 2.4,
//! eq. 3 over the CPU's whole time; section 4.3 calls it stoUni). The promise is the sum of all
//! budgets over their periods, and the share that best-effort programs are to keep (section 4.4).
//! It looks at no utilisation: a hog beside the reserved threads raises no speed.
//!
//! What is used and promised is projected to another speed (LFS++, eq. 6): U_dest = U_curr f_curr /
//! f_dest. Assumes that a job takes the same cycles at any speed. Work that waits for memory takes
//! fewer at a lower one, so the projection of a fall errs on the safe side; the predictors correct
//! it.

use onbeat_model::{Bandwidth, Ladder, Reservation, Speed};

use crate::supervisor::{Limits, Request, arbitrate};

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
