//! Trains of bursts with a known rhythm, or with none: what the default analyser must say of each.

use onbeat_infer::period::{Analyser, Config};
use onbeat_model::{Burst, Instant, Rhythm, Span, TaskId};

/// A burst that woke at `woke_ns` and ran for 100 us.
fn burst(woke_ns: u64) -> Burst {
    Burst {
        task: TaskId::recorded(1),
        woke: Instant::from_ns(woke_ns),
        first_ran: Instant::from_ns(woke_ns + 5_000),
        blocked: Instant::from_ns(woke_ns + 105_000),
        executed: Span::from_us(100),
        preempted: 0,
        waker: 0,
        exhausted: false,
    }
}

fn analysed(bursts: impl IntoIterator<Item = Burst>) -> Vec<Rhythm> {
    let mut analyser = Analyser::new(Config::default());
    let mut now = Instant::ZERO;
    for burst in bursts {
        now = burst.blocked;
        analyser.hear(&burst);
    }
    analyser.analyse(now)
}

#[test]
fn a_plain_timer_is_found_with_its_period_and_phase() {
    for period_us in [
        500, 1_000, 3_505, 8_220, 20_000, 33_333, 40_000, 100_000, 999_999,
    ] {
        let period = period_us * 1_000;
        let rhythms = analysed((0..10).map(|k| burst(7_000_000_000 + k * period)));
        let rhythm = rhythms.first().expect("a rhythm");
        assert!(
            rhythm.period.ratio(Span::from_ns(period)) > 0.999_99
                && rhythm.period.ratio(Span::from_ns(period)) < 1.000_01,
            "{period_us} us: {rhythm:?}"
        );
        let (_, late) = rhythm.nearest_release(Instant::from_ns(7_000_000_000));
        assert!(late.unsigned_abs() < 1_000, "{period_us} us: {rhythm:?}");
        assert!(rhythm.confidence > 0.99);
    }
}

#[test]
fn five_bursts_are_too_few_to_tell() {
    assert!(analysed((0..5).map(|k| burst(k * 20_000_000))).is_empty());
}
