//! Applications: what a person asked for, with the sums over its members. Counted here alone, for
//! the closing table, reports, metrics and live views.
//!
//! An application is a process, or one with those that it has started, as
//! [`Settings::parties`](crate::Settings::parties) says. A thread of another program on its
//! pipeline is a member, too.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use onbeat_model::{Bandwidth, Instant, Name, Span};
use serde::{Deserialize, Serialize};

/// Applications whose sums are kept after their last thread has ended, 150 bytes each, and ended
/// threads that are remembered by their numbers.
pub(crate) const REMEMBERED: usize = 256;

/// The means by which a thread is served, or was for most of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    Reservation,
    /// Nice -20, the largest share of an ordinary thread.
    Nice,
    #[default]
    Nothing,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    pub pid: u32,
    pub comm: Name,
    pub members: u64,
    pub living: u64,
    pub by_reservation: u64,
    pub by_nice: u64,
    /// How many had a period and were refused a reservation.
    pub refused: u64,
    pub jobs: u64,
    /// How many of those ended after the next one's release.
    pub missed: u64,
    #[serde(rename = "executed_ns")]
    pub executed: Span,
    /// That, as a mean share of a CPU since its first member's first event.
    pub bandwidth_used: Bandwidth,
    /// The mean share of a CPU that was reserved meanwhile.
    pub bandwidth_reserved: Bandwidth,
}

impl Application {
    /// How its threads are served, as in `9 threads: 3 by reservation, 5 raised, 1 refused`.
    #[must_use]
    pub fn served(&self) -> String {
        let Self {
            members,
            by_reservation,
            by_nice,
            refused,
            ..
        } = self;
        let threads = if *members == 1 { "thread" } else { "threads" };
        let mut means = Vec::new();
        if *by_reservation > 0 {
            means.push(format!("{by_reservation} by reservation"));
        }
        if *by_nice > 0 {
            means.push(format!("{by_nice} raised"));
        }
        if *refused > 0 {
            means.push(format!("{refused} refused"));
        }
        if means.is_empty() {
            means.push("none served".to_owned());
        }
        format!("{members} {threads}: {}", means.join(", "))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) application: u32,
    pub(crate) comm: Name,
    /// It is the first thread of the application's first process.
    pub(crate) is_first: bool,
    pub(crate) means: Means,
    pub(crate) is_refused: bool,
    pub(crate) since: Instant,
    pub(crate) jobs: u64,
    pub(crate) missed: u64,
    pub(crate) executed: Span,
    /// The CPU time that was reserved for it.
    pub(crate) promised: Span,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Applications(BTreeMap<u32, ApplicationTally>);

#[derive(Clone, Debug)]
struct ApplicationTally {
    sums: Application,
    is_named: bool,
    since: Instant,
    promised: Span,
}

impl Applications {
    pub(crate) fn add(&mut self, member: &Member) {
        self.count(member).living += 1;
    }

    fn count(&mut self, member: &Member) -> &mut Application {
        let tally = self
            .0
            .entry(member.application)
            .or_insert_with(|| ApplicationTally {
                sums: Application {
                    pid: member.application,
                    comm: member.comm,
                    ..Application::default()
                },
                is_named: false,
                since: member.since,
                promised: Span::ZERO,
            });
        if member.is_first || !tally.is_named {
            tally.sums.comm = member.comm;
            tally.is_named |= member.is_first;
        }
        tally.since = tally.since.min(member.since);
        tally.promised += member.promised;
        let sums = &mut tally.sums;
        sums.members += 1;
        sums.by_reservation += u64::from(member.means == Means::Reservation);
        sums.by_nice += u64::from(member.means == Means::Nice);
        sums.refused += u64::from(member.is_refused);
        sums.jobs += member.jobs;
        sums.missed += member.missed;
        sums.executed += member.executed;
        sums
    }

    /// Adds a thread that has ended. Among too many applications, the first one is forgotten.
    pub(crate) fn add_ended(&mut self, member: &Member) {
        self.count(member);
        if self.0.len() > REMEMBERED {
            let others = self.0.iter().filter(|(pid, _)| **pid != member.application);
            let oldest = others.min_by_key(|(_, tally)| tally.since);
            if let Some(pid) = oldest.map(|(pid, _)| *pid) {
                self.0.remove(&pid);
            }
        }
    }

    /// The sums up to `now`, those of the application that took most CPU time first.
    pub(crate) fn sums(self, now: Instant) -> Vec<Application> {
        let sums = self.0.into_values().map(|tally| {
            let over = now.since(tally.since);
            Application {
                bandwidth_used: Bandwidth::of(tally.sums.executed, over),
                bandwidth_reserved: Bandwidth::of(tally.promised, over),
                ..tally.sums
            }
        });
        let mut sums: Vec<Application> = sums.collect();
        sums.sort_by_key(|application| (Reverse(application.executed), application.pid));
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::ZERO;

    fn member(application: u32, comm: &str) -> Member {
        Member {
            application,
            comm: Name::new(comm.as_bytes()),
            is_first: false,
            means: Means::Nothing,
            is_refused: false,
            since: START,
            jobs: 0,
            missed: 0,
            executed: Span::ZERO,
            promised: Span::ZERO,
        }
    }

    #[test]
    fn applications_that_come_and_go_do_not_fill_the_memory() {
        let mut applications = Applications::default();
        for pid in 1..=1000 {
            applications.add_ended(&Member {
                since: START + Span::from_ms(u64::from(pid)),
                ..member(pid, "short")
            });
        }
        let mut kept = applications.sums(START + Span::from_secs(2));
        kept.sort_by_key(|application| application.pid);
        let kept: Vec<u32> = kept.iter().map(|application| application.pid).collect();
        assert_eq!(
            kept,
            (1000 - REMEMBERED as u32 + 1..=1000).collect::<Vec<_>>()
        );
    }
}
