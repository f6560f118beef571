//! One thread's rhythms in one window, by either method.

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
        Method::Lfspp => {
            let length = stretch.to.since(stretch.from);
            onbeat_lfspp::rhythm(stretch.bursts.iter().copied(), length)
                .into_iter()
                .collect()
        }
    }
}
