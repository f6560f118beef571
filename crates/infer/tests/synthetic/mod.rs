use onbeat_model::{Burst, Instant, Span, TaskId};

/// A small generator of random numbers (xorshift64*): the tests must be the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of seeds that are alike are alike.
        for _ in 0..4 {
            random.even();
        }
        random
    }

    pub(crate) fn even(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.even()
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.even() < probability
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        (self.even() * limit as f64) as u64
    }

    /// Normal with mean zero and deviation one (Box and Muller, 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.even()).cos()
    }

    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.even()).ln()
    }

    /// A number between two others, even in its logarithm.
    pub(crate) fn ratio_between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.even())
    }
}

pub(crate) fn burst(woke_ns: f64, executed_ns: f64) -> Burst {
    let woke = Instant::from_ns(woke_ns as u64);
    let executed = Span::from_ns(executed_ns as u64);
    Burst {
        woke,
        ..Burst::alone(TaskId::recorded(1), woke + Span::from_us(5), executed)
    }
}
