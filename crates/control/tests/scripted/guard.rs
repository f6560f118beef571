//! Applications that wait all the same: whether they wait longer with their means than without.
//! Those with reservations are in the simulator's tests.

use std::cell::Cell;
use std::rc::Rc;

use onbeat_control::Why;
use onbeat_model::{Instant, Span};

use crate::kernel::Kernel;
use crate::world::{Noise, Ran, Script, at_ms, ms, play, with};

const WORKER: u32 = 8;

/// A thread that wakes each 20 ms or so, and waits for a CPU for that long on average, raised
/// or not; the time follows an exponential distribution.
fn waiting(until: u64, mean: impl Fn(bool) -> Span + 'static) -> Ran {
    let mut script = Script::default();
    script.tracked(WORKER, "worker", at_ms(0));
    let mut gap = Noise(7);
    let mut woke = at_ms(0);
    while woke < at_ms(until) {
        script.burst(WORKER, woke, Span::from_us(500));
        woke = woke + ms(11) + gap.up_to(ms(20));
    }
    let noise = Cell::new(Noise(1));
    let waits = Rc::new(move |is_raised| {
        let mut next = noise.get();
        let even = next.up_to(ms(1000)).ratio(ms(1000));
        noise.set(next);
        mean(is_raised).scale(-(1.0 - even).ln()).min(ms(10))
    });
    let kernel = Kernel {
        waits: Some(waits),
        ..Kernel::with_cpus(2)
    };
    play(script, kernel, with(|it| it.means.raises = true))
}

fn went_without(ran: &Ran) -> Vec<(Instant, Why)> {
    let guards = |why: &Why| matches!(why, Why::Compares | Why::NoBetter);
    let boosts = ran.boosts.iter().filter(|entry| guards(&entry.why));
    boosts.map(|entry| (entry.at, entry.why.clone())).collect()
}

fn raised_after(ran: &Ran, at: Instant) -> Instant {
    let boosts = ran.boosts.iter();
    let mut later = boosts.filter(|entry| entry.at > at && entry.new_boost.is_some());
    later.next().expect("it is raised again").at
}

#[test]
fn an_application_that_waits_no_longer_without_means_goes_without_for_a_while() {
    let ran = waiting(60_000, |is_raised| if is_raised { ms(9) } else { ms(1) });
    let all = went_without(&ran);
    let [(compared, Why::Compares), (stopped, Why::NoBetter), ..] = all[..] else {
        panic!("{all:?}");
    };
    assert!(
        compared >= at_ms(5000) && stopped <= at_ms(10_000),
        "{all:?}"
    );
    assert!(
        raised_after(&ran, compared) < stopped,
        "it has them again, to compare"
    );
    let pause = raised_after(&ran, stopped).since(stopped);
    assert!(
        (Span::from_secs(40)..Span::from_secs(41)).contains(&pause),
        "{pause}"
    );
}
