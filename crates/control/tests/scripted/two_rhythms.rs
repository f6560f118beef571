//! A thread with two timers (LFS++, section 8: several periods in one thread) gets one reservation
//! that serves both.

use onbeat_control::{Settings, What, Why};
use onbeat_model::Span;

use crate::kernel::Kernel;
use crate::world::{Script, at_ms, ms, play};

const TIMERS: [(Span, Span); 2] = [
    (Span::from_ms(20), Span::from_us(2000)),
    (Span::from_ns(33_366_700), Span::from_us(4000)),
];

/// All due jobs are done in one burst, until the thread has nothing left to do.
fn both_timers(script: &mut Script) {
    let end = at_ms(10_000);
    let mut jobs: Vec<_> = TIMERS
        .iter()
        .flat_map(|&(period, executed)| (0..500).map(move |n| (at_ms(50) + period * n, executed)))
        .filter(|&(release, _)| release < end)
        .collect();
    jobs.sort();
    let mut burst = None;
    for (release, executed) in jobs {
        burst = match burst {
            Some((woke, so_far)) if release < woke + so_far => Some((woke, so_far + executed)),
            Some((woke, so_far)) => {
                script.burst(7, woke, so_far);
                Some((release, executed))
            }
            None => Some((release, executed)),
        };
    }
}

#[test]
fn two_timers_in_one_thread_get_one_reservation_with_the_runtime_of_both() {
    let mut script = Script::default();
    script.tracked(7, "two", at_ms(0));
    both_timers(&mut script);
    let ran = play(script, Kernel::with_cpus(2), Settings::default());
    let settled: Vec<_> = ran
        .of(7)
        .into_iter()
        .filter(|entry| entry.at > at_ms(3000) && entry.why != Why::Finished)
        .collect();
    assert!(
        settled.iter().all(|entry| entry.what == What::Changed),
        "{settled:?}"
    );
    let held = ran.last_held(7);
    let (of_one, of_other) = (TIMERS[0].1, TIMERS[1].1);
    assert!(held.runtime() >= of_one + of_other, "{held:?}");
    assert!(held.runtime() <= (of_one + of_other) * 2, "{held:?}");
    let fits = |period: Span| held.period().abs_diff(period) < ms(1);
    assert!(TIMERS.iter().any(|&(period, _)| fits(period)), "{held:?}");
}
