//! The speed of [`Scheme::Joint`](super::Scheme::Joint): what the jobs that wait ask for
//! ([`crate::stochastic::joint`]), as a speed that there is, and until when it holds.

use crate::stochastic::joint::{Progress, TaskStanding, wish};
use crate::stochastic::schedule::Rounding;
use onbeat_model::{Instant, Span, Speed};

use super::{Grace, GraceClass};
use crate::{CpuIndex, TaskIndex};

/// Less work than this is not worth being looked at again for: beyond, the highest speed.
const LEAST: u64 = 10_000;

/// Every piece of work can take a nanosecond longer than it should: a task that is late by one
/// waits for the next task.
const ROUNDING: Span = Span::from_us(1);

/// By this share of the way between two speeds.
const STAYS: f64 = 0.15;

impl Grace {
    /// The speed in kHz for `task`, and the work until it is to be looked at again.
    pub(super) fn joint_pace(&self, task: TaskIndex) -> (u64, Option<u64>) {
        let running = &self.tasks[task];
        let now = self.cpus[running.cpu].picked_at;
        let rules = &running.rules;
        let highest = self.speeds.highest();
        let mut tasks: Vec<TaskStanding> = self.standing(running.cpu, now).collect();
        tasks.sort_by_key(|task| task.ends_in);
        let wish = wish(&tasks);
        let laxity = wish.laxity - self.settings.reserve.max(ROUNDING);
        let speed = if rules.is_real_time() {
            self.speed_for(wish.speed, running.cpu)
        } else {
            // It may have got beyond all that is known: not slower than all budgets together need.
            let uniform = Speed::from_khz(self.cpus[running.cpu].uniform_khz);
            self.speed_for(wish.speed, running.cpu)
                .max(self.speeds.at_least(uniform.unwrap_or(highest)))
        };
        let ratio = speed.ratio(highest);
        let lasts = if ratio < 1.0 {
            laxity.scale(ratio / (1.0 - ratio)).as_ns()
        } else {
            u64::MAX
        };
        if lasts < LEAST {
            return (highest.as_khz(), rules.until());
        }
        let next = running.promise.outlook.as_ref().map_or(LEAST, |outlook| {
            outlook.next(Span::from_ns(rules.done())).as_ns()
        });
        let until = next.max(LEAST).min(lasts);
        let until = rules.until().map_or(until, |ends| ends.min(until));
        (speed.as_khz(), Some(until))
    }

    fn standing(&self, cpu: usize, now: Instant) -> impl Iterator<Item = TaskStanding<'_>> {
        let here = self
            .tasks
            .iter()
            .filter(move |task| task.cpu == cpu && !task.gone);
        here.filter_map(move |task| {
            let GraceClass::RealTime { period, .. } = task.class else {
                return None;
            };
            let job = Progress {
                done: Span::from_ns(task.rules.done()),
                left: Span::from_ns(task.rules.left()),
                late: Instant::from_ns(task.rules.period_end_ns()) > task.job.released + period,
            };
            Some(TaskStanding {
                outlook: task.promise.outlook.as_ref()?,
                period,
                ends_in: Instant::from_ns(task.rules.period_end_ns()).since(now),
                job: task.job.under_way.then_some(job),
            })
        })
    }

    /// The mean of the two speeds around the wanted one. The one that there is stays for a little
    /// longer: a change costs, too.
    fn speed_for(&self, ratio: f64, cpu: CpuIndex) -> Speed {
        let highest = self.speeds.highest();
        let khz = ratio * highest.as_khz() as f64;
        let wanted = Speed::from_khz(khz.ceil() as u64).unwrap_or(self.speeds.lowest());
        if self.settings.rounding == Rounding::Exact {
            return wanted.clamp(self.speeds.lowest(), highest);
        }
        let above = self.speeds.at_least(wanted);
        let Some(below) = self.speeds.below(above) else {
            return above;
        };
        let (low, high) = (below.as_khz() as f64, above.as_khz() as f64);
        let last = self.cpus[cpu].joint_khz;
        let stays = if last == below.as_khz() {
            STAYS
        } else if last == above.as_khz() {
            -STAYS
        } else {
            0.0
        };
        if khz < low + (high - low) * (self.settings.lower_until + stays) {
            below
        } else {
            above
        }
    }
}
