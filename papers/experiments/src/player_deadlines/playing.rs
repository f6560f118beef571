//! One playing beside the rt-apps: what the player wrote, and what rt-app did.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::film::FRAMES;
use crate::rt_app::Log;
use crate::statistics::{mean, quantile};

/// The player's statistics, in as far as they are used.
#[derive(Deserialize)]
struct PlayerStatistics {
    dropped: u64,
    delay_mean_ms: f64,
    delay_deviation_ms: f64,
    frame: Vec<FrameRecord>,
}

#[derive(Deserialize)]
struct FrameRecord {
    position_ms: f64,
    fate: String,
    overrun_ms: Option<f64>,
}

pub(crate) struct Playing {
    /// A/V delay of the frames shown, positive while the picture lags: mean and standard deviation.
    pub(crate) delay_mean_ms: f64,
    pub(crate) delay_deviation_ms: f64,
    pub(crate) dropped: u64,
    /// The sum over the dropped frames, filled in when the film has been decoded.
    pub(crate) rmse: f64,
    /// How long after its deadline a frame that was given up was left: the 95th percentile.
    pub(crate) overrun_p95_ms: Option<f64>,
    /// The slack of the rt-app with the short period, and of the other.
    pub(crate) first: Slack,
    pub(crate) second: Slack,
    pub(crate) shown: Vec<bool>,
}

/// From the end of a job to its deadline, in ms: negative if it was late.
pub(crate) struct Slack {
    pub(crate) jobs: usize,
    pub(crate) late: usize,
    pub(crate) min_ms: f64,
    pub(crate) p5_ms: f64,
    pub(crate) p25_ms: f64,
    pub(crate) mean_ms: f64,
    /// The execution time of every job.
    pub(crate) all_ms: Vec<f64>,
}

impl Playing {
    pub(crate) fn read(folder: &Path, leave_out_s: f64) -> anyhow::Result<Self> {
        let path = folder.join("player.json");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("the player left no {}", path.display()))?;
        let told: PlayerStatistics = serde_json::from_str(&text)
            .with_context(|| format!("{} is not what the player writes", path.display()))?;
        let slack = |task, period_ms| {
            let log = Log::read(folder, task)?;
            anyhow::Ok(Slack::of(&log.responses(leave_out_s), period_ms))
        };
        let overruns: Vec<f64> = told
            .frame
            .iter()
            .filter(|frame| frame.fate == "interrupted")
            .filter_map(|frame| frame.overrun_ms)
            .collect();
        Ok(Self {
            delay_mean_ms: told.delay_mean_ms,
            delay_deviation_ms: told.delay_deviation_ms,
            dropped: told.dropped,
            rmse: 0.0,
            overrun_p95_ms: (!overruns.is_empty()).then(|| quantile(&overruns, 0.95)),
            first: slack("first", 8.0)?,
            second: slack("second", 200.0)?,
            shown: in_order_of_presentation(told.frame)?,
        })
    }
}

/// Whether each frame was shown. The player tells of them in the order of decoding.
fn in_order_of_presentation(mut frames: Vec<FrameRecord>) -> anyhow::Result<Vec<bool>> {
    if frames.len() != FRAMES {
        bail!(
            "the player tells of {} frames, the film has {FRAMES}",
            frames.len()
        );
    }
    frames.sort_by(|a, b| a.position_ms.total_cmp(&b.position_ms));
    Ok(frames.iter().map(|frame| frame.fate == "shown").collect())
}

impl Slack {
    fn of(responses: &[(f64, f64)], period_ms: f64) -> Self {
        let slacks: Vec<f64> = responses.iter().map(|(_, ms)| period_ms - ms).collect();
        Self {
            jobs: slacks.len(),
            late: slacks.iter().filter(|slack| **slack < 0.0).count(),
            min_ms: slacks.iter().copied().fold(period_ms, f64::min),
            p5_ms: quantile(&slacks, 0.05),
            p25_ms: quantile(&slacks, 0.25),
            mean_ms: mean(&slacks),
            all_ms: slacks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_what_is_left_of_the_period() {
        let slack = Slack::of(&[(0.0, 3.0), (0.008, 9.5), (0.016, 4.0), (0.024, 3.5)], 8.0);
        assert_eq!((slack.jobs, slack.late), (4, 1));
        assert_eq!((slack.min_ms, slack.mean_ms), (-1.5, 3.0));
        assert_eq!((slack.p5_ms, slack.p25_ms), (-1.5, -1.5));
    }

    #[test]
    fn frames_are_put_into_the_order_of_presentation() {
        let frame = |n: usize| FrameRecord {
            position_ms: (FRAMES - n) as f64 * 40.0,
            fate: (if n == 0 { "shown" } else { "interrupted" }).into(),
            overrun_ms: None,
        };
        let shown = in_order_of_presentation((0..FRAMES).map(frame).collect()).unwrap();
        assert_eq!(shown.iter().position(|shown| *shown), Some(FRAMES - 1));
        assert!(in_order_of_presentation(vec![frame(0)]).is_err());
    }
}
