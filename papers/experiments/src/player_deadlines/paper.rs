//! The paper's Tables 3 and 4.

use serde::Serialize;
use serde_json::{Value, json};

use crate::spread::MeanDeviation;

/// One line of both tables: mplayer is the heuristic, mplayer-dlex the deadlines.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Paper {
    pub(crate) policy: &'static str,
    pub(crate) rule: &'static str,
    /// The paper does not say which sign means that the picture lags.
    pub(crate) delay_ms: MeanDeviation,
    /// Of 812 frames.
    pub(crate) dropped: MeanDeviation,
    pub(crate) rmse: MeanDeviation,
}

const fn of(mean: f64, deviation: f64) -> MeanDeviation {
    MeanDeviation { mean, deviation }
}

const fn line(
    policy: &'static str,
    rule: &'static str,
    delay_ms: MeanDeviation,
    dropped: MeanDeviation,
    rmse: MeanDeviation,
) -> Paper {
    Paper {
        policy,
        rule,
        delay_ms,
        dropped,
        rmse,
    }
}

#[rustfmt::skip]
pub(crate) const PAPER: [Paper; 8] = [
    line("other", "heuristic", of(-83.805, 4.072), of(44.032, 4.76), of(172_100.0, 34_963.0)),
    line("other", "deadline", of(0.806, 38.508), of(9.87, 1.027), of(65_297.0, 12_412.0)),
    line("fifo", "heuristic", of(0.88, 1.82), of(2.64, 1.97), of(1_805.06, 7_877.44)),
    line("fifo", "deadline", of(1.6694, 0.97), of(0.0, 0.0), of(0.0, 0.0)),
    line("rr", "heuristic", of(1.018, 1.63), of(2.45, 1.82), of(547.942, 949.696)),
    line("rr", "deadline", of(2.33, 1.105), of(0.48, 0.62), of(2_989.2, 4_369.48)),
    line("cbs", "heuristic", of(-84.53, 1.49), of(45.27, 3.28), of(177_444.0, 23_894.0)),
    line("cbs", "deadline", of(23.25, 3.16), of(6.39, 1.42), of(27_388.0, 5_587.80)),
];

pub(crate) fn as_json() -> Value {
    json!({
        "source": "Cucinotta and Faggioli, Handling Timing Constraints Violations, Tables 3 and 4: \
                   100 runs of 812 frames",
        "ways": PAPER,
    })
}
