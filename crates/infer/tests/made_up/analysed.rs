use onbeat_infer::period::{Analyser, AnalyserConfig};
use onbeat_model::{Burst, Instant, Rhythm, Span};

pub(crate) fn is_period(rhythm: Option<&Rhythm>, period_ns: f64) -> bool {
    rhythm.is_some_and(|r| (r.period.as_ns() as f64 / period_ns - 1.0).abs() < 0.01)
}

/// The analyser's answer on bursts, which may come in any order, with a window that holds them all.
pub(crate) fn analysed(mut bursts: Vec<Burst>) -> Vec<Rhythm> {
    bursts.sort_by_key(|burst| burst.woke);
    let mut analyser = Analyser::new(AnalyserConfig {
        window: Span::from_secs(1_000_000),
        ..AnalyserConfig::default()
    });
    for burst in &bursts {
        analyser.hear(burst);
    }
    analyser.analyse(bursts.last().map_or(Instant::ZERO, |burst| burst.blocked))
}
