//! The plans of `onbeat-lab scheduler start grace`: budgets and speeds from what jobs demanded, as
//! GRACE-OS has them. The demand is read from a file, or seen while the scheduler runs; then plans
//! are made anew as jobs go by.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use onbeat_act::cpufreq::{Domain, Tree};
use onbeat_model::{Bandwidth, Demand, Ladder, Span};
use onbeat_schedulers::Running;
use onbeat_schedulers::grace::{self, NotPlanned, PLANS, ThreadMessage, ThreadPlan, WorkPace};
use onbeat_sense::identity;
use onbeat_sim::stochastic::Planner;
use onbeat_sim::stochastic::planner::{Planned, PlannerSettings};

use crate::cli::{Allowed, PlanOption, StartArgs};

/// The probability with which a job stays within its budget (GRACE-OS, section 4.1), where a
/// program does not say.
const RHO: f64 = 0.95;
/// The periods that are planned for: below, timers would take more time than jobs.
const SHORTEST_PERIOD: Span = Span::from_ms(1);
const LONGEST_PERIOD: Span = Span::from_secs(10);

/// The number of threads of one user that can have a plan because they asked for it: a quarter of
/// all.
const PLANS_OF_USER: usize = PLANS as usize / 4;

/// Refusals of more users are not told: one person can have thousands of user numbers.
const MOST_REFUSED: usize = 256;

/// Between two looks at the governors.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(super) struct Plans {
    planner: Planner,
    /// All tasks are scheduled, and programs of these may ask for a plan beside root's. None: an
    /// administrator has chosen the tasks.
    allowed: Option<Vec<Allowed>>,
    /// The users of whom a thread was refused a plan: only the first refusal is told, because a
    /// user's programs can ask without end.
    refused: HashSet<u32>,
    /// None: the CPUs' speed cannot be set, and budgets are all there is.
    speeds: Option<Ladder>,
    /// The governors still set the speeds that are asked for.
    is_heeded: bool,
    looked_at: Instant,
    /// Held for what it does.
    _pace: Option<WorkPace>,
    /// The numbers by which the scheduler knows threads.
    slots: [Option<u32>; PLANS as usize],
    given: HashMap<u32, ThreadPlan>,
    /// The users whose threads asked for their plans.
    payers: HashMap<u32, u32>,
    is_quiet: bool,
}

impl Plans {
    /// Gives each thread of the options its plan; none if the scheduler takes no plans.
    pub(super) fn begin(running: &mut Running, args: &StartArgs) -> anyhow::Result<Option<Self>> {
        let name = running.name();
        if name != "grace" {
            ensure!(
                args.plans.is_empty(),
                "--plan works with the scheduler grace, not with {name}"
            );
            return Ok(None);
        }
        let known = Tree::default().domain(0).ladder();
        if let Err(error) = &known
            && !args.plans.is_empty()
        {
            eprintln!(
                "onbeat-lab: budgets alone, because the speed of the CPUs cannot be set: {error} ('onbeat doctor' says what to do)"
            );
        }
        // Where only chosen tasks are ours, the governor adds what the others use to what is asked
        // of it, and a job would be faster than its scheduler counts.
        let is_whole = args.pids.is_empty() && args.command.is_empty();
        let objection = match &known {
            _ if !is_whole => Some("speeds are planned where all tasks are scheduled".to_owned()),
            Ok(_) => deaf_governor(&Tree::default()),
            Err(_) => None,
        };
        if let Some(objection) = &objection
            && !args.quiet
        {
            eprintln!("onbeat-lab: budgets alone: {objection}");
        }
        let known = known.ok();
        let pace = known
            .as_ref()
            .map(|speeds| grace::keep_pace(running, speeds.highest()))
            .transpose()
            .inspect_err(|error| {
                if !args.quiet {
                    eprintln!(
                        "onbeat-lab: work counts at the requested speeds, not at the real ones: {error}"
                    );
                }
            });
        let mut plans = Self {
            planner: Planner::new(PlannerSettings {
                most: (Bandwidth::ONE - args.best_effort).as_cpus(),
                most_of_user: args.user_share.as_cpus(),
                ..PlannerSettings::default()
            }),
            allowed: is_whole.then(|| args.allow.clone()),
            refused: HashSet::new(),
            payers: HashMap::new(),
            speeds: known.filter(|_| objection.is_none()),
            is_heeded: true,
            looked_at: Instant::now(),
            _pace: pace.ok().flatten(),
            slots: [None; PLANS as usize],
            given: HashMap::new(),
            is_quiet: args.quiet,
        };
        for option in &args.plans {
            plans.enter(running, option)?;
        }
        plans.renew(running)?;
        Ok(Some(plans))
    }

    fn enter(&mut self, running: &mut Running, option: &PlanOption) -> anyhow::Result<()> {
        let PlanOption { tid, period, .. } = *option;
        match &option.demands {
            Some(file) => {
                let text = fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                let demand = demands(&text, file)?;
                self.planner.enter_known(tid, period, RHO, demand);
            }
            None => self.planner.enter(tid, None, period, RHO),
        }
        let plan = self.without_budget(period);
        self.give(running, tid, plan)
            .with_context(|| format!("cannot plan for thread {tid}"))
    }

    /// Takes in what the scheduler has told, and makes the plans anew that are due.
    pub(super) fn turn(&mut self, running: &mut Running) -> anyhow::Result<()> {
        let mut is_due = self.is_deaf_now();
        for message in grace::messages(running)? {
            is_due |= match message {
                ThreadMessage::Starts {
                    tid,
                    period,
                    permille,
                } => self.starts(running, tid, period, permille)?,
                ThreadMessage::Finishes { tid, work, jobs } => {
                    // They were told together; more of them than a profile counts would change
                    // nothing.
                    let each = Span::from_ns(work.as_ns() / jobs);
                    (0..jobs.min(100)).fold(false, |due, _| self.planner.job(tid, each) || due)
                }
                ThreadMessage::Leaves { tid } => self.leaves(running, tid)?,
            };
        }
        if is_due {
            self.renew(running)?;
        }
        Ok(())
    }

    /// Whether a governor sets no longer what it is asked for. Then all jobs run at whatever speed
    /// it sets.
    fn is_deaf_now(&mut self) -> bool {
        if !self.is_heeded || self.speeds.is_none() || self.looked_at.elapsed() < LOOK_EVERY {
            return false;
        }
        self.looked_at = Instant::now();
        let Some(objection) = deaf_governor(&Tree::default()) else {
            return false;
        };
        self.is_heeded = false;
        self.tell(&format!("budgets alone from now on: {objection}"));
        true
    }

    fn starts(
        &mut self,
        running: &mut Running,
        tid: u32,
        period: Span,
        permille: u64,
    ) -> anyhow::Result<bool> {
        let Some(user) = identity::user(tid) else {
            return Ok(false);
        };
        if !(SHORTEST_PERIOD..=LONGEST_PERIOD).contains(&period) || !(1..=1000).contains(&permille)
        {
            self.refuse(user, tid, &format!(
                "it asks for {permille} of 1000 jobs in time every {period}, where a period is {SHORTEST_PERIOD} to {LONGEST_PERIOD}, a share 1 to 1000"
            ));
            return Ok(false);
        }
        let payer = match self.payer(tid, user) {
            Ok(payer) => payer,
            Err(why) => {
                self.refuse(user, tid, &why);
                return Ok(false);
            }
        };
        let plan = self.without_budget(period);
        match self.give(running, tid, plan) {
            Ok(()) => {
                let rho = permille as f64 / 1000.0;
                self.planner.enter(tid, payer, period, rho);
                self.payers.extend(payer.map(|user| (tid, user)));
                Ok(true)
            }
            Err(NotPlanned::System(error)) => Err(error.into()),
            Err(NotPlanned::Gone) => Ok(false),
            Err(refused) => {
                self.refuse(user, tid, &refused.to_string());
                Ok(false)
            }
        }
    }

    /// The user whose share of the CPU the plan of this user's thread counts for, which asks for
    /// it; none if the thread may take any part. An error says why it gets no plan.
    fn payer(&self, tid: u32, user: u32) -> Result<Option<u32>, String> {
        let Some(allowed) = self.allowed.as_ref().filter(|_| user != 0) else {
            return Ok(None);
        };
        let groups = identity::groups(tid);
        if !allowed.iter().any(|one| one.includes(user, &groups)) {
            return Err(format!(
                "its user may request no plan: start grace with --allow {user}, or with --plan for one thread"
            ));
        }
        let others = self
            .payers
            .iter()
            .filter(|(own, payer)| **own != tid && **payer == user);
        if others.count() >= PLANS_OF_USER {
            return Err(format!(
                "its user has {PLANS_OF_USER} plans already, and can have no more"
            ));
        }
        Ok(Some(user))
    }

    /// Says why a thread of the user gets no plan, if it is the first one of that user.
    fn refuse(&mut self, user: u32, tid: u32, why: &str) {
        if self.refused.len() < MOST_REFUSED && self.refused.insert(user) {
            self.tell(&format!(
                "thread {tid} of user {user} gets no plan: {why} (reported once for each user)"
            ));
        }
    }

    fn leaves(&mut self, running: &mut Running, tid: u32) -> Result<bool, NotPlanned> {
        let slot = self.slots.iter_mut().zip(0..);
        let Some((held, number)) = slot.into_iter().find(|(held, _)| **held == Some(tid)) else {
            return Ok(false);
        };
        *held = None;
        self.given.remove(&tid);
        self.payers.remove(&tid);
        grace::forget_plan(running, number, tid)?;
        Ok(self.planner.leave(tid))
    }

    /// Best effort at the highest speed.
    fn without_budget(&self, period: Span) -> ThreadPlan {
        let highest = self.speeds.as_ref().map(Ladder::highest);
        ThreadPlan {
            period,
            budget: Span::ZERO,
            speeds: highest.map(|highest| (vec![(Span::ZERO, highest)], highest)),
        }
    }

    /// Gives all threads the present plan.
    fn renew(&mut self, running: &mut Running) -> anyhow::Result<()> {
        let speeds = self.speeds.as_ref().filter(|_| self.is_heeded);
        for Planned { task, period, plan } in self.planner.plans(speeds) {
            let none = self.without_budget(period);
            let plan = match plan {
                None => none,
                Some(plan) => {
                    let highest = self.speeds.as_ref().map(Ladder::highest);
                    let planned = plan.schedule.zip(highest).map(|(schedule, highest)| {
                        let points = schedule.points().map(|point| (point.after, point.speed));
                        (points.collect(), highest)
                    });
                    ThreadPlan {
                        budget: plan.budget,
                        speeds: planned.or(none.speeds.clone()),
                        ..none
                    }
                }
            };
            match self.give(running, task, plan) {
                // It has told nothing: its word was lost, or is still to come.
                Err(NotPlanned::Gone) => {
                    self.leaves(running, task)?;
                }
                given => given.with_context(|| format!("cannot plan for thread {task}"))?,
            }
        }
        Ok(())
    }

    /// Threads that have ended without a word: it may have been lost where very many threads talk.
    fn sweep(&mut self, running: &mut Running) -> Result<(), NotPlanned> {
        let held: Vec<u32> = self.slots.iter().flatten().copied().collect();
        for tid in held {
            if !grace::has_plan(running, tid) {
                self.leaves(running, tid)?;
            }
        }
        Ok(())
    }

    fn give(
        &mut self,
        running: &mut Running,
        tid: u32,
        plan: ThreadPlan,
    ) -> Result<(), NotPlanned> {
        if self.given.get(&tid) == Some(&plan) {
            return Ok(());
        }
        let own = self.slots.iter().position(|held| *held == Some(tid));
        if own.is_none() && self.slots.iter().all(Option::is_some) {
            self.sweep(running)?;
        }
        let free = || self.slots.iter().position(Option::is_none);
        let number = own.or_else(free).ok_or(NotPlanned::NoSlot)?;
        grace::set_plan(running, number as u32, tid, &plan)?;
        if let Some(held) = self.slots.get_mut(number) {
            *held = Some(tid);
        }
        if plan.budget > Span::ZERO {
            self.tell(&described(tid, &plan));
        }
        self.given.insert(tid, plan);
        Ok(())
    }

    fn tell(&self, what: &str) {
        if !self.is_quiet {
            eprintln!("onbeat-lab: {what}");
        }
    }
}

/// A governor that does not set the speeds that are asked for, if there is one, and what to do
/// about it.
fn deaf_governor(tree: &Tree) -> Option<String> {
    let deaf = |domain: &Domain| {
        let governor = domain.settings().ok()?.governor;
        let number = domain.number();
        (governor != "schedutil").then(|| format!(
            "the governor {governor} sets no speed that a scheduler asks for: 'echo schedutil >/sys/devices/system/cpu/cpufreq/policy{number}/scaling_governor' as root, and start grace anew"
        ))
    };
    tree.domains().iter().find_map(deaf)
}

fn described(tid: u32, plan: &ThreadPlan) -> String {
    let points = plan.speeds.iter().flat_map(|(points, _)| points);
    let points: Vec<String> = points
        .map(|(after, speed)| format!("{speed} after {after}"))
        .collect();
    let budget = format!(
        "thread {tid}: {} of work every {}",
        plan.budget, plan.period
    );
    match points.is_empty() {
        true => budget,
        false => format!("{budget}; {}", points.join(", ")),
    }
}

/// One whole number of ns a line, in time at the highest speed; what does not begin with a digit is
/// a heading.
fn demands(text: &str, file: &Path) -> anyhow::Result<Demand> {
    let lines = text.lines().map(str::trim).enumerate();
    let numbers = lines.filter(|(_, line)| line.starts_with(|c: char| c.is_ascii_digit()));
    let numbers: Vec<(usize, &str)> = numbers.collect();
    if numbers.is_empty() {
        bail!(
            "{} holds no demands: write one number of ns per line",
            file.display()
        );
    }
    let mut demand = Demand::new(numbers.len());
    for (number, line) in numbers {
        let ns = line.parse().with_context(|| {
            format!(
                "{}:{}: not a whole number of ns",
                file.display(),
                number + 1
            )
        })?;
        demand.record(Span::from_ns(ns));
    }
    Ok(demand)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_numbers_below_their_headings() {
        let text = "# period_ns: 30000000\ndemand_ns\n300\n100\n200\n";
        let read = demands(text, Path::new("x")).unwrap();
        assert_eq!(read.max(), Some(Span::from_ns(300)));
        assert_eq!(read.len(), 3);
        let wrong = demands("1\n2.5\n", Path::new("x")).unwrap_err();
        assert_eq!(wrong.to_string(), "x:2: not a whole number of ns");
        assert!(demands("demand_ns\n", Path::new("x")).is_err());
    }

    #[test]
    fn a_governor_that_sets_no_speed_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        for (number, governor) in [(0, "schedutil"), (2, "performance")] {
            let policy = folder.path().join(format!("policy{number}"));
            fs::create_dir(&policy).unwrap();
            for file in ["scaling_cur_freq", "scaling_min_freq", "scaling_max_freq"] {
                fs::write(policy.join(file), "500000").unwrap();
            }
            fs::write(policy.join("scaling_governor"), governor).unwrap();
        }
        let tree = Tree::at(folder.path());
        let said = deaf_governor(&tree).unwrap();
        assert!(
            said.contains("performance") && said.contains("policy2/"),
            "{said}"
        );
        fs::write(folder.path().join("policy2/scaling_governor"), "schedutil").unwrap();
        assert_eq!(deaf_governor(&tree), None);
        assert_eq!(deaf_governor(&Tree::at(&folder.path().join("none"))), None);
    }
}
