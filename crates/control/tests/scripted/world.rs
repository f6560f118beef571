//! A scripted world in virtual time: a sensor that tells what a script says, and how a loop is
//! played in it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::convert::Infallible;
use std::rc::Rc;

use crate::kernel::{Asked, Kernel, Waits};
use crate::processor::Processor;
use onbeat_control::{
    BoostEntry, Controller, Decision, Entry, Next, Report, Settings, SpeedEntry, Treatment, drive,
};
use onbeat_model::{
    Burst, Event, Flow, Follow, Instant, Mark, Name, Reservation, Said, Sensor, Span, Task, TaskId,
};

pub(crate) const fn ms(ms: u64) -> Span {
    Span::from_ms(ms)
}

pub(crate) fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

#[derive(Clone, Copy)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn up_to(&mut self, most: Span) -> Span {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Span::from_ns((self.0 >> 33) % most.as_ns().max(1))
    }
}

#[derive(Default)]
pub(crate) struct Script {
    events: Vec<Event>,
    /// Known only while they are tracked, which is not requested at first.
    strangers: Vec<Task>,
}

impl Script {
    /// There is this thread, which is told of only while it is tracked.
    pub(crate) fn stranger(&mut self, task: Task) {
        self.strangers.push(task);
    }

    pub(crate) fn tracked(&mut self, tid: u32, name: &str, at: Instant) {
        self.tracked_of(1, tid, name, at);
    }

    pub(crate) fn tracked_of(&mut self, pid: u32, tid: u32, name: &str, at: Instant) {
        let task = Task {
            id: TaskId::recorded(tid),
            pid,
            comm: Name::from(name),
        };
        self.events.push(Event::Tracked { at, task });
    }

    pub(crate) fn burst(&mut self, tid: u32, woke: Instant, executed: Span) {
        self.late_burst(tid, woke, Span::from_us(10), executed);
    }

    pub(crate) fn late_burst(&mut self, tid: u32, woke: Instant, waited: Span, executed: Span) {
        self.events.push(Event::Burst(Burst {
            woke,
            ..Burst::alone(TaskId::recorded(tid), woke + waited, executed)
        }));
    }

    /// A job every `period` with a jitter of up to a hundredth of it, from `from` to `until`.
    pub(crate) fn periodic(
        &mut self,
        tid: u32,
        period: Span,
        (from, until): (Instant, Instant),
        mut executed: impl FnMut(u64) -> Span,
    ) {
        let mut noise = Noise(u64::from(tid));
        let mut release = from;
        for job in 0.. {
            if release >= until {
                break;
            }
            let woke = release + noise.up_to(period / 100);
            self.burst(tid, woke, executed(job));
            release = release + period;
        }
    }

    pub(crate) fn random(&mut self, tid: u32, mean: Span, (from, until): (Instant, Instant)) {
        let mut noise = Noise(u64::from(tid) + 77);
        let mut woke = from;
        while woke < until {
            self.burst(tid, woke, Span::from_us(100));
            let even = noise.up_to(ms(1000)).ratio(ms(1000));
            woke = woke + Span::from_us(200) + mean.scale(-(1.0 - even).ln());
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn says(
        &mut self,
        tid: u32,
        said: Said,
        at: Instant,
        (woke, executed): (Instant, Span),
    ) {
        self.event(Event::Marked(Mark {
            at,
            task: TaskId::recorded(tid),
            woke,
            executed,
            said,
        }));
    }

    pub(crate) fn exits(&mut self, tid: u32, at: Instant) {
        let task = TaskId::recorded(tid);
        self.event(Event::Exited { at, task });
    }

    pub(crate) fn exhausted(&mut self, tid: u32, at: Instant) {
        let task = TaskId::recorded(tid);
        self.event(Event::Exhausted { at, task });
    }
}

pub(crate) const HOG: TaskId = TaskId::recorded(667);

pub(crate) type Clock = Rc<Cell<Instant>>;

#[derive(Default)]
pub(crate) struct Scripted {
    events: VecDeque<Event>,
    clock: Clock,
    processor: Option<Rc<Processor>>,
    waits: Option<Waits>,
    raised: Rc<RefCell<BTreeSet<TaskId>>>,
    /// The hog's application, and its CPU time while it was raised.
    metered: Option<(u32, Span)>,
    strangers: Vec<Task>,
    watched: Vec<u32>,
    unwatched: Vec<u32>,
    news: Vec<Event>,
    used: HashMap<TaskId, Span>,
}

impl Scripted {
    fn is_stranger(&self, tid: u32) -> bool {
        self.strangers.iter().any(|task| task.id.tid == tid)
    }

    fn is_watched(&self, tid: u32) -> bool {
        let times = |list: &[u32]| list.iter().filter(|other| **other == tid).count();
        times(&self.watched) > times(&self.unwatched)
    }

    fn is_told(&self, event: &Event) -> bool {
        let by_nobody = event
            .task()
            .is_none_or(|task| !self.is_stranger(task.tid) || self.is_watched(task.tid));
        by_nobody && !matches!(event, Event::Woke { wakee, .. } if self.is_watched(wakee.id.tid))
    }
}

impl Sensor for Scripted {
    type Error = Infallible;

    fn track(&mut self, tid: u32, _: Follow) -> Result<(), Infallible> {
        self.watched.push(tid);
        let at = self.clock.get();
        let known = self.strangers.iter().find(|task| task.id.tid == tid);
        self.news
            .extend(known.map(|&task| Event::Tracked { at, task }));
        Ok(())
    }

    fn untrack(&mut self, tasks: &[TaskId]) -> Result<(), Infallible> {
        self.unwatched.extend(tasks.iter().map(|task| task.tid));
        Ok(())
    }

    fn poll(&mut self, timeout: Span, events: &mut Vec<Event>) -> Result<Flow, Infallible> {
        let began = self.clock.get();
        let until = began + timeout;
        self.clock.set(until);
        events.append(&mut self.news);
        while self.events.front().is_some_and(|event| event.at() <= until) {
            let mut event = self.events.pop_front();
            if event.is_some_and(|event| !self.is_told(&event)) {
                continue;
            }
            if let (Some(Event::Burst(burst)), Some(processor)) = (&mut event, &self.processor) {
                burst.executed = burst.executed.scale(processor.slowness());
                burst.blocked = burst.first_ran + burst.executed;
            }
            if let (Some(Event::Burst(burst)), Some(waits)) = (&mut event, &self.waits) {
                let waited = waits(self.raised.borrow().contains(&burst.task));
                burst.first_ran = burst.first_ran + waited;
                burst.blocked = burst.blocked + waited;
            }
            if let Some(Event::Burst(burst)) = event {
                *self.used.entry(burst.task).or_default() += burst.executed;
            }
            events.extend(event);
            if let Some(Event::Exhausted { at, .. }) = event {
                self.clock.set(at);
                break;
            }
        }
        if let Some((_, spent)) = &mut self.metered
            && self.raised.borrow().contains(&HOG)
        {
            *spent += self.clock.get().since(began);
        }
        Ok(if self.events.is_empty() {
            Flow::Ended
        } else {
            Flow::Open
        })
    }

    fn now(&self) -> Instant {
        self.clock.get()
    }

    fn executed(&mut self, task: TaskId) -> Option<Span> {
        self.used.get(&task).copied()
    }

    fn assign(&mut self, task: TaskId, application: u32) {
        if task == HOG {
            self.metered = Some((application, Span::ZERO));
        }
    }

    fn spent(&mut self, application: u32) -> Option<Span> {
        let (hogs, spent) = self.metered?;
        (hogs == application).then_some(spent)
    }

    fn idle(&mut self) -> Option<Vec<Span>> {
        let processor = self.processor.as_ref()?;
        Some(vec![processor.idle(self.clock.get())])
    }
}

pub(crate) struct Ran {
    pub(crate) journal: Vec<Entry>,
    pub(crate) boosts: Vec<BoostEntry>,
    pub(crate) speeds: Vec<SpeedEntry>,
    pub(crate) report: Report,
    pub(crate) kernel: Kernel,
    /// The strangers that were tracked, and those of them that were let go, in that order.
    pub(crate) watched: Vec<u32>,
    pub(crate) unwatched: Vec<u32>,
}

impl Ran {
    pub(crate) fn of(&self, tid: u32) -> Vec<&Entry> {
        let journal = self.journal.iter();
        journal.filter(|entry| entry.task.id.tid == tid).collect()
    }

    pub(crate) fn first(&self, tid: u32, is: impl Fn(&Entry) -> bool) -> &Entry {
        let found = self.of(tid).into_iter().find(|entry| is(entry));
        found.expect("such a decision")
    }

    pub(crate) fn last_held(&self, tid: u32) -> Reservation {
        let held = self.of(tid).into_iter().rev().find_map(|entry| entry.new);
        held.expect("it had a reservation")
    }

    pub(crate) fn reserves(&self, tid: u32) -> Vec<(Instant, Reservation)> {
        let asked = self.kernel.asked.iter();
        let reserves = asked.filter_map(|&(at, asked)| match asked {
            Asked::Reserve(task, reservation) if task.tid == tid => Some((at, reservation)),
            _ => None,
        });
        reserves.collect()
    }
}

pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

pub(crate) fn play(script: Script, kernel: Kernel, settings: Settings) -> Ran {
    play_asking(script, kernel, settings, |_, _| {})
}

/// The treatment of tasks where those of this name have this weight.
pub(crate) fn weighing(name: &'static str, weight: f64) -> Box<dyn Fn(&Task) -> Treatment> {
    Box::new(move |task: &Task| Treatment {
        weight: [1.0, weight][usize::from(task.comm == name.into())],
        ..Treatment::default()
    })
}

/// What is asked of the loop, and in the first turn after which time in ms.
pub(crate) type Ask<'a> = (u64, &'a dyn Fn(&mut Controller<Kernel>, Instant));

pub(crate) fn play_asking_at(script: Script, kernel: Kernel, asks: &[Ask<'_>]) -> Ran {
    let mut asks = asks.iter().peekable();
    play_asking(script, kernel, Settings::default(), |controller, now| {
        while let Some((_, ask)) = asks.next_if(|(at, _)| now >= at_ms(*at)) {
            ask(controller, now);
        }
    })
}

/// The same; `ask` may ask something of the loop after each turn.
pub(crate) fn play_asking(
    mut script: Script,
    mut kernel: Kernel,
    settings: Settings,
    mut ask: impl FnMut(&mut Controller<Kernel>, Instant),
) -> Ran {
    script.events.sort_by_key(Event::at);
    let began = script.events.first().map_or(Instant::ZERO, Event::at);
    let clock = Clock::new(Cell::new(began));
    kernel.clock = Rc::clone(&clock);
    let mut sensor = Scripted {
        events: script.events.into(),
        strangers: script.strangers,
        clock: Rc::clone(&clock),
        processor: kernel.processor.clone(),
        waits: kernel.waits.clone(),
        raised: Rc::clone(&kernel.raised),
        ..Scripted::default()
    };
    let mut controller = Controller::new(settings, kernel);
    let mut decisions = Vec::new();
    let Ok(()) = drive(&mut sensor, &mut controller, |sensor, controller| {
        ask(controller, sensor.now());
        decisions.extend(controller.journal());
        Next::Continue
    });
    let report = controller.finish(clock.get());
    decisions.extend(controller.journal());
    let (mut journal, mut boosts, mut speeds) = (Vec::new(), Vec::new(), Vec::new());
    for decision in decisions {
        match decision {
            Decision::Reservation(entry) => journal.push(entry),
            Decision::Boost(entry) => boosts.push(entry),
            Decision::Speed(entry) => speeds.push(entry),
        }
    }
    Ran {
        journal,
        boosts,
        speeds,
        report,
        kernel: controller.into_actuator(),
        watched: sensor.watched,
        unwatched: sensor.unwatched,
    }
}
