//! The present use and promises, at another speed (LFS++, eq. 6): U_dest = U_curr f_curr / f_dest.
//!
//! Assumes that a job takes the same cycles at any speed. Work that waits for memory takes fewer at
//! a lower one, so the projection of a fall errs on the safe side; the predictors correct it.

use onbeat_model::{Bandwidth, Reservation, Speed};

use crate::supervisor::{Limits, Request, arbitrate};

/// Eq. 6 for one share of a CPU.
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
