use crate::kernel::Kernel;
use crate::world::{Noise, Script, ms, play};
use onbeat_control::{Settings, What, Why};
use onbeat_model::{Burst, Event, Instant, Span, TaskId};

const TASK: TaskId = TaskId::recorded(7);
const BEGAN: Instant = Instant::from_ns(1_000_000_017);
const PERIOD: Span = Span::from_ns(40_000_003);

/// A thread that hardly gets to run: each job of 10 ms takes 45 to 90 ms, and `asks` says at its
/// end until when it sleeps. If that is over, it goes on at once.
fn starved(mut asks: impl FnMut(u64, Instant) -> Instant) -> Script {
    let mut script = Script::default();
    script.tracked(TASK.tid, "control", BEGAN);
    let mut noise = Noise(5);
    let mut ended = BEGAN;
    for job in 1..200 {
        let expiry = asks(job, ended);
        let woke = ended.max(expiry + Span::from_us(60));
        let blocked = woke + ms(45) + noise.up_to(ms(45));
        script.event(Event::Burst(Burst {
            task: TASK,
            woke,
            first_ran: woke,
            blocked,
            executed: ms(10),
            preempted: 9,
            waker: 0,
            exhausted: false,
            expiry: Some(expiry),
        }));
        ended = blocked;
    }
    script
}

fn locks(script: Script) -> Vec<(Span, usize)> {
    let ran = play(script, Kernel::with_cpus(2), Settings::default());
    let found = ran.of(TASK.tid).into_iter();
    found
        .filter(|entry| entry.what == What::Reserved)
        .filter_map(|entry| match entry.why {
            Why::Found { period, bursts, .. } => Some((period, bursts)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_starved_thread_that_sleeps_until_absolute_times_is_reserved_after_three_jobs() {
    let locks = locks(starved(|job, _| BEGAN + PERIOD * job));
    assert_eq!(locks, [(PERIOD, 3)]);
}

#[test]
fn a_starved_thread_that_sleeps_for_a_time_shows_no_rhythm() {
    let locks = locks(starved(|_, ended| ended + ms(2)));
    assert_eq!(locks, []);
}
