//! The ways to schedule the same threads, each as a scenario.

use crate::stochastic::Histogram;
use clap::ValueEnum;
use onbeat_model::{Bandwidth, Demand, Ladder, Name, Reservation, Span, Speed};

use super::{ComparedThread, Threads};
use crate::least_budget::least_budget;
use crate::machine::{Costs, Cpus};
use crate::policy::grace::GraceSettings;
use crate::policy::linux::{Class, Config, DeadlineClass, Fair, Fixed, Order, Overrun};
use crate::scenario::{LoopSettings, Power, Scenario, ScenarioScheduler, TaskGroup};
use crate::workload::{Arrival, Demand as Demands};
use crate::{Work, Workload};

/// The policy for the recorded threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ComparedPolicy {
    /// SCHED_OTHER, as for any program
    Fair,
    /// SCHED_FIFO for periodic threads, the shorter period first
    Fifo,
    /// SCHED_RR for periodic threads, all with one priority, as RealtimeKit gives it
    Rr,
    /// The reservations of `onbeat-lab plan` for periodic threads
    Plan,
    /// The same, with the speed in proportion to the bandwidth in use (the governor schedutil)
    GrubPa,
    /// Reservations that the share prediction.rho of the jobs stays within (GRACE-OS)
    Statistical,
    /// onbeat's own loop
    Onbeat,
    /// onbeat's own loop, with the speed of the CPUs (`power.rule` = "band")
    OnbeatPower,
    /// GRACE-OS: budgets from the distribution of demands, and a speed that grows inside each job;
    /// at the full speed only
    Grace,
    /// The scheduler of Linux 2.4 (`onbeat-lab scheduler linux24`)
    Linux24,
    /// BEST (`onbeat-lab scheduler best`)
    Best,
    /// BeRate (`onbeat-lab scheduler berate`)
    Berate,
}

impl ComparedPolicy {
    /// Whether it is right on a machine of that share of the recorded one's speed: a scheme takes
    /// the recorded speed for the highest.
    pub fn suits(self, speed: f64) -> bool {
        speed == 1.0 || self != Self::Grace
    }

    pub const fn reserves(self) -> bool {
        matches!(self, Self::Plan | Self::GrubPa | Self::Statistical)
    }
}

/// The rule for a thread that needs more than its reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OverrunRule {
    /// It waits for its next period
    #[default]
    Hard,
    /// Its deadline is postponed
    Soft,
    /// It uses what other reservations leave, then waits (GRUB)
    Reclaim,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedMachine {
    pub cpus: usize,
    /// How fast they are, as a share of the recorded machine's; above zero.
    pub speed: f64,
    /// How many programs run beside the threads that want all the CPU time they can get.
    pub hogs: usize,
    pub power: Power,
}

#[derive(Clone, Copy, Debug)]
pub struct BudgetRules {
    /// Which share of its jobs a thread may miss, for [`ComparedPolicy::Plan`].
    pub may_miss: f64,
    /// Which share of its jobs must stay within the budget, for [`ComparedPolicy::Statistical`].
    pub rho: f64,
    pub overrun: OverrunRule,
    pub onbeat: LoopSettings,
}

const GROUPS: usize = 100;
/// The kernel's: the most that all reservations may take of each CPU, and the shortest runtime.
const ADMISSIBLE: f64 = 0.95;
const SHORTEST: Span = Span::from_ns(1024);
/// The recorded speed, to which the others relate, and the steps that a governor has.
const RECORDED_KHZ: u64 = 1_000_000;
const STEPS: u64 = 10;
const HIGHEST_PRIORITY: u8 = 99;
/// Under a scheme, the number of jobs before the first budget, and between two budgets: recordings
/// are short, and have scenes.
const NEW_BUDGET_EVERY: usize = 10;

/// The reservation that each of the threads asks for under `way`, at this speed; none for one that
/// is not periodic, that needs more than there is, or where there are no reservations.
pub fn reservations(
    threads: &Threads,
    policy: ComparedPolicy,
    speed: f64,
    rules: &BudgetRules,
) -> Vec<Option<Reservation>> {
    let budget = |thread: &ComparedThread| {
        let jobs = thread.jobs.iter().map(|job| job.demand.as_span());
        match policy {
            ComparedPolicy::Plan | ComparedPolicy::GrubPa => {
                least_budget(&jobs.collect::<Vec<Span>>(), rules.may_miss)
            }
            ComparedPolicy::Statistical => {
                let mut demand = Demand::new(thread.jobs.len());
                jobs.for_each(|job| demand.record(job));
                Some(Histogram::of(&demand, GROUPS)?.budget(rules.rho).demand)
            }
            _ => None,
        }
    };
    // Where the speed varies, runtimes count in time at the recorded one.
    let slower = if policy == ComparedPolicy::GrubPa {
        1.0
    } else {
        1.0 / speed
    };
    let reservation = |thread: &ComparedThread| {
        let period = thread.rhythm?.period;
        let runtime = budget(thread)?.scale(slower).max(SHORTEST);
        Reservation::implicit(runtime, period).ok()
    };
    threads.list.iter().map(reservation).collect()
}

/// The threads on that machine, scheduled so. Its groups are the threads, in their order,
/// then the hogs.
///
/// Where reservations do not all fit, the kernel refuses the later ones, so these threads are
/// scheduled as any other.
///
/// # Panics
/// If `machine.speed` is not above zero.
pub fn scenario(
    threads: &Threads,
    policy: ComparedPolicy,
    machine: &ComparedMachine,
    rules: &BudgetRules,
) -> Scenario {
    let classes = classes(threads, policy, machine, rules);
    let scheduler = scheduler(policy, rules);
    let partitioned = matches!(scheduler, ScenarioScheduler::Grace(_));
    let domains = if partitioned {
        spread(threads, machine.cpus)
    } else {
        vec![0; threads.list.len()]
    };
    let list = threads.list.iter().zip(classes).zip(domains);
    let mut groups: Vec<TaskGroup> = list
        .map(|((thread, class), domain)| TaskGroup {
            name: thread.task.comm,
            count: 1,
            class,
            nice: 0,
            rho: None,
            domain,
            workload: Workload::listed(
                thread.jobs.clone(),
                thread.rhythm.map(|rhythm| rhythm.period),
            ),
            tracked: true,
        })
        .collect();
    let hog = |count, domain| TaskGroup {
        name: Name::from("hog"),
        count,
        class: Class::Fair(Fair::nice(0)),
        nice: 0,
        rho: None,
        domain,
        workload: Workload::new(Arrival::Always, Demands::Constant(Work::ENDLESS)),
        tracked: false,
    };
    if partitioned {
        groups.extend((0..machine.hogs).map(|number| hog(1, number % machine.cpus.max(1))));
    } else if machine.hogs > 0 {
        groups.push(hog(machine.hogs, 0));
    }
    let sets_speed = policy == ComparedPolicy::OnbeatPower;
    let cpus = cpus(machine);
    let grub_pa = (policy == ComparedPolicy::GrubPa).then(|| cpus.speeds.highest());
    Scenario {
        seed: 0,
        duration: threads.duration,
        cpus,
        scheduler,
        config: Config {
            grub_pa,
            runtimes_follow_speed: grub_pa.is_some(),
            ..Config::global(machine.cpus)
        },
        power: machine.power,
        groups,
        onbeat: matches!(policy, ComparedPolicy::Onbeat | ComparedPolicy::OnbeatPower).then_some(
            LoopSettings {
                sets_speed,
                ..rules.onbeat
            },
        ),
        feedback: None,
    }
}

fn scheduler(policy: ComparedPolicy, rules: &BudgetRules) -> ScenarioScheduler {
    match policy {
        ComparedPolicy::Grace => ScenarioScheduler::Grace(GraceSettings {
            rho: rules.rho,
            profile: NEW_BUDGET_EVERY,
            update_every: Some(NEW_BUDGET_EVERY),
            ..GraceSettings::default()
        }),
        ComparedPolicy::Linux24 => ScenarioScheduler::Linux24,
        ComparedPolicy::Best => ScenarioScheduler::Best,
        ComparedPolicy::Berate => ScenarioScheduler::Berate,
        _ => ScenarioScheduler::Linux,
    }
}

/// The CPU of each thread where it has to have one: the thread that needs most chooses first, and
/// takes the least busy CPU.
fn spread(threads: &Threads, cpus: usize) -> Vec<usize> {
    let needs = |thread: &ComparedThread| thread.jobs.iter().map(|job| job.demand.as_span()).sum();
    let mut by_need: Vec<(Span, usize)> = threads.list.iter().map(needs).zip(0..).collect();
    by_need.sort_unstable_by(|a, b| b.cmp(a));
    let mut busy = vec![Span::ZERO; cpus.max(1)];
    let mut domains = vec![0; threads.list.len()];
    for (need, thread) in by_need {
        let least = (0..busy.len()).min_by_key(|&cpu| busy[cpu]).unwrap_or(0);
        busy[least] += need;
        domains[thread] = least;
    }
    domains
}

fn cpus(machine: &ComparedMachine) -> Cpus {
    let khz = |share: f64| (share * RECORDED_KHZ as f64).round() as u64;
    let steps = (1..=STEPS).map(|step| khz(machine.speed * step as f64 / STEPS as f64));
    // Work counts in time at the recorded speed, so that is among them where it is the highest.
    let all = steps.chain([RECORDED_KHZ]).filter_map(Speed::from_khz);
    Cpus {
        count: machine.cpus,
        speeds: Ladder::new(all).unwrap_or_else(|| unreachable!("the recorded speed is one")),
        continuous: false,
        limit: Speed::from_khz(khz(machine.speed)),
        costs: Costs::default(),
    }
}

fn classes(
    threads: &Threads,
    policy: ComparedPolicy,
    machine: &ComparedMachine,
    rules: &BudgetRules,
) -> Vec<Class> {
    let fair = Class::Fair(Fair::nice(0));
    let by = |of: &dyn Fn(&ComparedThread, Span) -> Class| {
        let class = |thread: &ComparedThread| {
            thread
                .rhythm
                .map_or(fair, |rhythm| of(thread, rhythm.period))
        };
        threads.list.iter().map(class).collect()
    };
    match policy {
        ComparedPolicy::Fifo => {
            let rhythms = threads.list.iter().filter_map(|thread| thread.rhythm);
            let mut periods: Vec<Span> = rhythms.map(|rhythm| rhythm.period).collect();
            periods.sort_unstable();
            by(&|_, period| {
                let before = periods.partition_point(|&other| other < period);
                let before = u8::try_from(before).unwrap_or(u8::MAX);
                Class::Fixed(Fixed {
                    priority: HIGHEST_PRIORITY.saturating_sub(before).max(1),
                    order: Order::Fifo,
                })
            })
        }
        ComparedPolicy::Rr => by(&|_, _| {
            Class::Fixed(Fixed {
                priority: HIGHEST_PRIORITY,
                order: Order::RoundRobin,
            })
        }),
        _ if policy.reserves() => {
            let mut free = Bandwidth::from_cpus(ADMISSIBLE * machine.cpus as f64);
            let asked = reservations(threads, policy, machine.speed, rules);
            let class = |asked: Option<Reservation>| {
                let fits = asked.filter(|asked| asked.bandwidth() <= free);
                fits.map_or(fair, |reservation| {
                    free = free - reservation.bandwidth();
                    Class::Deadline(DeadlineClass {
                        reservation,
                        overrun: match rules.overrun {
                            OverrunRule::Soft => Overrun::Soft,
                            OverrunRule::Hard | OverrunRule::Reclaim => Overrun::Hard,
                        },
                        reclaim: rules.overrun == OverrunRule::Reclaim,
                    })
                })
            };
            asked.into_iter().map(class).collect()
        }
        _ => by(&|_, _| fair),
    }
}
