//! One thread's rhythms in one window, by either method.

use onbeat_infer::recorded;
use onbeat_model::Rhythm;

use super::windows::WindowBursts;
use crate::cli::AnalysisMethod;

/// The rhythms, strongest first.
pub(super) fn rhythms(stretch: &WindowBursts, method: AnalysisMethod) -> Vec<Rhythm> {
    match method {
        AnalysisMethod::Default => {
            recorded::rhythms(&stretch.bursts, stretch.to.since(stretch.from), stretch.to)
        }
        AnalysisMethod::Lfspp => {
            let length = stretch.to.since(stretch.from);
            onbeat_lfspp::rhythm(stretch.bursts.iter().copied(), length)
                .into_iter()
                .collect()
        }
    }
}
