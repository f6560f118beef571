//! The straight line from beat number to time, by least squares: its slope is the period, its start
//! the phase, the scatter around it the jitter.

/// A line `phase + period * beat`, in nanoseconds after the train's origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) period: f64,
    pub(super) phase: f64,
    /// The standard deviation of the points around the line.
    pub(super) jitter: f64,
}

impl Line {
    /// The time of a beat.
    pub(super) fn time(&self, beat: i64) -> f64 {
        self.phase + self.period * beat as f64
    }
}

/// The line of least squares through `beats`; none for fewer than three, or if it does not rise.
pub(super) fn line(beats: &[(i64, f64)]) -> Option<Line> {
    let n = beats.len() as f64;
    if n < 3.0 {
        return None;
    }
    let mean_beat = beats.iter().map(|b| b.0 as f64).sum::<f64>() / n;
    let mean_time = beats.iter().map(|b| b.1).sum::<f64>() / n;
    let (mut square, mut product) = (0.0, 0.0);
    for &(beat, time) in beats {
        let x = beat as f64 - mean_beat;
        square += x * x;
        product += x * (time - mean_time);
    }
    if square <= 0.0 || product <= 0.0 {
        return None;
    }
    let period = product / square;
    let phase = mean_time - period * mean_beat;
    let scatter: f64 = beats
        .iter()
        .map(|&(beat, time)| (time - phase - period * beat as f64).powi(2))
        .sum();
    Some(Line {
        period,
        phase,
        jitter: (scatter / (n - 2.0)).sqrt(),
    })
}
