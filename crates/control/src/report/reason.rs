//! Why something was done to a thread. Kept as data, and put into words only when a log is written:
//! most turns decide something about many threads, and most of it is never read.

use std::fmt;

use onbeat_decide::supervisor::GaveWay;
use onbeat_model::{Refusal, Span, Speed};

use crate::Stage;

/// The reason for an entry in the journal.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A rhythm was heard.
    Found {
        /// Its period.
        period: Span,
        /// In how many bursts.
        bursts: usize,
        /// How sure that is.
        confidence: f64,
    },
    /// It says itself where its jobs begin and end.
    Told {
        /// The period that follows.
        period: Span,
    },
    /// The period that it declares is not that of the jobs that it marks.
    Contradicts { period: Span, marked: Span },
    /// It no longer says where its jobs are.
    SaysNoMore,
    /// It says that it missed a deadline, and is believed.
    MissedDeadline {
        /// By what factor its budget is raised.
        factor: f64,
    },
    /// Its jobs' demand asks for more, or for less.
    Demand {
        /// The execution time of a job that is provided for.
        job: Span,
    },
    /// Its application waits for CPUs that others use.
    Waits,
    /// Nobody else wants its application's CPUs any more.
    NoNeed,
    /// Its application waits all the same: it goes without for a moment, to compare.
    Compares,
    /// Its application waits no longer without: it goes without for a while.
    NoBetter,
    /// Its application has used up its account.
    UsedUp,
    /// Its application's shortest period is another one, which gives the priority.
    ShortestPeriod,
    /// It is not raised, because it has a reservation.
    ReservedInstead,
    /// It gets a priority that it asked for.
    AsksForPriority,
    /// Its scheduling was changed by itself or by another program.
    Changed,
    /// A job ran out of budget.
    Exhausted,
    /// It calls `sched_yield()`.
    Yields,
    /// It has used more than it holds, and its owner more than a quota gives.
    OverQuota,
    /// Its user has used more than a quota gives.
    UserOverQuota,
    /// It keeps another period now.
    RateChanged {
        /// The period until now.
        from: Span,
        /// The new one.
        to: Span,
    },
    /// The requests of all threads do not fit: some had to give way.
    GaveWay {
        /// Its turn in the order in which they gave way, from 1.
        turn: usize,
        /// How many gave way.
        of: usize,
        /// From what to what, and for which reason.
        how: GaveWay,
    },
    /// The CPUs are to run slower soon: every job will take longer.
    SpeedFalls {
        /// The speed until now.
        from: Speed,
        /// The lower one.
        to: Speed,
    },
    /// The CPUs run at another speed, and the scheduler counts runtimes by it.
    SpeedRose {
        /// The speed until now.
        from: Speed,
        /// The higher one.
        to: Speed,
    },
    /// There is room again.
    RoomAgain,
    /// It no longer had its reservation, which the kernel had left without effect.
    GivenBackByKernel,
    /// It lost its rhythm.
    RhythmLost,
    /// It computes without a pause, as nothing periodic does.
    NoLongerBlocks {
        /// For how long.
        since: Span,
    },
    /// It has not run for long.
    Idle {
        /// For how long.
        since: Span,
    },
    /// A program asked for just this.
    AskedFor,
    /// The client that asked for it no longer wants it, or is gone.
    TakenBack,
    /// No client asks for it any more.
    Untracked,
    /// It works on the path of another thread.
    OnPath {
        /// Which stage it is.
        stage: Stage,
        /// In how many jobs of that thread it was seen, and of how many.
        seen: (u64, u64),
    },
    /// Nothing that is kept on the beat has to do with it any more.
    OffPath,
    /// It ended.
    Ended,
    /// onbeat ends.
    Finished,
    /// The actuator refused.
    Refused(Refusal),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found {
                period,
                bursts,
                confidence,
            } => write!(
                f,
                "it has a period of {period}, seen in {bursts} bursts (confidence {confidence:.4})"
            ),
            Self::Told { period } => write!(f, "it marks its jobs: one each {period}"),
            Self::Contradicts { period, marked } => write!(
                f,
                "it declares one job each {period}, but marks one each {marked}: the declared period counts"
            ),
            Self::SaysNoMore => f.write_str("it no longer marks its jobs"),
            Self::MissedDeadline { factor } => write!(
                f,
                "it says that it missed a deadline: {:.0}% more",
                (factor - 1.0) * 100.0
            ),
            Self::Demand { job } => write!(f, "its jobs take {job}"),
            Self::Waits => f.write_str("its application waits for CPUs that others use"),
            Self::NoNeed => f.write_str("nobody else wants its CPUs"),
            Self::Compares => f.write_str(
                "its application waits for CPUs all the same: it goes without for a moment, to compare",
            ),
            Self::NoBetter => f.write_str(
                "its application waits no longer without: it goes without for a while",
            ),
            Self::UsedUp => f.write_str("its application has used up what it may use above others"),
            Self::ShortestPeriod => f.write_str("by the shortest period in its application"),
            Self::ReservedInstead => f.write_str("it has a reservation instead"),
            Self::AsksForPriority => {
                f.write_str("it asked for a real-time priority, and gets that")
            }
            Self::Changed => f.write_str("it or another program set its nice value"),
            Self::UserOverQuota => f.write_str("its user has used more than the quota gives"),
            Self::Exhausted => f.write_str("a job ran out of budget"),
            Self::Yields => f.write_str(
                "it calls sched_yield(): that gives up the rest of a reservation's budget, so it goes without",
            ),
            Self::OverQuota => f.write_str(
                "it uses more than its reservation, and its owner has used more than the quota: it has none until that is made up for",
            ),
            Self::RateChanged { from, to } => {
                write!(f, "its period changed from {from} to {to}")
            }
            Self::GaveWay { turn, of, how } => {
                write!(f, "not all requests fit, {turn} of {of} to give way: {how}")
            }
            Self::SpeedFalls { from, to } => {
                write!(f, "the CPUs are to slow down from {from} to {to}")
            }
            Self::SpeedRose { from, to } => write!(f, "the CPUs sped up from {from} to {to}"),
            Self::RoomAgain => f.write_str("there is CPU time to reserve again"),
            Self::GivenBackByKernel => {
                f.write_str("the kernel had dropped its reservation")
            }
            Self::RhythmLost => f.write_str("it lost its period"),
            Self::NoLongerBlocks { since } => write!(f, "it has not blocked for {since}"),
            Self::Idle { since } => write!(f, "it has not run for {since}"),
            Self::AskedFor => f.write_str("a client asked for it"),
            Self::TakenBack => f.write_str("its client released it"),
            Self::Untracked => f.write_str("no client tracks it any more"),
            Self::OnPath {
                stage,
                seen: (seen, of),
            } => write!(f, "it is {stage}: seen in {seen} of {of} jobs"),
            Self::OffPath => f.write_str("its pipeline has no reservation any more"),
            Self::Ended => f.write_str("it ended"),
            Self::Finished => f.write_str("onbeat ends"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}
