//! One thread's rhythms in one window, by either method.

use onbeat_infer::period::lfspp;
use onbeat_infer::recorded;
use onbeat_model::Rhythm;

use super::windows::Stretch;
use crate::cli::Method;

/// The rhythms, strongest first.
pub(super) fn rhythms(stretch: &Stretch, method: Method) -> Vec<Rhythm> {
    match method {
        Method::Default => {
            recorded::rhythms(&stretch.bursts, stretch.to.since(stretch.from), stretch.to)
        }
        Method::Lfspp => by_spectrum(stretch),
    }
}

fn by_spectrum(stretch: &Stretch) -> Vec<Rhythm> {
    let config = lfspp::Config {
        horizon: stretch.to.since(stretch.from),
        ..lfspp::Config::default()
    };
    // Only the horizon is not the default, and any horizon is in range.
    let Ok(mut analyser) = lfspp::Analyser::new(config) else {
        return Vec::new();
    };
    for burst in &stretch.bursts {
        analyser.hear_at(burst.woke);
    }
    analyser.analyse().into_iter().collect()
}
