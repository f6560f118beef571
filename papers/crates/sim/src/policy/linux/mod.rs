//! The scheduling of the Linux kernel: deadline tasks before those with fixed priorities before
//! fair ones.
//!
//! One file for each class, with the rules as of Linux 6.18. CPUs belong to *domains*, as root
//! domains (exclusive cpusets) divide a machine: deadline and fixed-priority tasks of a domain run
//! on the first of its CPUs that has nothing more urgent to do, so one domain of all CPUs is global
//! scheduling, and a domain for each CPU is partitioned scheduling.
//!
//! Simpler than the kernel: tasks migrate at once and for nothing; fair tasks go to an idle CPU of
//! their domain when they become ready and otherwise stay, without balancing between busy CPUs;
//! there are no fair servers, control groups, or inherited priorities.

mod bandwidth;
mod deadline;
mod fair;
mod fixed;
mod operations;
mod server;

use std::cmp::Reverse;

use onbeat_model::{Bandwidth, Instant, Span, Speed};

use crate::indexed_min::Least;
use crate::machine::Calendar;
use crate::{CpuIndex, TaskIndex};
use bandwidth::Contention;
pub use deadline::DeadlineClass;
pub use fair::Fair;
pub use fixed::{Fixed, Order};
pub use server::Overrun;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Deadline(DeadlineClass),
    /// SCHED_FIFO or SCHED_RR.
    Fixed(Fixed),
    /// SCHED_OTHER.
    Fair(Fair),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Deadline(Instant),
    /// Counted from the highest priority.
    Fixed(u8),
    Fair,
    Idle,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The CPUs of each domain. Every CPU is in one.
    pub domains: Vec<Vec<CpuIndex>>,
    /// Budgets and slices are enforced at the next multiple of this, as by a scheduler tick; zero:
    /// exactly, as with high-resolution timers for them.
    pub tick: Span,
    /// The share of each CPU that the kernel keeps for fair tasks beside reservations. Here it only
    /// counts as reserved and in use, which leaves less to reclaim.
    pub fair_server: Bandwidth,
    /// The CPUs run at the share of this speed that is in use of the reserved bandwidth (GRUB-PA,
    /// as under the governor schedutil), and at this speed for tasks without a reservation; none:
    /// their speed is left alone.
    pub grub_pa: Option<Speed>,
    /// For how long a SCHED_RR task runs before the next of its priority does.
    pub round: Span,
    /// The runtimes of deadline tasks are counted in time at full speed (frequency-invariant
    /// accounting).
    pub runtimes_follow_speed: bool,
}

impl Config {
    /// One domain of `cpus` CPUs, exact, with the kernel's 100 ms for SCHED_RR.
    pub fn global(cpus: usize) -> Self {
        Self {
            domains: vec![(0..cpus).collect()],
            tick: Span::ZERO,
            fair_server: Bandwidth::ZERO,
            grub_pa: None,
            round: Span::from_ms(100),
            runtimes_follow_speed: false,
        }
    }

    /// The same with a domain for each CPU.
    pub fn partitioned(cpus: usize) -> Self {
        Self {
            domains: (0..cpus).map(|cpu| vec![cpu]).collect(),
            ..Self::global(cpus)
        }
    }
}

#[derive(Debug)]
pub struct Linux {
    config: Config,
    entities: Vec<Entity>,
    domains: Vec<CpuDomain>,
    cpus: Vec<CpuState>,
}

#[derive(Debug)]
struct Entity {
    domain: usize,
    state: EntityState,
    class: Scheduled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntityState {
    Blocked,
    Queued,
    /// Ready, but its server has no budget.
    Throttled,
    Running,
}

#[derive(Debug)]
enum Scheduled {
    Deadline(deadline::DeadlineEntity),
    Fixed(fixed::FixedEntity),
    Fair(fair::FairEntity),
}

#[derive(Debug)]
struct CpuDomain {
    cpus: Vec<CpuIndex>,
    deadline: deadline::DeadlineQueue,
    fixed: fixed::FixedQueue,
    contention: Contention,
    ranks: Least<Reverse<Rank>>,
}

#[derive(Debug)]
struct CpuState {
    domain: usize,
    place: usize,
    rank: Rank,
    task: Option<TaskIndex>,
    fair: fair::FairQueue,
}

impl Linux {
    /// A scheduler of these tasks, each with its class and domain, none of which is ready. The
    /// machine must be given the tasks in the same order.
    ///
    /// # Panics
    /// If a task's domain is not in the configuration.
    pub fn new(config: Config, tasks: impl IntoIterator<Item = (Class, usize)>) -> Self {
        let mut domains: Vec<CpuDomain> = Vec::new();
        let count = config
            .domains
            .iter()
            .flatten()
            .max()
            .map_or(0, |&cpu| cpu + 1);
        let mut cpus: Vec<CpuState> = (0..count).map(|_| CpuState::in_domain(0)).collect();
        for (number, members) in config.domains.iter().enumerate() {
            for (place, &cpu) in members.iter().enumerate() {
                cpus[cpu].domain = number;
                cpus[cpu].place = place;
            }
            domains.push(CpuDomain {
                cpus: members.clone(),
                deadline: deadline::DeadlineQueue::default(),
                fixed: fixed::FixedQueue::default(),
                contention: Contention::of(members.len(), config.fair_server)
                    .and_speed(config.grub_pa.is_some()),
                ranks: Least::new(members.len(), Reverse(Rank::Idle)),
            });
        }
        let entities = tasks
            .into_iter()
            .map(|(class, domain)| {
                if let Class::Deadline(deadline) = class {
                    domains[domain].contention.enters(&deadline);
                }
                Entity {
                    domain,
                    state: EntityState::Blocked,
                    class: Scheduled::new(class, &config),
                }
            })
            .collect();
        Self {
            config,
            entities,
            domains,
            cpus,
        }
    }

    pub fn class(&self, task: TaskIndex) -> Class {
        match &self.entities[task].class {
            Scheduled::Deadline(entity) => Class::Deadline(entity.deadline),
            Scheduled::Fixed(entity) => Class::Fixed(entity.fixed),
            Scheduled::Fair(entity) => Class::Fair(entity.fair),
        }
    }

    pub const fn runtimes_follow_speed(&self) -> bool {
        self.config.runtimes_follow_speed
    }

    /// How much bandwidth is reserved in the domain of `task`, its own left out, and how many CPUs
    /// it has.
    pub fn reserved_beside(&self, task: TaskIndex) -> (Bandwidth, usize) {
        let domain = self.entities[task].domain;
        let others = self
            .entities
            .iter()
            .enumerate()
            .filter_map(|(other, entity)| match &entity.class {
                Scheduled::Deadline(e) if other != task && entity.domain == domain => {
                    Some(e.deadline.reservation.bandwidth())
                }
                _ => None,
            });
        (others.sum(), self.domains[domain].cpus.len())
    }

    /// Gives `task` another class, or other parameters of the one it has.
    ///
    /// As in the kernel, a deadline task keeps its present deadline and what is left of its budget:
    /// a new runtime counts from the next replenishment.
    pub fn set_class(&mut self, task: TaskIndex, class: Class, calendar: &mut Calendar) {
        let Entity { domain, state, .. } = self.entities[task];
        match state {
            EntityState::Queued => self.dequeue(task),
            EntityState::Running => self.leave_fair(task),
            EntityState::Blocked | EntityState::Throttled => {}
        }
        let contention = &mut self.domains[domain].contention;
        let scheduled = &mut self.entities[task].class;
        let stays_throttled = match (&mut *scheduled, class) {
            (Scheduled::Deadline(entity), Class::Deadline(new)) => {
                contention.changes(entity, new);
                entity.server.throttled()
            }
            (_, new) => {
                if let Scheduled::Deadline(old) = scheduled {
                    contention.leaves(old);
                }
                if let Class::Deadline(new) = new {
                    contention.enters(&new);
                }
                *scheduled = Scheduled::new(new, &self.config);
                false
            }
        };
        match state {
            EntityState::Queued => self.enqueue(task, calendar),
            EntityState::Throttled if !stays_throttled => self.enqueue(task, calendar),
            _ => {}
        }
        for &cpu in &self.domains[domain].cpus {
            calendar.reschedule(cpu);
        }
    }

    fn enqueue(&mut self, task: TaskIndex, calendar: &mut Calendar) {
        let entity = &mut self.entities[task];
        let domain = &mut self.domains[entity.domain];
        entity.state = EntityState::Queued;
        match &mut entity.class {
            Scheduled::Deadline(deadline) => {
                if deadline.server.is_new() {
                    deadline
                        .server
                        .begin(&deadline.deadline.reservation, calendar.now());
                    domain.contention.begins(deadline);
                }
                domain.deadline.insert(deadline, task);
            }
            Scheduled::Fixed(fixed) => domain.fixed.insert(fixed, task),
            Scheduled::Fair(_) => self.place_fair(task, calendar),
        }
    }

    fn leave_fair(&mut self, task: TaskIndex) {
        if let Scheduled::Fair(fair) = &mut self.entities[task].class
            && let Some(home) = fair.home.take()
        {
            self.cpus[home].fair.leaves(fair);
        }
    }

    fn dequeue(&mut self, task: TaskIndex) {
        let entity = &mut self.entities[task];
        let domain = &mut self.domains[entity.domain];
        match &mut entity.class {
            Scheduled::Deadline(deadline) => domain.deadline.remove(deadline, task),
            Scheduled::Fixed(fixed) => domain.fixed.remove(fixed, task),
            Scheduled::Fair(fair) => {
                if let Some(home) = fair.home {
                    self.cpus[home].fair.remove(fair, task);
                }
                self.leave_fair(task);
            }
        }
    }
}
