//! The amplitude spectrum of a thread's wakeups (LFS++, eq. 4), as far as a screen shows it.

use onbeat_infer::period::spectrum;
use onbeat_model::{Instant, Span};

const MULTIPLES: f64 = 5.5;
/// It goes so far if there is no period yet, in Hz.
const WITHOUT_PERIOD_HZ: f64 = 100.0;
/// And never farther.
const HIGHEST_HZ: f64 = 5_000.0;
const LOWEST_HZ: f64 = 0.5;
/// The most amplitudes that it has: what it costs is this times the wakeups.
const MOST_BINS: f64 = 4_000.0;
const MOST_WAKEUPS: usize = 512;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ThreadSpectrum {
    pub(crate) tid: u32,
    pub(crate) wakeups: usize,
    pub(crate) at: Instant,
    pub(crate) highest_hz: f64,
    amplitudes: Vec<f64>,
}

impl ThreadSpectrum {
    pub(crate) fn of(tid: u32, wakeups: &[Instant], period: Option<Span>, at: Instant) -> Self {
        let last = wakeups.get(wakeups.len().saturating_sub(MOST_WAKEUPS)..);
        let wakeups = last.unwrap_or_default();
        let frequency = period.filter(|period| !period.is_zero());
        let highest_hz = frequency.map_or(WITHOUT_PERIOD_HZ, |period| {
            (MULTIPLES / period.as_secs_f64()).clamp(LOWEST_HZ * 4.0, HIGHEST_HZ)
        });
        // A peak is as wide as the inverse of the time that was watched: two amplitudes for each.
        let watched = match (wakeups.first(), wakeups.last()) {
            (Some(first), Some(last)) => last.since(*first).as_secs_f64().max(0.1),
            _ => 0.1,
        };
        let bins = ((highest_hz - LOWEST_HZ) * watched * 2.0).clamp(16.0, MOST_BINS);
        let step_hz = (highest_hz - LOWEST_HZ) / bins;
        let mut sums = spectrum::Spectrum::new(LOWEST_HZ, step_hz, bins as usize);
        for &wakeup in wakeups {
            sums.add(wakeup);
        }
        Self {
            tid,
            wakeups: wakeups.len(),
            at,
            highest_hz,
            amplitudes: sums.amplitudes(),
        }
    }

    /// The highest amplitude within each of `columns` equal parts of the range, as a share of all
    /// wakeups.
    pub(crate) fn columns(&self, columns: usize) -> Vec<f64> {
        let bins = self.amplitudes.len();
        let all = self.wakeups.max(1) as f64;
        (0..columns)
            .map(|column| {
                let from = column * bins / columns.max(1);
                let to = ((column + 1) * bins / columns.max(1)).max(from + 1);
                let part = self.amplitudes.get(from..to.min(bins)).unwrap_or_default();
                part.iter().copied().fold(0.0, f64::max) / all
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_stands_out_at_its_frequency_and_its_multiples() {
        let period = Span::from_ms(40);
        let wakeups: Vec<Instant> = (0..250)
            .map(|beat| Instant::ZERO + Span::from_secs(1000) + period * beat)
            .collect();
        let spectrum = ThreadSpectrum::of(1, &wakeups, Some(period), Instant::ZERO);
        let columns = spectrum.columns(55);
        let hz_each = spectrum.highest_hz / 55.0;
        for (column, &height) in columns.iter().enumerate() {
            let (from, to) = (column as f64 * hz_each, (column + 1) as f64 * hz_each);
            let nearest = ((from + to) / 2.0 / 25.0).round() * 25.0;
            if nearest > 0.0 && (from + 0.8..to - 0.8).contains(&nearest) {
                assert!(height > 0.8, "{nearest} Hz: {height}");
            } else if (nearest - from).abs().min((nearest - to).abs()) > 2.0 {
                assert!(height < 0.3, "{from}-{to} Hz: {height}");
            }
        }
    }

    #[test]
    fn nothing_heard_is_flat_and_any_width_has_its_columns() {
        let spectrum = ThreadSpectrum::of(1, &[], Some(Span::ZERO), Instant::ZERO);
        for columns in [0, 1, 7, 5000] {
            let heights = spectrum.columns(columns);
            assert_eq!(heights.len(), columns);
            assert!(heights.iter().all(|&height| height == 0.0));
        }
    }
}
