//! How long jobs took, in four numbers.

use serde::{Deserialize, Serialize};

use crate::Span;

/// Quantiles; of a simulation to within 1%, but the longest is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Quantiles {
    pub p50_ns: Span,
    pub p95_ns: Span,
    pub p99_ns: Span,
    pub max_ns: Span,
}

impl Quantiles {
    /// The percentile of these, exactly (nearest rank); none if there are none.
    #[must_use]
    pub fn of(mut spans: Vec<Span>) -> Option<Self> {
        spans.sort_unstable();
        let max_ns = *spans.last()?;
        let at = |quantile: f64| {
            let rank = (quantile * spans.len() as f64).ceil() as usize;
            spans.get(rank.saturating_sub(1)).copied().unwrap_or(max_ns)
        };
        Some(Self {
            p50_ns: at(0.50),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            max_ns,
        })
    }
}
