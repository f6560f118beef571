//! Group reservations: the rules of `schedulers/reserve/policy.h`, with the queues and timers that
//! sched_ext gives them on a live kernel. `schedulers/reserve/reserve.bpf.c` is the other half,
//! operation for operation. A simulated task may use all CPUs, so that no CPU owes one a turn.

use std::collections::{BTreeSet, VecDeque};

use onbeat_model::{Instant, Reservation, Span};
use onbeat_policies::reserve::{Group, Params, Rest};

use crate::machine::Calendar;
use crate::policy::{Policy, Slice};
use crate::{CpuIndex, TaskIndex, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservePlace {
    /// It belongs to this group.
    Member(usize),
    /// It has no reservation, and this weight; 100 is that of nice 0.
    Weight(u64),
}

#[derive(Debug)]
pub struct Reserve {
    params: Params,
    groups: Vec<Queued>,
    tasks: Vec<ReserveEntity>,
    rest: BTreeSet<(u64, u64, TaskIndex)>,
    passed: Span,
    came: u64,
    cpus: Vec<ReserveCpu>,
}

#[derive(Debug)]
struct Queued {
    group: Group,
    queue: VecDeque<TaskIndex>,
}

#[derive(Debug)]
struct ReserveEntity {
    place: ReservePlace,
    rest: Rest,
    /// The time that it has run since it was last put behind the others of its group.
    turn: Span,
}

#[derive(Clone, Copy, Debug, Default)]
struct ReserveCpu {
    urgency: Urgency,
    /// The part that it took of the budget of its task's group, and has run since.
    portion: Span,
    ran: Span,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    Looking,
    Deadline(Instant),
    Rest,
    #[default]
    Idle,
}

impl Reserve {
    /// A scheduler of `cpus` CPUs with these groups, and of these tasks, none of which is ready.
    /// The machine must be given the tasks in the same order.
    pub fn new(
        params: Params,
        cpus: usize,
        groups: &[Reservation],
        tasks: impl IntoIterator<Item = ReservePlace>,
    ) -> Self {
        let queued = |reservation: &Reservation| {
            let mut group = Group::default();
            let (runtime, deadline) = (reservation.runtime(), reservation.deadline());
            group.set(runtime, deadline, reservation.period(), Instant::ZERO);
            Queued {
                group,
                queue: VecDeque::new(),
            }
        };
        let entity = |place| ReserveEntity {
            place,
            rest: Rest::default(),
            turn: Span::ZERO,
        };
        Self {
            params,
            groups: groups.iter().map(queued).collect(),
            tasks: tasks.into_iter().map(entity).collect(),
            rest: BTreeSet::new(),
            passed: Span::ZERO,
            came: 0,
            cpus: vec![ReserveCpu::default(); cpus],
        }
    }

    fn urge(&mut self, urgency: Urgency, calendar: &mut Calendar) {
        let cpus = self.cpus.iter_mut().enumerate();
        let Some((cpu, least)) = cpus.max_by_key(|(cpu, c)| (c.urgency, std::cmp::Reverse(*cpu)))
        else {
            return;
        };
        if urgency < least.urgency {
            // The next one in a hurry looks for another CPU.
            least.urgency = urgency;
            calendar.reschedule(cpu);
        }
    }

    fn urge_for(&mut self, number: usize, calendar: &mut Calendar) {
        let group = &self.groups[number].group;
        if !group.available().is_zero() {
            self.urge(Urgency::Deadline(group.deadline()), calendar);
        }
    }

    fn enqueue(&mut self, task: TaskIndex, calendar: &mut Calendar) {
        match self.tasks[task].place {
            ReservePlace::Member(group) => {
                self.tasks[task].turn = Span::ZERO;
                self.groups[group].queue.push_back(task);
                self.urge_for(group, calendar);
            }
            ReservePlace::Weight(_) => {
                self.came += 1;
                let rest = &mut self.tasks[task].rest;
                if let Some(&(first, ..)) = self.rest.first() {
                    rest.stand(Span::from_ns(first));
                }
                let passed = rest.passed_ns;
                self.rest.insert((passed, self.came, task));
                self.urge(Urgency::Rest, calendar);
            }
        }
    }

    fn account(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar) {
        let ReserveCpu { portion, ran, .. } = std::mem::take(&mut self.cpus[cpu]);
        self.cpus[cpu].urgency = Urgency::Looking;
        match self.tasks[task].place {
            ReservePlace::Member(number) => {
                self.tasks[task].turn += ran;
                let waits = self.groups[number]
                    .group
                    .give_back(portion, ran, calendar.now());
                if let Some(at) = waits {
                    calendar.set_timer(at, number as u64);
                }
            }
            ReservePlace::Weight(weight) => {
                self.tasks[task].rest.charge(weight, ran);
            }
        }
    }

    fn most_urgent(&self) -> Option<usize> {
        let groups = self.groups.iter().enumerate();
        groups
            .filter(|(_, queued)| !queued.queue.is_empty() && !queued.group.available().is_zero())
            .min_by_key(|(_, queued)| queued.group.deadline())
            .map(|(number, _)| number)
    }
}

impl Policy for Reserve {
    fn ready(&mut self, task: TaskIndex, calendar: &mut Calendar) {
        let entity = &mut self.tasks[task];
        match entity.place {
            ReservePlace::Member(number) => {
                if let Some(at) = self.groups[number].group.wake(calendar.now()) {
                    calendar.set_timer(at, number as u64);
                }
            }
            ReservePlace::Weight(_) => entity.rest.wake(&self.params, self.passed),
        }
        self.enqueue(task, calendar);
    }

    fn blocked(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar) {
        self.account(task, cpu, calendar);
        if let ReservePlace::Member(number) = self.tasks[task].place {
            self.groups[number].group.block();
        }
    }

    fn put_back(&mut self, task: TaskIndex, cpu: CpuIndex, calendar: &mut Calendar) {
        self.account(task, cpu, calendar);
        if let ReservePlace::Member(number) = self.tasks[task].place {
            let is_turn = self.tasks[task].turn < Span::from_ns(self.params.slice_ns);
            let Queued { group, queue } = &mut self.groups[number];
            if group.waits() {
                calendar.tell_exhausted(task);
            } else if is_turn {
                queue.push_front(task);
                self.urge_for(number, calendar);
                return;
            }
        }
        self.enqueue(task, calendar);
    }

    fn pick(&mut self, cpu: CpuIndex, _desk: &mut Calendar) -> Option<TaskIndex> {
        if let Some(number) = self.most_urgent() {
            let Queued { group, queue } = &mut self.groups[number];
            self.cpus[cpu] = ReserveCpu {
                urgency: Urgency::Deadline(group.deadline()),
                portion: group.take(&self.params),
                ran: Span::ZERO,
            };
            return queue.pop_front();
        }
        let picked = self.rest.pop_first().map(|(passed, _, task)| {
            self.passed = self.passed.max(Span::from_ns(passed));
            task
        });
        self.cpus[cpu] = ReserveCpu {
            urgency: picked.map_or(Urgency::Idle, |_| Urgency::Rest),
            ..ReserveCpu::default()
        };
        picked
    }

    fn slice(&mut self, task: TaskIndex, cpu: CpuIndex, now: Instant) -> Slice {
        let until = match self.tasks[task].place {
            ReservePlace::Member(_) => now + self.cpus[cpu].portion,
            ReservePlace::Weight(_) => now + Span::from_ns(self.params.slice_ns),
        };
        Slice {
            until: Some(until),
            work: None,
        }
    }

    fn charge(
        &mut self,
        _task: TaskIndex,
        cpu: CpuIndex,
        ran: Span,
        _work: Work,
        _desk: &mut Calendar,
    ) {
        self.cpus[cpu].ran += ran;
    }

    fn timer(&mut self, token: u64, calendar: &mut Calendar) {
        let Some(Queued { group, queue }) = self.groups.get_mut(token as usize) else {
            return;
        };
        if group.timer(calendar.now()) {
            let urgency = Urgency::Deadline(group.deadline());
            for _ in 0..queue.len().min(self.cpus.len()) {
                self.urge(urgency, calendar);
            }
        }
    }
}
