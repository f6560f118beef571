//! A simulated machine as a [`Sensor`] and an [`Actuator`]: the loop of `onbeat-control` drives it
//! as it drives a live one, in virtual time.
//!
//! The loop itself takes no time here, and what it decides is in force at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;

use onbeat_control::{Controller, Next, Settings, drive};
use onbeat_model::{
    Actuator, Bandwidth, Boost, Burst, Capacity, Event, Flow, Follow, Instant, Ladder, Mark, Name,
    Refusal, Reservation, Sensor, Span, Speed, Speeds, Standing, Task, TaskId,
};

use crate::policy::linux::{Class, Config, DeadlineClass, Fair, Fixed, Linux, Order};
use crate::{Cpus, Machine, Observer, TaskIndex, Workload};

/// The events of a tracer, until the loop asks for them.
#[derive(Debug, Default)]
pub struct SensedEvents {
    events: Vec<Event>,
    tasks: Vec<Task>,
    tracked: Vec<bool>,
    meters: Vec<Meter>,
    urgent: bool,
}

/// What a task uses while it is boosted.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    application: u32,
    spent: Span,
    /// Its CPU time when it was boosted, if it is.
    since: Option<Span>,
}

impl SensedEvents {
    /// The sensor of these tasks, none of which is tracked yet; in the order of the machine.
    pub fn new(tasks: Vec<Task>) -> Self {
        Self {
            tracked: vec![false; tasks.len()],
            meters: vec![Meter::default(); tasks.len()],
            tasks,
            ..Self::default()
        }
    }

    /// The number of the task at this place, if it is tracked.
    fn tracks(&self, task: TaskIndex) -> Option<TaskId> {
        let tracked = *self.tracked.get(task)?;
        let task = self.tasks.get(task)?;
        tracked.then_some(task.id)
    }

    fn index_of(&self, task: TaskId) -> Option<TaskIndex> {
        // Tasks are numbered in their order, so this is the place unless a caller numbered
        // otherwise.
        let guess = (task.tid as usize).wrapping_sub(FIRST_TID as usize);
        match self.tasks.get(guess) {
            Some(found) if found.id == task => Some(guess),
            _ => self.tasks.iter().position(|found| found.id == task),
        }
    }

    fn hear(&mut self, task: TaskId, event: Event) {
        if self.index_of(task).is_some_and(|index| self.tracked[index]) {
            self.events.push(event);
        }
    }
}

impl Observer for SensedEvents {
    fn burst(&mut self, burst: &Burst) {
        self.hear(burst.task, Event::Burst(*burst));
    }

    fn exhausted(&mut self, task: TaskIndex, at: Instant) {
        if let Some(task) = self.tracks(task) {
            self.events.push(Event::Exhausted { at, task });
            self.urgent = true;
        }
    }

    fn yielded(&mut self, task: TaskIndex, at: Instant) {
        if let Some(task) = self.tracks(task) {
            self.events.push(Event::Yielded { at, task });
            self.urgent = true;
        }
    }

    fn marked(&mut self, mark: &Mark) {
        self.hear(mark.task, Event::Marked(*mark));
    }

    fn exited(&mut self, task: TaskIndex, at: Instant) {
        if let Some(task) = self.tracks(task) {
            self.events.push(Event::Exited { at, task });
        }
    }
}

type SharedMachine<O> = Rc<RefCell<Machine<Linux, (SensedEvents, O)>>>;

#[derive(Debug)]
pub struct SimulatedSensor<O> {
    machine: SharedMachine<O>,
    ends: Instant,
}

#[derive(Debug)]
pub struct SimulatedActuator<O> {
    machine: SharedMachine<O>,
    before: BTreeMap<TaskId, Class>,
    /// The former classes of boosted tasks; none if none may be boosted.
    boosted: Option<BTreeMap<TaskId, Class>>,
    gives_priorities: bool,
    is_hard: bool,
    capacity: Capacity,
    speeds: Option<Speeds>,
}

/// The two seams of `machine`, which runs until `ends` and has CPUs of these speeds, if they can be
/// set.
pub fn seams<O: Observer>(
    machine: Machine<Linux, (SensedEvents, O)>,
    cpus: usize,
    speeds: Option<Ladder>,
    ends: Instant,
) -> (SimulatedSensor<O>, SimulatedActuator<O>) {
    let follows = machine.policy().runtimes_follow_speed();
    let machine = Rc::new(RefCell::new(machine));
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
    let actuator = SimulatedActuator {
        machine: Rc::clone(&machine),
        before: BTreeMap::new(),
        boosted: None,
        gives_priorities: false,
        is_hard: false,
        // The kernel's limits.
        capacity: Capacity {
            cpus,
            admissible: Bandwidth::from_cpus(0.95 * f64::from(cpus)),
            shortest_runtime: Span::from_ns(1024),
            shortest_period: Span::from_us(100),
            longest_period: Span::from_ns(1 << 32),
        },
        speeds: speeds.map(|ladder| Speeds {
            present: ladder.highest(),
            ladder,
            runtimes_follow_speed: follows,
        }),
    };
    (SimulatedSensor { machine, ends }, actuator)
}

/// Programs of one thread, in the order of the machine.
pub fn tasks(count: usize) -> Vec<Task> {
    let tids = (FIRST_TID..).take(count);
    tids.map(|tid| Task {
        id: TaskId::recorded(tid),
        pid: tid,
        comm: Name::from("program"),
    })
    .collect()
}

/// A machine with CPUs of one speed and [these programs](tasks).
pub fn machine_of<O: Observer>(
    config: Config,
    programs: impl IntoIterator<Item = (Class, Workload)>,
    observer: O,
) -> Machine<Linux, O> {
    let (classes, workloads): (Vec<_>, Vec<_>) = programs.into_iter().unzip();
    let cpus = Cpus::of_one_speed(config.domains.iter().map(Vec::len).sum());
    let policy = Linux::new(config, classes.into_iter().map(|class| (class, 0)));
    let mut machine = Machine::new(&cpus, policy, observer);
    for (task, workload) in tasks(workloads.len()).iter().zip(workloads) {
        machine.add(task.id, workload);
    }
    machine
}

/// Runs `machine` until `ends` under onbeat's loop, which is pointed at its first `tracked`
/// programs alone. `look` is called at each of its turns.
pub fn under_onbeat<O: Observer, A: Actuator>(
    mut machine: Machine<Linux, (SensedEvents, O)>,
    tracked: usize,
    ends: Instant,
    settings: Settings,
    how: impl FnOnce(SimulatedActuator<O>) -> A,
    mut look: impl FnMut(Instant, &mut Controller<A>),
) -> O {
    let cpus = machine.accounts().count();
    let (mut sensor, actuator) = seams(machine, cpus, None, ends);
    for task in tasks(tracked) {
        let Ok(()) = sensor.track(task.id.tid, Follow::Threads);
    }
    let mut controller = Controller::new(settings, how(actuator));
    let Ok(()) = drive(&mut sensor, &mut controller, |sensor, controller| {
        look(sensor.now(), controller);
        Next::Continue
    });
    drop(controller);
    let machine = sensor.into_machine().expect("the actuator is gone");
    machine.finish().1.1
}

impl<O> SimulatedSensor<O> {
    /// The machine again, when the actuator is gone; none before.
    pub fn into_machine(self) -> Option<Machine<Linux, (SensedEvents, O)>> {
        Rc::try_unwrap(self.machine).ok().map(RefCell::into_inner)
    }
}

impl<O: Observer> Sensor for SimulatedSensor<O> {
    type Error = Infallible;

    /// The tasks of a simulated machine are there from its begin; of an unknown number nothing
    /// happens.
    fn track(&mut self, tid: u32, _follow: Follow) -> Result<(), Infallible> {
        let mut machine = self.machine.borrow_mut();
        let at = machine.now();
        let heard = &mut machine.observer().0;
        if let Some(index) = heard.tasks.iter().position(|task| task.id.tid == tid)
            && !std::mem::replace(&mut heard.tracked[index], true)
        {
            let task = heard.tasks[index];
            heard.events.push(Event::Tracked { at, task });
        }
        Ok(())
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), Infallible> {
        let mut machine = self.machine.borrow_mut();
        let heard = &mut machine.observer().0;
        for &task in tasks {
            if let Some(index) = heard.index_of(task) {
                heard.tracked[index] = false;
            }
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, Infallible> {
        let mut machine = self.machine.borrow_mut();
        let until = (machine.now() + timeout).min(self.ends);
        machine.run(until, |(heard, _)| std::mem::take(&mut heard.urgent));
        events.append(&mut machine.observer().0.events);
        Ok(if machine.now() >= self.ends {
            Flow::Ended
        } else {
            Flow::Open
        })
    }

    fn now(&self) -> Instant {
        self.machine.borrow().now()
    }

    fn executed(&mut self, task: TaskId) -> Option<Span> {
        let mut machine = self.machine.borrow_mut();
        let index = machine.observer().0.index_of(task)?;
        Some(machine.executed(index))
    }

    fn assign(&mut self, task: TaskId, application: u32) {
        let mut machine = self.machine.borrow_mut();
        let heard = &mut machine.observer().0;
        if let Some(index) = heard.index_of(task) {
            heard.meters[index].application = application;
        }
    }

    fn spent(&mut self, application: u32) -> Option<Span> {
        let mut machine = self.machine.borrow_mut();
        let meters = machine.observer().0.meters.clone();
        let mut spent = Span::ZERO;
        for (index, meter) in meters.iter().enumerate() {
            if meter.application == application {
                let boosted = meter.since.map(|since| machine.executed(index) - since);
                spent += meter.spent + boosted.unwrap_or_default();
            }
        }
        Some(spent)
    }

    fn idle(&mut self) -> Option<Vec<Span>> {
        let mut machine = self.machine.borrow_mut();
        let accounts = machine.accounts();
        Some(accounts.map(|account| account.idle_time()).collect())
    }
}

pub const FIRST_TID: u32 = 1000;

impl<O: Observer> SimulatedActuator<O> {
    /// The same, whose reservations are ceilings as well, as with `onbeat run --hard`.
    pub fn hard(mut self) -> Self {
        self.is_hard = true;
        self
    }

    /// The same, which boosts threads without a reservation by their nice values.
    pub fn boosting(mut self) -> Self {
        self.boosted = Some(BTreeMap::new());
        self
    }

    /// The same, which boosts by real-time priorities.
    pub fn boosting_by_priority(mut self) -> Self {
        self.gives_priorities = true;
        self.boosting()
    }

    fn unboost(&mut self, task: TaskId) -> Option<Class> {
        let before = self.boosted.as_mut()?.remove(&task);
        if before.is_some() {
            self.meter(task, false);
        }
        before
    }

    /// The task is boosted from now on, or no longer.
    fn meter(&mut self, task: TaskId, is_boosted: bool) {
        let mut machine = self.machine.borrow_mut();
        let Some(index) = machine.observer().0.index_of(task) else {
            return;
        };
        let executed = machine.executed(index);
        let meter = &mut machine.observer().0.meters[index];
        let since = std::mem::replace(&mut meter.since, is_boosted.then_some(executed));
        meter.spent += since.map_or(Span::ZERO, |since| executed - since);
    }

    fn set(&mut self, task: TaskId, class: Class) -> Result<Class, Refusal> {
        let mut machine = self.machine.borrow_mut();
        let index = machine.observer().0.index_of(task).ok_or(Refusal::Gone)?;
        let before = machine.policy().class(index);
        // As the live actuator, which looks first: a change begins the task's turn anew.
        if before != class {
            machine.change(|policy, calendar| policy.set_class(index, class, calendar));
        }
        Ok(before)
    }
}

impl<O: Observer> Actuator for SimulatedActuator<O> {
    fn reserve(&mut self, task: TaskId, reservation: Reservation) -> Result<(), Refusal> {
        let wanted = reservation.bandwidth();
        {
            let mut machine = self.machine.borrow_mut();
            let index = machine.observer().0.index_of(task).ok_or(Refusal::Gone)?;
            let (others, cpus) = machine.policy().reserved_beside(index);
            if others + wanted > Bandwidth::from_cpus(0.95 * cpus as f64) {
                let advice = format!("{others} are held already");
                return Err(Refusal::NoRoom { wanted, advice });
            }
        }
        let deadline = DeadlineClass {
            reclaim: !self.is_hard,
            ..DeadlineClass::hard(reservation)
        };
        let before = self.set(task, Class::Deadline(deadline))?;
        let before = self.unboost(task).unwrap_or(before);
        self.before.entry(task).or_insert(before);
        Ok(())
    }

    fn release(&mut self, task: TaskId) -> Result<(), Refusal> {
        let before = self.before.remove(&task);
        before.map_or(Ok(()), |before| self.set(task, before).map(drop))
    }

    fn standing(&mut self, task: TaskId) -> Standing {
        if !self.before.contains_key(&task) {
            return Standing::Own;
        }
        let mut machine = self.machine.borrow_mut();
        match machine.observer().0.index_of(task) {
            Some(index) => match machine.policy().class(index) {
                Class::Deadline(deadline) => Standing::Held(deadline.reservation),
                _ => Standing::TakenOver,
            },
            None => Standing::Gone,
        }
    }

    fn boost(&mut self, task: TaskId, boost: Option<Boost>) -> Result<(), Refusal> {
        if self.boosted.is_none() {
            return Err(Refusal::NoBoosts);
        }
        let Some(boost) = boost else {
            let before = self.unboost(task);
            return before.map_or(Ok(()), |before| self.set(task, before).map(drop));
        };
        let class = match u8::try_from(boost.priority) {
            Ok(priority @ 1..) if self.gives_priorities => Class::Fixed(Fixed {
                priority,
                order: Order::RoundRobin,
            }),
            _ => Class::Fair(Fair {
                slice: boost.slice,
                ..Fair::nice(-i8::try_from(boost.levels).unwrap_or(i8::MAX))
            }),
        };
        let before = self.set(task, class)?;
        self.meter(task, true);
        if let Some(boosted) = &mut self.boosted {
            boosted.entry(task).or_insert(before);
        }
        Ok(())
    }

    fn ended(&mut self, task: TaskId) {
        self.before.remove(&task);
        self.unboost(task);
    }

    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn speeds(&self) -> Option<Speeds> {
        self.speeds.clone()
    }

    fn set_speed(&mut self, speed: Speed) -> Result<(), Refusal> {
        self.machine.borrow_mut().set_speed(speed);
        if let Some(speeds) = &mut self.speeds {
            speeds.present = speed;
        }
        Ok(())
    }
}
