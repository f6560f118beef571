//! How sure: the probability that a thread without any rhythm would look this regular.
//!
//! The statistic is the number of beats met. A beat that has nothing to do with the train meets a
//! point within a window of given width with the train's own coverage p at that width; so the
//! number met of K beats would be binomial, and the chance of at least h is at most exp(-K D(h/K ||
//! p)) (Chernoff), D being the Kullback-Leibler divergence. That is for one period, phase and
//! width. The search has tried many: about K/w periods in an e-fold (w: width over period) and 1/w
//! phases each; the chance is multiplied by as much (Bonferroni). Widths and trains are tried, too,
//! and not paid for: this measure ranks what was found, and `proof` says whether it is a period.

use super::EXACT_NS;
use super::fit;
use super::fit::FittedLine;
use super::fold;
use super::trains::Train;

/// `beats * D(met/beats || chance)`, zero if no more were met than by chance.
pub(crate) fn divergence(beats: f64, met: f64, chance: f64) -> f64 {
    let chance = chance.clamp(1e-9, 1.0 - 1e-9);
    let rate = (met / beats).min(1.0);
    if rate <= chance {
        return 0.0;
    }
    let missed = if rate < 1.0 {
        (1.0 - rate) * ((1.0 - rate) / (1.0 - chance)).ln()
    } else {
        0.0
    };
    beats * (rate * (rate / chance).ln() + missed)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// Minus the logarithm of the false-alarm probability.
    pub(super) strength: f64,
    /// Within this of their beats, the points met make it strongest.
    pub(super) reach: f64,
    pub(super) met: f64,
}

struct StretchClaim {
    period: f64,
    /// The beats of the stretch, of which some are met.
    beats: f64,
    /// The chance to meet one by accident is at least this times the width.
    floor: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Judge {
    /// The point nearest to each beat that has one within half a period.
    pub(super) nearest: Vec<(i64, f64)>,
    deviations: Vec<f64>,
}

impl Judge {
    pub(super) fn line(
        &mut self,
        train: &Train,
        line: &FittedLine,
        first: i64,
        last: i64,
    ) -> Option<Evidence> {
        // The points are too few to meet so sparse a share of these beats: nor need they be gone
        // through.
        if !line.is_tight() || (last - first) as f64 * 0.5 > train.at.len() as f64 {
            return None;
        }
        self.nearest.clear();
        self.deviations.clear();
        let half = line.period / 2.0;
        let begin = line.time(first) - half;
        let mut i = train.at.partition_point(|&t| t < begin);
        for beat in first..=last {
            let due = line.time(beat);
            let mut best: Option<f64> = None;
            while let Some(&at) = train.at.get(i).filter(|&&t| t < due + half) {
                if best.is_none_or(|b| (at - due).abs() < (b - due).abs()) {
                    best = Some(at);
                }
                i += 1;
            }
            if let Some(at) = best {
                self.nearest.push((beat, at));
                self.deviations.push((at - due).abs());
            }
        }
        let beats = (last - first + 1) as f64;
        let claim = StretchClaim {
            period: line.period,
            beats,
            floor: 0.0,
        };
        self.strongest(train, &claim, |width| {
            super::range() * beats / (width * width)
        })
    }

    /// Judges the steps from each point of `beats` to the next against `period`: the rhythm of a
    /// thread whose timer starts anew when a job took too long, so that no line holds for long.
    /// They must be more alike than those of a thread that sleeps for anything within a fifth of
    /// the period, either way.
    pub(super) fn steps(
        &mut self,
        train: &Train,
        period: f64,
        beats: &[(i64, f64)],
    ) -> Option<Evidence> {
        self.deviations.clear();
        self.deviations.extend(beats.windows(2).map(|w| {
            let count = (w[1].0 - w[0].0) as f64;
            (w[1].1 - w[0].1 - count * period).abs()
        }));
        let (first, last) = (beats.first()?, beats.last()?);
        let claim = StretchClaim {
            period,
            beats: (last.0 - first.0) as f64,
            floor: 1.0 / fit::spread(),
        };
        self.strongest(train, &claim, |width| super::range() / width)
    }

    /// The evidence at the width at which it is strongest. The chance to meet a point is that of
    /// the stretch judged: where a thread is busy, more is met by accident.
    fn strongest(
        &mut self,
        train: &Train,
        claim: &StretchClaim,
        tries: impl Fn(f64) -> f64,
    ) -> Option<Evidence> {
        // Nothing to sort where too few could do.
        let widest = claim.period / 2.0;
        let near = self.deviations.iter().filter(|&&d| d <= widest).count();
        if (near as f64) < 0.5 * claim.beats {
            return None;
        }
        self.deviations.sort_unstable_by(f64::total_cmp);
        let mut best: Option<Evidence> = None;
        let fewest = ((0.5 * claim.beats).ceil() as usize).max(3);
        let stride = self.deviations.len() / fold::finest() + 1;
        // The last of all is always among those tried.
        let offset = self.deviations.len() % stride;
        for (i, &deviation) in self.deviations.iter().enumerate() {
            let met = i + 1;
            if met < fewest || met % stride != offset {
                continue;
            }
            let met = met as f64;
            let reach = deviation.max(EXACT_NS);
            let width = (2.0 * reach / claim.period).min(1.0);
            let chance = train.coverage(2.0 * reach).max(claim.floor * width);
            let strength = divergence(claim.beats, met, chance) - tries(width).ln();
            if best.is_none_or(|b| strength > b.strength) {
                best = Some(Evidence {
                    strength,
                    reach,
                    met: met / claim.beats,
                });
            }
        }
        best
    }
}
