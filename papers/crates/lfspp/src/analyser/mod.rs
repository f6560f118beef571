//! The period analyser of the LFS++ paper, as written: the reference beside the default analyser.
//!
//! "Adaptive real-time scheduling for legacy applications" (LFS++), sections 5.1 to 5.2.1. A
//! thread's wakeups are Dirac pulses; the amplitude spectrum of the pulses in an observation window
//! of length H (equation 4) has its main peaks at the multiples of the thread's frequency (equation
//! 2), and a heuristic picks the first of them.
//!
//! Known weaknesses, kept because the paper has them: whether step 4 lets random wakeups pass hangs
//! on alpha and on the number of events, without any rate of false alarms; and step 6 can prefer a
//! multiple or a part of the frequency, the more so with several wakeups a job.

mod heuristic;
mod spectrum;

use std::collections::VecDeque;

use onbeat_model::{Burst, Instant, Rhythm, Span};
use spectrum::Spectrum;

/// The parameters of sections 5.2 and 5.2.1.
///
/// The paper prints only one of their values, `k_max` = 10. The others are ours: of those tried on
/// recorded programs (`experiments/period-accuracy`) the ones that do best and still reach the 285
/// Hz of the paper's Table I.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// f_min in Hz: the lowest frequency of the spectrum.
    pub lowest_hz: f64,
    /// f_max in Hz: the highest.
    pub highest_hz: f64,
    /// delta f in Hz: the step between.
    pub step_hz: f64,
    /// H: how long an event counts.
    pub horizon: Span,
    /// alpha: a peak below this multiple of the spectrum's average is discarded (step 3).
    pub threshold: f64,
    /// k_max: how many multiples of a candidate are summed (step 5).
    pub multiples: u32,
    /// epsilon in Hz: how far from a multiple an amplitude may lie to be summed (step 5).
    pub tolerance_hz: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lowest_hz: 5.0,
            highest_hz: 400.0,
            step_hz: 0.1,
            horizon: Span::from_secs(1),
            threshold: 3.0,
            multiples: 10,
            tolerance_hz: 0.5,
        }
    }
}

impl Config {
    /// The most amplitudes a spectrum may have: 32 MB of them.
    pub const MOST_BINS: usize = 1 << 20;

    /// How many amplitudes the spectrum has: at f_min, f_min + delta f and so on up to f_max.
    /// Fails if the parameters are out of their range; the error says which.
    pub fn bins(&self) -> Result<usize, String> {
        let (lowest_hz, highest_hz, step_hz) = (self.lowest_hz, self.highest_hz, self.step_hz);
        if !(lowest_hz >= 0.0 && highest_hz > lowest_hz && highest_hz.is_finite()) {
            return Err(format!(
                "the range from {lowest_hz} Hz to {highest_hz} Hz is none: f_min must be at least \
                 0 and f_max above it"
            ));
        }
        let bins = spectrum::bins(lowest_hz, highest_hz, step_hz);
        if !(step_hz > 0.0 && bins >= 3.0 && bins <= Self::MOST_BINS as f64) {
            return Err(format!(
                "a step of {step_hz} Hz does not divide the range into 3 to {} amplitudes: choose \
                 another step or range",
                Self::MOST_BINS
            ));
        }
        if self.horizon.is_zero() {
            return Err(
                "an observation window of zero length holds no event: choose a longer one".into(),
            );
        }
        let (threshold, tolerance_hz) = (self.threshold, self.tolerance_hz);
        let sane = |x: f64| x.is_finite() && x >= 0.0;
        if !(sane(threshold) && sane(tolerance_hz) && self.multiples > 0) {
            return Err(format!(
                "alpha {threshold}, k_max {} and epsilon {tolerance_hz} Hz must be finite and not \
                 negative, and k_max at least 1",
                self.multiples
            ));
        }
        Ok(bins as usize)
    }
}

/// The reference analyser of one thread's events.
///
/// An event costs one complex product and sum per amplitude when it comes, and again when it leaves
/// the window (equation 3 counts the former).
#[derive(Clone, Debug)]
pub struct Analyser {
    config: Config,
    spectrum: Spectrum,
    window: VecDeque<Instant>,
}

impl Analyser {
    pub fn new(config: Config) -> Result<Self, String> {
        Ok(Self {
            spectrum: Spectrum::new(config.lowest_hz, config.step_hz, config.bins()?),
            config,
            window: VecDeque::new(),
        })
    }

    /// Takes in an event, and lets go those that are now more than H older. An event that is itself
    /// older than that is not taken in.
    pub fn add_event(&mut self, at: Instant) {
        let newest = self.window.back().map_or(at, |&newest| newest.max(at));
        if newest.since(at) > self.config.horizon {
            return;
        }
        let place = self.window.partition_point(|&earlier| earlier <= at);
        self.window.insert(place, at);
        self.spectrum.add(at);
        while let Some(&oldest) = self.window.front() {
            if newest.since(oldest) <= self.config.horizon {
                break;
            }
            self.window.pop_front();
            self.spectrum.remove(oldest);
        }
    }

    /// The heuristic over the window up to the newest event; none if no candidate is left at step
    /// 4.
    ///
    /// The paper gives the frequency. Phase and jitter are the mean direction and the circular
    /// standard deviation of the events at that frequency, and the confidence is that of a Rayleigh
    /// test with one trial for each 1/H of the frequency range: additions of ours.
    pub fn analyse(&self) -> Option<Rhythm> {
        let amplitudes = self.spectrum();
        let bin = heuristic::choose(&amplitudes, &self.config)?;
        let frequency = self.config.lowest_hz + bin as f64 * self.config.step_hz;
        let (amplitude, angle) = self.spectrum.polar(bin);
        let concentration = (amplitude / self.window.len() as f64).min(1.0);
        let deviation = (-2.0 * concentration.ln()).sqrt() / std::f64::consts::TAU;
        let range = self.config.highest_hz - self.config.lowest_hz;
        let trials = (range * self.config.horizon.as_secs_f64()).max(1.0);
        let alike_by_chance = trials * (-concentration * amplitude).exp();
        Some(Rhythm {
            period: Span::from_secs_f64(1.0 / frequency),
            phase: self.spectrum.time_of(angle, frequency),
            jitter: Span::from_secs_f64((deviation / frequency).min(1.0 / frequency)),
            confidence: (1.0 - alike_by_chance).clamp(0.0, 1.0),
        })
    }

    /// The amplitude spectrum of the events in the window (equation 4), from f_min in steps of
    /// delta f.
    pub fn spectrum(&self) -> Vec<f64> {
        self.spectrum.amplitudes()
    }

    pub fn events(&self) -> usize {
        self.window.len()
    }

    pub fn clear(&mut self) {
        self.spectrum.clear();
        self.window.clear();
    }
}

/// The rhythm of these bursts, with the parameters' default values: for onbeat's loop, in place of
/// its own analyser.
pub fn analyse(bursts: &mut dyn Iterator<Item = Burst>) -> Option<Rhythm> {
    rhythm(bursts, Config::default().horizon)
}

/// The rhythm of these bursts in the last `horizon`, with the other parameters' default values.
pub fn rhythm(bursts: impl Iterator<Item = Burst>, horizon: Span) -> Option<Rhythm> {
    let config = Config {
        horizon,
        ..Config::default()
    };
    let mut analyser = Analyser::new(config).ok()?;
    bursts.for_each(|burst| analyser.add_event(burst.woke));
    analyser.analyse()
}

#[cfg(test)]
mod tests;
