//! GRACE-OS's uniform speed: the lowest one at which everything promised fits (section 2.4, eq. 3
//! over the CPU's whole time; section 4.3 calls it stoUni).
//!
//! The promise is the sum of all budgets over their periods, and the share that best-effort
//! programs are to keep (section 4.4). Unlike the band, this looks at no utilisation: a hog beside
//! the reserved threads raises no speed.

use onbeat_model::{Bandwidth, Ladder, Speed};

use super::projection::{projected_fit, projected_share};
use crate::supervisor::{Limits, Request};

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
