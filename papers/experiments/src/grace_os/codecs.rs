//! The codecs' measured demands on the paper's processor: each stretched so that its 95% need what
//! the paper's did.

use std::sync::Arc;

use onbeat_model::Span;
use onbeat_sim::Work;

use crate::demands::Kept;
use crate::statistics::quantile;

pub(super) struct Codec {
    pub(super) name: &'static str,
    pub(super) period: Span,
    pub(super) jobs: Arc<[Work]>,
    /// By how much the recorded times are stretched.
    pub(super) factor: f64,
}

/// The demand that 95% of the jobs stay within, in millions of cycles: at 1000 MHz, in ms. The
/// paper gives those of mpgplay, toast and madplay (sections 4.2 and 4.3). That of tmndec follows
/// from Table 10: worst-uniform needs 1000 MHz for the four together and stochastic-uniform 800,
/// which is 10.6 to 13.6. For tmn the paper gives only the median, 250 and more of 400; ours varies
/// more, and is stretched to what fits.
const CYCLES: [(&str, f64); 5] = [
    ("mpgplay", 9.3),
    ("madplay", 0.86),
    ("tmn", 320.0),
    ("tmndec", 12.0),
    ("toast", 0.22),
];

impl Codec {
    /// All of them, in the order of the paper's Table 2.
    pub(super) fn all() -> anyhow::Result<Vec<Self>> {
        Ok(Kept::all()?.iter().map(Self::of).collect())
    }

    fn of(kept: &Kept) -> Self {
        let name = kept.paper;
        let told = CYCLES.iter().find(|(of, _)| *of == name);
        let recorded: Vec<f64> = kept.jobs.iter().map(|job| job.as_ms_f64()).collect();
        let factor = told.map_or(1.0, |(_, ms)| ms / quantile(&recorded, 0.95));
        let stretched = kept
            .jobs
            .iter()
            .map(|job| Work::at_full_speed(job.scale(factor)));
        Self {
            name,
            period: kept.period,
            jobs: stretched.collect(),
            factor,
        }
    }
}

impl Codec {
    fn sorted_ms(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self
            .jobs
            .iter()
            .map(|job| job.as_span().as_ms_f64())
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    fn mean_ms(&self) -> f64 {
        self.sorted_ms().iter().sum::<f64>() / self.jobs.len().max(1) as f64
    }

    /// Name, period, jobs, factor; mean, 95% and worst demand at 1000 MHz.
    pub(super) fn row(&self) -> [(&'static str, String); 7] {
        let all = self.sorted_ms();
        let ms = |value: f64| format!("{value:.2} ms");
        [
            ("codec", self.name.to_owned()),
            ("period", self.period.to_string()),
            ("jobs", self.jobs.len().to_string()),
            ("stretched by", format!("{:.2}", self.factor)),
            ("mean", ms(self.mean_ms())),
            ("95%", ms(quantile(&all, 0.95))),
            ("worst", ms(quantile(&all, 1.0))),
        ]
    }
}
