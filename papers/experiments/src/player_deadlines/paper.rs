//! The paper's Tables 3 and 4.

use crate::statistics::Spread;

/// One line of both tables: mplayer is the heuristic, mplayer-dlex the deadlines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paper {
    pub(crate) policy: &'static str,
    pub(crate) rule: &'static str,
    /// The paper does not say which sign means that the picture lags.
    pub(crate) delay_ms: Spread,
    /// Of 812 frames.
    pub(crate) dropped: Spread,
    pub(crate) rmse: Spread,
}

const fn of(mean: f64, deviation: f64) -> Spread {
    Spread { mean, deviation }
}

#[rustfmt::skip]
pub(crate) const PAPER: [Paper; 8] = [
    Paper { policy: "other", rule: "heuristic", delay_ms: of(-83.805, 4.072), dropped: of(44.032, 4.76), rmse: of(172_100.0, 34_963.0) },
    Paper { policy: "other", rule: "deadline", delay_ms: of(0.806, 38.508), dropped: of(9.87, 1.027), rmse: of(65_297.0, 12_412.0) },
    Paper { policy: "fifo", rule: "heuristic", delay_ms: of(0.88, 1.82), dropped: of(2.64, 1.97), rmse: of(1_805.06, 7_877.44) },
    Paper { policy: "fifo", rule: "deadline", delay_ms: of(1.6694, 0.97), dropped: of(0.0, 0.0), rmse: of(0.0, 0.0) },
    Paper { policy: "rr", rule: "heuristic", delay_ms: of(1.018, 1.63), dropped: of(2.45, 1.82), rmse: of(547.942, 949.696) },
    Paper { policy: "rr", rule: "deadline", delay_ms: of(2.33, 1.105), dropped: of(0.48, 0.62), rmse: of(2_989.2, 4_369.48) },
    Paper { policy: "cbs", rule: "heuristic", delay_ms: of(-84.53, 1.49), dropped: of(45.27, 3.28), rmse: of(177_444.0, 23_894.0) },
    Paper { policy: "cbs", rule: "deadline", delay_ms: of(23.25, 3.16), dropped: of(6.39, 1.42), rmse: of(27_388.0, 5_587.80) },
];
