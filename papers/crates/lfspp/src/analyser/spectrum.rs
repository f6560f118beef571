//! The amplitude spectrum of a thread's wakeups as Dirac pulses, kept up to date pulse by pulse
//! (LFS++, section 5.2).

use std::f64::consts::TAU;

use onbeat_model::Instant;

/// How many steps a turning pointer goes before it is set anew from sine and cosine: often enough
/// that rounding stays below 1e-13, and seldom enough that the resets cost little.
const STEPS_BETWEEN_RESETS: usize = 256;

/// How many amplitudes there are from `lowest_hz` up to `highest_hz` in steps of `step_hz`, and a
/// part of one. A little more than the quotient, so that the highest is not lost to rounding.
pub(super) fn bins(lowest_hz: f64, highest_hz: f64, step_hz: f64) -> f64 {
    (highest_hz - lowest_hz) / step_hz + 1.0 + 1e-6
}

/// The complex sums of a set of pulses at equally spaced frequencies.
#[derive(Clone, Debug)]
pub(super) struct Spectrum {
    lowest_hz: f64,
    step_hz: f64,
    /// The clock's zero for the sums; the first pulse, so that angles stay small and exact.
    origin: Option<Instant>,
    real: Vec<f64>,
    imaginary: Vec<f64>,
}

impl Spectrum {
    /// The empty spectrum at `bins` frequencies from `lowest_hz` in steps of `step_hz`.
    pub(super) fn new(lowest_hz: f64, step_hz: f64, bins: usize) -> Self {
        Self {
            lowest_hz,
            step_hz,
            origin: None,
            real: vec![0.0; bins],
            imaginary: vec![0.0; bins],
        }
    }

    pub(super) fn add(&mut self, at: Instant) {
        self.accumulate(at, 1.0);
    }

    pub(super) fn remove(&mut self, at: Instant) {
        self.accumulate(at, -1.0);
    }

    fn accumulate(&mut self, at: Instant, sign: f64) {
        let origin = *self.origin.get_or_insert(at);
        let t = at.offset_from(origin) as f64 / 1e9;
        let (step_im, step_re) = (-TAU * (self.step_hz * t).fract()).sin_cos();
        let runs = self
            .real
            .chunks_mut(STEPS_BETWEEN_RESETS)
            .zip(self.imaginary.chunks_mut(STEPS_BETWEEN_RESETS));
        for (run, (real, imaginary)) in runs.enumerate() {
            let frequency = self.lowest_hz + (run * STEPS_BETWEEN_RESETS) as f64 * self.step_hz;
            let (im, re) = (-TAU * (frequency * t).fract()).sin_cos();
            let (mut re, mut im) = (sign * re, sign * im);
            for (sum_re, sum_im) in real.iter_mut().zip(imaginary) {
                *sum_re += re;
                *sum_im += im;
                (re, im) = (re * step_re - im * step_im, re * step_im + im * step_re);
            }
        }
    }

    /// |S(f)| at every frequency.
    pub(super) fn amplitudes(&self) -> Vec<f64> {
        let sums = self.real.iter().zip(&self.imaginary);
        sums.map(|(re, im)| (re * re + im * im).sqrt()).collect()
    }

    /// Amplitude and angle of S at one frequency; zero beyond the last.
    pub(super) fn polar(&self, bin: usize) -> (f64, f64) {
        match (self.real.get(bin), self.imaginary.get(bin)) {
            (Some(re), Some(im)) => (re.hypot(*im), im.atan2(*re)),
            _ => (0.0, 0.0),
        }
    }

    /// A time at which pulses of `frequency` whose sum has this angle fall.
    pub(super) fn time_of(&self, angle: f64, frequency: f64) -> Instant {
        let origin = self.origin.unwrap_or(Instant::ZERO);
        let cycles = (-angle / TAU).rem_euclid(1.0);
        origin + onbeat_model::Span::from_secs_f64(cycles / frequency)
    }

    pub(super) fn clear(&mut self) {
        self.origin = None;
        self.real.fill(0.0);
        self.imaginary.fill(0.0);
    }
}
