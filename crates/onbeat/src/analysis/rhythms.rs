//! One thread's rhythms in one window, by either method, and the jobs they make of its bursts.

use onbeat_infer::jobs::Separator;
use onbeat_infer::period::{self, lfspp};
use onbeat_model::{Burst, Rhythm};

use super::windows::Stretch;
use crate::cli::Method;

/// The rhythms, strongest first.
pub(super) fn rhythms(stretch: &Stretch, method: Method) -> Vec<Rhythm> {
    match method {
        Method::Default => by_bursts(stretch),
        Method::Lfspp => by_spectrum(stretch),
    }
}

fn by_bursts(stretch: &Stretch) -> Vec<Rhythm> {
    let mut analyser = period::Analyser::new(period::Config {
        window: stretch.to.since(stretch.from),
        capacity: stretch.bursts.len(),
        ..period::Config::default()
    });
    for burst in &stretch.bursts {
        analyser.hear(burst);
    }
    analyser.analyse(stretch.to)
}

fn by_spectrum(stretch: &Stretch) -> Vec<Rhythm> {
    let config = lfspp::Config {
        horizon: stretch.to.since(stretch.from),
        ..lfspp::Config::default()
    };
    // Of the parameters only the horizon is not the default, and any horizon is in range.
    let Ok(mut analyser) = lfspp::Analyser::new(config) else {
        return Vec::new();
    };
    for burst in &stretch.bursts {
        analyser.hear_at(burst.woke);
    }
    analyser.analyse().into_iter().collect()
}

/// How many jobs the bursts are.
pub(super) fn jobs(rhythm: Rhythm, bursts: &[Burst]) -> usize {
    let mut separator = Separator::new(rhythm);
    let ended = bursts
        .iter()
        .filter(|burst| separator.hear(burst).is_some())
        .count();
    ended + usize::from(separator.finish().is_some())
}
