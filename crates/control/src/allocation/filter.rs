//! Which changes are worth a system call: of a request, before `decide`'s hysteresis counts what a
//! small one would save, and of a reservation that follows from others' requests.

use onbeat_model::Reservation;

use super::bandwidth;
use super::server::MARGIN;

/// The least difference, in CPUs, that is worth a system call while the job fits.
const TRIFLE_CPUS: f64 = 0.001;
/// The least raise, as a share, that is worth a system call if the thread's own request has not
/// changed.
const WORTH_RAISING: f64 = 0.05;
/// Server periods that differ by less than one part in this number are the same.
const SAME_SERVER: u64 = 100;

/// True if both serve a job equally well, and cost about the same.
pub(super) fn is_trifle(former: Reservation, wanted: Reservation) -> bool {
    let (a, b) = (former.bandwidth(), wanted.bandwidth());
    same_server(former, wanted)
        && wanted.runtime() <= former.runtime() + MARGIN
        && (a - b).max(b - a).as_cpus() < TRIFLE_CPUS
}

/// True for a raise that is worth it, although the thread's own request has not changed.
pub(super) fn is_worth_raising(held: Option<Reservation>, target: Option<Reservation>) -> bool {
    let held = bandwidth(held).as_cpus();
    bandwidth(target).as_cpus() > held * (1.0 + WORTH_RAISING)
}

fn same_server(former: Reservation, wanted: Reservation) -> bool {
    former.period().abs_diff(wanted.period()) * SAME_SERVER <= former.period()
}
