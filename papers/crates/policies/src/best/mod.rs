//! `schedulers/best/policy.h`: BEST, which schedules by the periods that it sees, with missed
//! deadline notifications.

crate::shim::policy!(Best, onbeat_best);

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Notifications are listened to: 0 or 1.
    pub mdn: u64,
    /// From this confidence on, of [`SURE`], a task is well-behaved.
    pub confident: u64,
    /// One measurement moves the averages by one part of this many.
    pub inertia: u64,
    /// The pseudo-period of a task that blocks by itself.
    pub interactive_ns: u64,
    /// The pseudo-period of one that does not.
    pub batch_ns: u64,
    /// For how long a task runs until it gets a new deadline.
    pub longest_run_ns: u64,
    /// A notification counts up to this part of the period, of [`SURE`], before or after its end.
    pub window: u64,
    /// This many notifications in a row count for a task that does not block meanwhile.
    pub patience: u64,
    /// A notification after the window changes nothing, as in the paper: 0 or 1.
    pub discard_late: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The number of the present window of time.
    pub window: u64,
    /// How many tasks have used up a longest run in each window, by its number.
    pub hogs: [u64; 4],
    /// How many notifications counted as the end of a period.
    pub heard: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// When it last entered the run queue, or notified instead. Zero: not yet.
    pub entered_ns: u64,
    /// The average time between two entries. Zero: none yet.
    pub period_ns: u64,
    /// How well the measurements agree, of [`SURE`].
    pub confidence: u64,
    /// The end of the period, real or not.
    pub deadline_ns: u64,
    /// How long it has run under this deadline.
    pub ran_ns: u64,
    /// It used up its longest run since it last blocked.
    pub batch: u64,
    pub window: u64,
    /// How many notifications counted since it last entered.
    pub notified: u64,
    /// It notified, and has not entered since: 0 or 1.
    pub told: u64,
    /// It has been well-behaved: its period was established.
    pub known: u64,
}

/// A confidence of one.
pub const SURE: u64 = 1024;

#[cfg(test)]
mod tests;
