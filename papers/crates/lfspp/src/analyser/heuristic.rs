//! The peak detection heuristic of section 5.2.1, step by step.

use super::Config;

/// Steps 2 to 6 over the amplitudes of step 1: the place of the chosen frequency; none if the
/// thread is declared non-periodic (step 4).
pub(super) fn choose(amplitudes: &[f64], config: &Config) -> Option<usize> {
    let average = amplitudes.iter().sum::<f64>() / amplitudes.len().max(1) as f64;
    let candidates = peaks(amplitudes)
        .filter(|&(_, amplitude)| amplitude > 0.0 && amplitude >= config.threshold * average);
    candidates
        .map(|(bin, _)| (bin, sum_of_multiples(amplitudes, bin, config)))
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        .map(|(bin, _)| bin)
}

/// Step 2: the local maxima, ordered by frequency. The ends of the range are none; of a level top,
/// the first amplitude is.
fn peaks(amplitudes: &[f64]) -> impl Iterator<Item = (usize, f64)> + '_ {
    amplitudes
        .windows(3)
        .enumerate()
        .filter_map(|(before, window)| match window {
            [left, top, right] if left < top && top >= right => Some((before + 1, *top)),
            _ => None,
        })
}

/// Step 5: the amplitudes within epsilon of each of the first `k_max` multiples of a candidate.
fn sum_of_multiples(amplitudes: &[f64], bin: usize, config: &Config) -> f64 {
    let frequency = config.lowest_hz + bin as f64 * config.step_hz;
    let reach = config.tolerance_hz + config.step_hz * 1e-6;
    let bin_of = |hz: f64| (hz - config.lowest_hz) / config.step_hz;
    let mut sum = 0.0;
    for h in 1..=config.multiples {
        let multiple = f64::from(h) * frequency;
        let first = bin_of(multiple - reach).ceil().max(0.0) as usize;
        if first >= amplitudes.len() {
            break;
        }
        let last = (bin_of(multiple + reach).floor() as usize).min(amplitudes.len() - 1);
        sum += amplitudes
            .get(first..=last)
            .map_or(0.0, |near| near.iter().sum::<f64>());
    }
    sum
}
