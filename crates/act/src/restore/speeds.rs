//! The way back for a domain of cpufreq.

use super::{Outcome, SpeedChange};
use crate::cpufreq::domain::{Domain, DomainError, DomainSettings};

/// Puts back what the domain had, if it still has what onbeat can have left it with.
pub(super) fn put_back(domain: &Domain, change: &SpeedChange) -> Outcome<DomainSettings> {
    if !domain.exists() {
        return Outcome::Gone;
    }
    let attempt = || -> Result<Outcome<DomainSettings>, DomainError> {
        let now = domain.settings()?;
        if !change.can_have_left(&now) {
            return Ok(Outcome::LeftAlone { now });
        }
        // Also if it tells what it had before: a change just before the crash may be on its way
        // yet.
        domain.set(&change.before, &now)?;
        Ok(if now == change.before {
            Outcome::AlreadyBack
        } else {
            Outcome::Restored
        })
    };
    attempt().unwrap_or_else(|error| Outcome::Failed {
        error: error.to_string(),
    })
}
