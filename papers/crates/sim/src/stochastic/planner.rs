//! Budgets and speeds for tasks, from the demand that their jobs were seen to have: what GRACE-OS
//! has a user-level part do when jobs end (sections 2.2 to 2.4 and 3, `set_budget` and
//! `set_dvspnt`).
//!
//! Assumptions: (1) tasks take turns on one CPU; on several each has more time than planned; (2) a
//! task whose demand is not known yet runs in best-effort mode at the highest speed (section 4.3);
//! (3) so does one whose budget does not fit beside those of the tasks that came before it, of all
//! or of the same user.

use std::collections::HashMap;

use onbeat_model::{Demand, Ladder, Span};

use super::schedule::Rounding;
use super::{Budget, Histogram, Schedule, time_allocations};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannerSettings {
    /// How many of the last jobs a profile counts (n); a task's first plan, and each new one, comes
    /// after this number of jobs.
    pub window: usize,
    /// How many groups the histogram of demands has (r).
    pub groups: usize,
    /// The part of the CPU at its highest speed that all budgets together may take.
    pub most: f64,
    /// The same for the tasks of one user that [pays](Planner::enter) for them.
    pub most_of_user: f64,
}

impl Default for PlannerSettings {
    /// The paper's window, and a number of groups that it does not tell; the kernel's own bound on
    /// reservations, and half of a CPU for a user, as in the service.
    fn default() -> Self {
        Self {
            window: 100,
            groups: 15,
            most: 0.95,
            most_of_user: 0.5,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub task: u32,
    /// The number of jobs after which the budget is given anew.
    pub period: Span,
    /// None: best effort.
    pub plan: Option<Plan>,
}

/// A budget in every period, and speeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In time at the highest speed.
    pub budget: Span,
    /// None where the CPU has one speed.
    pub schedule: Option<Schedule>,
}

#[derive(Clone, Debug, Default)]
pub struct Planner {
    settings: PlannerSettings,
    profiles: Vec<TaskProfile>,
}

#[derive(Clone, Debug)]
struct TaskProfile {
    task: u32,
    /// The user whose part of the CPU its budget counts for.
    payer: Option<u32>,
    period: Span,
    rho: f64,
    demand: Demand,
    jobs: usize,
    is_given: bool,
    known: Option<(Histogram, Budget)>,
}

impl Planner {
    pub const fn new(settings: PlannerSettings) -> Self {
        Self {
            settings,
            profiles: Vec::new(),
        }
    }

    /// `task` has a job every `period`, and the share `rho` of them is to meet its deadline: its
    /// profile begins anew. Its budget counts for the user `payer`; none is charged to no user.
    pub fn enter(&mut self, task: u32, payer: Option<u32>, period: Span, rho: f64) {
        self.leave(task);
        self.profiles.push(TaskProfile {
            task,
            payer,
            period,
            rho,
            demand: Demand::new(self.settings.window),
            jobs: 0,
            is_given: false,
            known: None,
        });
    }

    /// The same for a task that no user is charged for, whose demand is known.
    pub fn enter_known(&mut self, task: u32, period: Span, rho: f64, demand: Demand) {
        self.enter(task, None, period, rho);
        let groups = self.settings.groups;
        if let Some(profile) = self.profiles.last_mut() {
            profile.demand = demand;
            profile.is_given = true;
            profile.learn(groups);
        }
    }

    /// `task` is soft real-time no longer. False if it never was.
    pub fn leave(&mut self, task: u32) -> bool {
        let before = self.profiles.len();
        self.profiles.retain(|profile| profile.task != task);
        self.profiles.len() < before
    }

    /// A job of `task` has demanded so much, in time at the highest speed. True if that makes plans
    /// due.
    pub fn job(&mut self, task: u32, demanded: Span) -> bool {
        let PlannerSettings { window, groups, .. } = self.settings;
        let mut profiles = self.profiles.iter_mut();
        let Some(profile) = profiles.find(|profile| profile.task == task && !profile.is_given)
        else {
            return false;
        };
        profile.demand.record(demanded);
        profile.jobs += 1;
        let is_due = profile.jobs.is_multiple_of(window.max(1));
        if is_due {
            profile.learn(groups);
        }
        is_due
    }

    /// The plans of all tasks: the time of each depends on the others' budgets (eq. 4).
    pub fn plans(&self, speeds: Option<&Ladder>) -> Vec<Planned> {
        let PlannerSettings {
            most, most_of_user, ..
        } = self.settings;
        let mut taken = 0.0;
        let mut of_users: HashMap<u32, f64> = HashMap::new();
        let admitted: Vec<Option<&(Histogram, Budget)>> = self
            .profiles
            .iter()
            .map(|profile| {
                let known = profile.known.as_ref()?;
                let share = known.1.demand.ratio(profile.period);
                let of_user = profile.payer.map(|user| of_users.entry(user).or_default());
                let fits = taken + share <= most
                    && of_user
                        .as_ref()
                        .is_none_or(|of_user| **of_user + share <= most_of_user);
                let share = if fits { share } else { 0.0 };
                taken += share;
                if let Some(of_user) = of_user {
                    *of_user += share;
                }
                fits.then_some(known)
            })
            .collect();
        let pairs = || self.profiles.iter().zip(&admitted);
        let tasks: Vec<(Span, Span)> = pairs()
            .map(|(profile, known)| {
                let budget = known.map_or(Span::ZERO, |(_, budget)| budget.demand);
                (budget, profile.period)
            })
            .collect();
        let times = time_allocations(&tasks);
        pairs()
            .zip(times)
            .map(|((profile, known), time)| Planned {
                task: profile.task,
                period: profile.period,
                plan: known.map(|(histogram, budget)| Plan {
                    budget: budget.demand,
                    schedule: speeds.map(|speeds| {
                        Schedule::stochastic(histogram, budget, time, speeds, Rounding::Up)
                    }),
                }),
            })
            .collect()
    }
}

impl TaskProfile {
    fn learn(&mut self, groups: usize) {
        self.known = Histogram::of(&self.demand, groups).map(|histogram| {
            let budget = histogram.budget(self.rho);
            (histogram, budget)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::Speed;

    const PERIOD: Span = Span::from_ms(16);

    fn ladder() -> Ladder {
        let mhz = |mhz: u64| Speed::from_khz(mhz * 1000).unwrap();
        Ladder::new([mhz(500), mhz(1000)]).unwrap()
    }

    /// 2 ms, and more the rarer, up to 10 ms.
    fn demand_of(job: u64) -> Span {
        Span::from_us(2000 + job * job * job / 125)
    }

    /// The plan that `task` alone has after `jobs` jobs.
    fn after(planner: &mut Planner, task: u32, jobs: u64) -> Option<Plan> {
        let due: Vec<bool> = (1..=jobs)
            .map(|job| planner.job(task, demand_of(job)))
            .collect();
        assert_eq!(
            due.iter().filter(|&&due| due).count() as u64,
            jobs / 100,
            "every hundred jobs"
        );
        let plans = planner.plans(Some(&ladder()));
        plans.into_iter().find(|planned| planned.task == task)?.plan
    }

    #[test]
    fn a_task_is_best_effort_until_its_first_hundred_jobs_are_known() {
        let mut planner = Planner::default();
        planner.enter(7, None, PERIOD, 0.95);
        assert_eq!(after(&mut planner, 7, 99), None);
        assert!(planner.job(7, demand_of(100)));
        let plans = planner.plans(Some(&ladder()));
        let [
            Planned {
                plan: Some(plan), ..
            },
        ] = &plans[..]
        else {
            panic!("{plans:?}");
        };
        assert!(plan.budget >= demand_of(95) && plan.budget < demand_of(100));
        let points: Vec<_> = plan.schedule.iter().flat_map(Schedule::points).collect();
        let [slow, fast] = points[..] else {
            panic!("{points:?}");
        };
        assert_eq!(
            (slow.speed, fast.speed),
            (ladder().lowest(), ladder().highest())
        );
        // So much of the budget at half the speed, and the rest at the whole, are done within the
        // period.
        assert!(fast.after > Span::ZERO && fast.after <= PERIOD - plan.budget);
    }

    #[test]
    fn the_plan_follows_when_jobs_demand_something_else() {
        let mut planner = Planner::default();
        planner.enter(7, None, PERIOD, 0.95);
        let before = after(&mut planner, 7, 100).unwrap();
        for job in 0..100 {
            planner.job(7, Span::from_us(2900 + job));
        }
        let plans = planner.plans(Some(&ladder()));
        let plan = plans[0].plan.as_ref().unwrap();
        assert!(plan.budget < Span::from_ms(3) && before.budget > plan.budget);
        let schedule = plan.schedule.as_ref().unwrap();
        assert_eq!(schedule.at(Span::from_us(2900)).0, ladder().lowest());
    }

    #[test]
    fn what_does_not_fit_is_best_effort_and_gets_in_when_somebody_leaves() {
        let mut planner = Planner::default();
        for (task, ms) in [(1, 10), (2, 8), (3, 4)] {
            let mut demand = Demand::new(1);
            demand.record(Span::from_ms(ms));
            planner.enter_known(task, PERIOD, 0.95, demand);
        }
        let served = |planner: &Planner| -> Vec<u32> {
            let plans = planner.plans(Some(&ladder())).into_iter();
            let served = plans.filter(|planned| planned.plan.is_some());
            served.map(|planned| planned.task).collect()
        };
        assert_eq!(served(&planner), [1, 3]);
        assert!(planner.leave(1));
        assert!(!planner.leave(1));
        assert_eq!(served(&planner), [2, 3]);
    }

    #[test]
    fn the_budgets_of_a_users_tasks_take_half_of_the_cpu_together_at_most() {
        let mut planner = Planner::default();
        // A quarter of the CPU each, but for task 3.
        let tasks = [
            (1, Some(1000), 4),
            (2, Some(1000), 4),
            (3, Some(1000), 1),
            (4, Some(1001), 4),
            (5, None, 3),
        ];
        for (task, payer, ms) in tasks {
            planner.enter(task, payer, PERIOD, 0.95);
            for _ in 0..100 {
                planner.job(task, Span::from_ms(ms));
            }
        }
        let served = |planner: &Planner| -> Vec<u32> {
            let plans = planner.plans(None).into_iter();
            let served = plans.filter(|planned| planned.plan.is_some());
            served.map(|planned| planned.task).collect()
        };
        assert_eq!(served(&planner), [1, 2, 4, 5]);
        planner.leave(1);
        assert_eq!(served(&planner), [2, 3, 4, 5]);
    }
}
