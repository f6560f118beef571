//! One speed for all jobs that wait, from the distributions of all of them: beyond GRACE-OS, whose
//! schedule knows its own task alone and gives it the same time in every period.
//!
//! GRACE-OS decides when demands are estimated; what a job leaves of its time is lost to the others
//! but by chance. Here the speed is decided anew whenever something happens, from the queue as it
//! is: what each waiting job may still demand, given what it has done already, and how long there
//! is until each deadline.
//!
//! **One deadline.** If jobs run one after the other until a common deadline in time T, and the
//! energy of a unit of work grows with the square of the speed, the least expected energy is K^3 /
//! T^2, where K is the *effective work*. For a piece of size s, after which a share p of jobs goes
//! on (with effective work K1 from there) and the others end (with K0 of the jobs behind), it is
//!
//! ```text
//! K = s + cbrt(p K1^3 + (1 - p) K0^3)
//! ```
//!
//! and the piece runs at speed K / T (by minimising a^3/t^2 + b^3/(T-t)^2, which is (a+b)^3/T^2;
//! the recursion is that of Zhang, Lu, Lach, Skadron and Stan, DAC 2005, for frames). For a single
//! job it is eq. 12.
//!
//! **Several deadlines.** The jobs due by the end of each task's period need at least their
//! effective work in the time until then; the highest of these speeds is the one to run at, as in
//! the schedule of Yao, Demers and Shenker. Jobs that are released before that end count with their
//! mean for the part of a period that lies before it.
//!
//! **The guarantee.** However slow the start, the rest of all budgets must fit at the highest
//! speed. With U a task's budget over its period, the *laxity* at the end d of a task's period is
//! what is left of d after the budgets due by then, and of U of the time from every earlier end to
//! d. As long as no laxity is negative all budgets are served in time at the highest speed: a
//! release changes none, running at full speed changes none, an early end adds. At speed f the
//! laxity falls by 1 - f in every unit of time, and when it is used up the speed is the highest.
//! This needs deadlines at the periods' ends, one CPU, EDF, and budgets that fit.

use onbeat_model::Span;

use super::schedule::WorkGroup;

/// Parts of equal probability of a distribution. With groups of equal width, one job that demands
/// much would leave all others in the first.
const PIECES: usize = 25;
/// The share of the jobs that overran which are to end in time.
const SERVED_OVERRUNS: f64 = 0.5;

/// The demand of a task's jobs, also beyond its budget.
#[derive(Clone, Debug)]
pub struct Outlook {
    groups: Vec<WorkGroup>,
    mean: f64,
    budget: Span,
}

#[derive(Clone, Copy, Debug)]
pub struct TaskStanding<'a> {
    pub outlook: &'a Outlook,
    pub period: Span,
    /// How long its present period lasts from now on.
    pub ends_in: Span,
    pub job: Option<Progress>,
}

#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub done: Span,
    /// The rest of the budget of the present period.
    pub left: Span,
    pub late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeededSpeed {
    /// The speed, as a share of the highest one; at most 1.
    pub speed: f64,
    /// How long the CPU could stand still without a budget coming too late at the highest speed.
    pub laxity: Span,
}

impl Outlook {
    /// The plan of a task whose jobs demanded `sorted` (ascending, of some scale) times `factor`,
    /// with this budget.
    pub fn new(sorted: &[Span], factor: f64, budget: Span) -> Self {
        let count = sorted.len();
        let pieces = PIECES.min(count);
        let mut groups: Vec<WorkGroup> = Vec::with_capacity(pieces);
        let mut mean = 0.0;
        let (mut from, mut before) = (Span::ZERO, 1.0);
        for piece in 1..=pieces {
            // The last job of each equal part of all.
            let within = (count * piece).div_ceil(pieces);
            let Some(last) = within.checked_sub(1).and_then(|last| sorted.get(last)) else {
                break;
            };
            let end = last.scale(factor);
            let beyond = (count - within) as f64 / count as f64;
            if end > from {
                mean += (end - from).as_ns() as f64 * before;
                groups.push(WorkGroup {
                    from,
                    size: end - from,
                    beyond,
                });
            } else if let Some(same) = groups.last_mut() {
                same.beyond = beyond;
            }
            (from, before) = (from.max(end), beyond);
        }
        Self {
            groups,
            mean,
            budget,
        }
    }

    /// Up to where time is kept for a job that has done `done`. One that may overrun is let
    /// overrun; of those that have overrun, half are to end in time.
    fn insured(&self, done: Span) -> Span {
        if done < self.budget {
            return self.budget;
        }
        let ends = self
            .groups
            .iter()
            .map(|group| (group.from + group.size, group.beyond));
        let still = ends.clone().take_while(|(end, _)| *end <= done).last();
        let still = still.map_or(1.0, |(_, beyond)| beyond);
        let half = ends
            .into_iter()
            .find(|(_, beyond)| *beyond <= still * SERVED_OVERRUNS);
        half.map_or(Span::MAX, |(end, _)| end)
    }

    /// How much more than the mean the effective work of a new job is: what its uncertainty costs.
    pub fn uncertainty(&self) -> Span {
        let effective = self.effective_from(Span::ZERO, 0.0);
        Span::from_ns((effective - self.mean).max(0.0) as u64)
    }

    /// The work after which a job that has done `done` is to be asked again: the end of the group
    /// it is in, or a sixteenth of the budget.
    pub fn next(&self, done: Span) -> Span {
        let step = (self.budget / 16).max(Span::from_ns(1));
        let ends = self.groups.iter().map(|group| group.from + group.size);
        let end = ends.into_iter().find(|&end| end > done);
        end.map_or(step, |end| (end - done).min(step))
    }

    /// The effective work from `job` on, if the jobs behind it have that of `behind`.
    fn effective(&self, job: Progress, behind: f64) -> f64 {
        let behind = if job.late {
            self.effective_from(Span::ZERO, behind)
        } else {
            behind
        };
        self.effective_from(job.done, behind)
    }

    fn effective_from(&self, done: Span, behind: f64) -> f64 {
        let behind_cubed = behind.powi(3);
        let mut after = behind;
        let insured = self.insured(done);
        for (number, group) in self.groups.iter().enumerate().rev() {
            if group.from >= insured {
                continue;
            }
            let size = group.from + group.size - group.from.max(done);
            if size.is_zero() {
                break;
            }
            let before = number.checked_sub(1).and_then(|n| self.groups.get(n));
            let before = before.map_or(1.0, |before| before.beyond);
            // The share of the jobs that get to this group which goes on behind it.
            let on = if before > 0.0 {
                group.beyond / before
            } else {
                0.0
            };
            after = size.as_ns() as f64 + (on * after.powi(3) + (1.0 - on) * behind_cubed).cbrt();
        }
        after
    }
}

/// The speed for all of `tasks`, which are in the order of the ends of their periods, and share one
/// CPU.
pub fn wish(tasks: &[TaskStanding]) -> NeededSpeed {
    let mut speed: f64 = 0.0;
    let mut laxity = f64::INFINITY;
    for (number, last) in tasks.iter().enumerate() {
        let until = last.ends_in.as_ns() as f64;
        let due = tasks.get(..=number).unwrap_or(tasks);
        let (mut later, mut budgets) = (0.0, 0.0);
        for task in due {
            let periods = (last.ends_in - task.ends_in).ratio(task.period);
            later += periods * task.outlook.mean;
            budgets += periods * task.outlook.budget.as_ns() as f64;
            budgets += task.job.map_or(0.0, |job| job.left.as_ns() as f64);
        }
        let jobs = due
            .iter()
            .rev()
            .filter_map(|task| Some((task.outlook, task.job?)));
        let work = jobs.fold(later, |behind, (outlook, job)| {
            outlook.effective(job, behind)
        });
        if work > 0.0 {
            speed = speed.max(work / until.max(1.0));
        }
        // Where nothing is due yet there is nothing to be late for.
        if budgets > 0.0 {
            laxity = laxity.min(until - budgets);
        }
    }
    NeededSpeed {
        speed: speed.min(1.0),
        laxity: Span::from_ns(laxity.clamp(0.0, u64::MAX as f64) as u64),
    }
}

#[cfg(test)]
mod tests;
