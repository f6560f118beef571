use onbeat_model::{Burst, Instant, Span};

#[path = "../synthetic/periodic.rs"]
pub(crate) mod periodic;

use crate::synthetic::{Random, burst};
use periodic::Periodic;

pub(crate) struct Train {
    pub(crate) kind: &'static str,
    /// Its true period in nanoseconds; none if it has no rhythm.
    pub(crate) period_ns: Option<f64>,
    pub(crate) bursts: Vec<Burst>,
}

/// A kind of thread: its name, and a thread of that kind with its true period.
type Kind = (&'static str, fn(&mut Random) -> (Option<f64>, Vec<Burst>));

const KINDS: [Kind; 19] = [
    ("timer", timer),
    ("timer with everything", everything),
    ("film with long frames", long_frames),
    ("work at a poll", polls),
    ("more work at some beats", more_at_some),
    ("groups at each other beat", display),
    ("start without rhythm", after_a_start),
    ("timer set anew", set_anew),
    ("relative sleeps", relative),
    ("busy with a clock", busy_clock),
    ("timer in ticks", timer_in_ticks),
    ("two timers", two_timers),
    ("exponential", |random| renewal(random, Random::exponential)),
    ("even", |random| {
        renewal(random, |random| random.between(0.4, 1.6))
    }),
    ("lognormal", |random| {
        renewal(random, |random| random.normal().exp())
    }),
    ("two kinds of sleeps", |random| renewal(random, two_kinds)),
    ("disk beside hogs", disk),
    ("timeouts in ticks", timeouts),
    ("waits for the tick", waits),
];

/// `count` threads of each kind, of the seeds from `first` on.
pub(crate) fn trains(first: u64, count: u64) -> Vec<Train> {
    let mut trains = Vec::new();
    for (number, (kind, make)) in (0..).zip(KINDS) {
        for seed in first..first + count {
            let mut random = Random::new(seed + 1_000_000 * (number + 1));
            let (period_ns, mut bursts) = make(&mut random);
            bursts.sort_by_key(|burst| burst.woke);
            trains.push(Train {
                kind,
                period_ns,
                bursts,
            });
        }
    }
    trains
}

fn any_period(random: &mut Random) -> f64 {
    random.ratio_between(2e6, 100e6)
}

fn timer(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let thread = Periodic {
        period_ns: any_period(random),
        releases: 10 + random.below(50) as u32,
        jitter: random.between(0.0, 0.1),
        ..Periodic::PLAIN
    };
    (Some(thread.period_ns), thread.bursts(random))
}

fn everything(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let thread = Periodic {
        period_ns: any_period(random),
        releases: 40 + random.below(40) as u32,
        jitter: random.between(0.0, 0.08),
        missing: random.between(0.0, 0.2),
        spurious: random.between(0.0, 0.3),
        wakeups: (random.even() * 4.0) as u32,
        drift: 1e-4,
    };
    (Some(thread.period_ns), thread.bursts(random))
}

/// Each fifth to twelfth frame takes much longer, and may make the next ones late.
fn long_frames(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let period = any_period(random);
    let every = 5 + (random.even() * 8.0) as u32;
    let work = random.between(0.1, 0.6) * period;
    let times = random.between(1.7, 3.0);
    let mut free = 0.0_f64;
    let bursts = (0..50 + every).map(|frame| {
        let release = 1e9 + f64::from(frame) * period + random.even() * 0.01 * period;
        let at = release.max(free);
        let this = if frame % every == 0 {
            work * times
        } else {
            work
        } * random.between(0.9, 1.1);
        free = at + this + 2e4;
        burst(at, this)
    });
    (Some(period), bursts.collect())
}

fn polls(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let period = random.ratio_between(10e6, 60e6);
    let poll = period * random.between(0.1, 0.4);
    let (mut now, mut due) = (1e9, 1e9);
    let mut bursts = Vec::new();
    while bursts.len() < 200 && now < 1e9 + 40.0 * period {
        let work = now >= due;
        let took = if work {
            0.1 * period * random.between(0.7, 1.3)
        } else {
            2e4
        };
        bursts.push(burst(now, took));
        if work {
            due += period;
        }
        now += poll + took + random.even() * 6e4;
    }
    (Some(period), bursts)
}

fn more_at_some(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let period = any_period(random);
    let every = 2 + (random.even() * 4.0) as u32;
    let bursts = (0..30 + 6 * every).map(|job| {
        let late = random.even() * 0.02 * period;
        let work = if job % every == 0 { 0.05 } else { 0.01 } * random.between(0.8, 1.2);
        burst(1e9 + f64::from(job) * period + late, work * period)
    });
    (Some(period), bursts.collect())
}

/// A display chain: two wakeups a frame, of which the second is missing in some, and comes at
/// either of two places.
fn display(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let period = random.ratio_between(4e6, 40e6);
    let (one, other) = (random.between(0.1, 0.4), random.between(0.4, 0.8));
    let mut bursts = Vec::new();
    for frame in 0..60 {
        let at = 1e9 + f64::from(frame) * period + random.even() * 0.03 * period;
        bursts.push(burst(at, 0.05 * period));
        let place = if frame % 2 == 0 { one } else { other };
        if random.chance(0.7) {
            bursts.push(burst(at + place * period, 0.03 * period));
        }
    }
    (Some(period), bursts)
}

fn after_a_start(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let period = any_period(random);
    let mut now = 1e9;
    let mut bursts = Vec::new();
    for _ in 0..40 {
        now += random.exponential() * 0.1 * period;
        bursts.push(burst(now, 0.01 * period));
    }
    bursts.extend((1..40).map(|k| burst(now + f64::from(k) * period, 0.1 * period)));
    (Some(period), bursts)
}

/// A timer that begins anew after a job that took too long.
fn set_anew(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let period = any_period(random);
    let mut now = 1e9;
    let bursts = (0..80).map(|_| {
        now += period;
        if random.chance(0.2) {
            now += random.even() * 1.5 * period;
        }
        burst(now + random.even() * 2e4, 0.2 * period)
    });
    (Some(period), bursts.collect())
}

fn relative(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let sleep = any_period(random);
    let mut now = 1e9;
    let mut bursts = Vec::new();
    for _ in 0..80 {
        let work = random.between(0.02, 0.06) * sleep;
        bursts.push(burst(now, work));
        now += work + sleep + random.even() * 5e4;
    }
    (Some((now - 1e9) / 80.0), bursts)
}

/// A clock whose jobs take 30 to 90% of the period, in bursts that wait for other programs.
fn busy_clock(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let period = random.ratio_between(8e6, 60e6);
    let bursts = (0..50).map(|job| {
        let at = 1e9 + f64::from(job) * period + random.even() * 0.02 * period;
        burst(at, random.between(0.3, 0.9) * period)
    });
    (Some(period), bursts.collect())
}

const TICKS: [f64; 4] = [1e6, 10e6 / 3.0, 4e6, 10e6];

fn a_tick(random: &mut Random) -> f64 {
    TICKS[(random.even() * 4.0) as usize]
}

/// A timer of the kernel's wheel, of 3 to 20 ticks.
fn timer_in_ticks(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let period = a_tick(random) * (3.0 + (random.even() * 18.0).floor());
    let bursts = (0..40).map(|job| {
        let at = 1e9 + f64::from(job) * period + random.exponential() * 3e4;
        burst(at, 1e5 * random.between(0.5, 2.0))
    });
    (Some(period), bursts.collect())
}

fn two_timers(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let one = random.ratio_between(5e6, 10e6);
    let other = one * random.between(2.2, 2.8);
    let mut timer = |period_ns| Periodic::for_a_second(period_ns).bursts(random);
    let bursts = [timer(one), timer(other)].concat();
    (Some(one), bursts)
}

pub(crate) fn two_kinds(random: &mut Random) -> f64 {
    if random.chance(0.5) {
        random.between(0.2, 0.6)
    } else {
        random.between(1.0, 3.0)
    }
}

fn renewal(random: &mut Random, sleep: impl Fn(&mut Random) -> f64) -> (Option<f64>, Vec<Burst>) {
    let mean = random.ratio_between(1e6, 1e8);
    let count = 10 + random.below(100) as u32;
    let mut now = 1e9;
    let bursts = (0..count).map(|_| {
        now += sleep(random) * mean;
        burst(now, 0.05 * mean * random.between(0.5, 1.5))
    });
    (None, bursts.collect())
}

fn waited(woke: f64, ran: f64, executed: f64) -> Burst {
    let ran = Instant::from_ns(ran as u64);
    Burst {
        first_ran: ran,
        blocked: ran + Span::from_ns(executed as u64),
        ..burst(woke, executed)
    }
}

fn next(tick: f64, time: f64) -> f64 {
    (time / tick).floor() * tick + tick
}

/// It writes to a disk, which takes some time; beside hogs, its turn often comes with a tick only.
fn disk(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let tick = a_tick(random);
    let (writes, at_once) = (random.ratio_between(3e4, 3e5), random.between(0.1, 0.6));
    let mut now = 1e9;
    let mut bursts = Vec::new();
    while bursts.len() < 400 && now < 2e9 {
        let ran = if random.chance(at_once) {
            now + 2e3
        } else {
            next(tick, now) + 2e4
        };
        let executed = random.ratio_between(8e3, 1e5);
        bursts.push(waited(now, ran, executed));
        let slow = if random.chance(0.05) { 20.0 } else { 1.0 };
        now = ran + executed + writes * slow * random.between(0.6, 1.6);
    }
    (None, bursts)
}

/// Timeouts of any length, which end on a tick of the kernel's timer wheel.
fn timeouts(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let tick = a_tick(random);
    let mean = tick * random.ratio_between(2.0, 12.0);
    let mut now = 1e9;
    let bursts = (0..80).map(|_| {
        now = next(tick, now + mean * random.exponential()) + random.exponential() * 1e4;
        burst(now, 5e4 * random.between(0.5, 2.0))
    });
    (None, bursts.collect())
}

/// As `timeouts`, of a few lengths only: the next tick or the one after it, most often.
fn waits(random: &mut Random) -> (Option<f64>, Vec<Burst>) {
    let tick = a_tick(random);
    let again = random.between(0.3, 0.6);
    let mut now = 1e9;
    let bursts = (0..100).map(|_| {
        now = next(tick, now) + random.exponential() * 1e4;
        while random.chance(again) {
            now += tick;
        }
        burst(now, 5e4 * random.between(0.5, 2.0))
    });
    (None, bursts.collect())
}
