//! How much jobs have to compute.

use onbeat_model::Span;
use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Film, SharedList};
use crate::Work;

/// How much each job of a task has to compute.
///
/// A draw below one nanosecond becomes one: a job of nothing would not be seen.
#[derive(Clone, Debug)]
pub enum Demand {
    Constant(Work),
    /// Evenly distributed from the least to the most.
    Uniform(Span, Span),
    /// Normally distributed, cut off at the bounds.
    Normal {
        mean: Span,
        deviation: Span,
        most: Span,
    },
    Exponential(Span),
    Frames(Frames),
    /// Frames as `experiments/workloads/srtgen.c` has them, with this mean.
    Decoder(Span, Film),
    /// The demands of the jobs of a recording, one after the other.
    Recorded {
        demands: SharedList<Work>,
        over: usize,
        /// Begin again at the end.
        repeat: bool,
    },
}

impl Demand {
    pub const fn constant(span: Span) -> Self {
        Self::Constant(Work::at_full_speed(span))
    }

    pub(super) fn next(&mut self, random: &mut Xoshiro256PlusPlus) -> Option<Work> {
        let span = match self {
            Self::Constant(work) => return Some(*work),
            Self::Uniform(least, most) => {
                Span::from_ns(random.random_range(least.as_ns()..=most.as_ns().max(least.as_ns())))
            }
            Self::Normal {
                mean,
                deviation,
                most,
            } => {
                let z: f64 = StandardNormal.sample(random);
                around(*mean, *deviation, z).min(*most)
            }
            Self::Exponential(mean) => {
                let e: f64 = Exp1.sample(random);
                mean.scale(e)
            }
            Self::Frames(frames) => frames.next(random),
            Self::Decoder(mean, film) => film.next(*mean),
            Self::Recorded {
                demands,
                over,
                repeat,
            } => {
                if *repeat && *over == demands.len() {
                    *over = 0;
                }
                let demand = *demands.get(*over)?;
                *over += 1;
                return Some(demand);
            }
        };
        Some(Work::at_full_speed(span.max(Span::from_ns(1))))
    }
}

fn around(mean: Span, deviation: Span, z: f64) -> Span {
    if z >= 0.0 {
        mean + deviation.scale(z)
    } else {
        mean - deviation.scale(-z)
    }
}

/// The frames of a film as MPEG has them: a group of pictures that repeats, each kind of picture
/// with its own demand, and scenes that are harder or easier than others.
///
/// A frame demands the mean of its kind, times what the present scene demands, times what is its
/// own; both factors are log-normal, so that a few frames demand much more than the rest.
#[derive(Clone, Debug)]
pub struct Frames {
    /// The mean demand of each frame of the group, in order.
    pub group: SharedList<Span>,
    /// The standard deviation of the logarithm of a frame's own factor.
    pub variation: f64,
    /// The same of a scene's.
    pub scene_variation: f64,
    /// After each frame a new scene begins with this probability.
    pub scene_change: f64,
    /// Where it is: the next frame of the group, and the scene's factor.
    pub at: (usize, f64),
}

impl Frames {
    pub const fn new(
        group: SharedList<Span>,
        variation: f64,
        scene_variation: f64,
        scene_change: f64,
    ) -> Self {
        Self {
            group,
            variation,
            scene_variation,
            scene_change,
            at: (0, 1.0),
        }
    }

    fn next(&mut self, random: &mut Xoshiro256PlusPlus) -> Span {
        let (frame, mut scene) = self.at;
        let mean = self.group.get(frame).copied().unwrap_or_default();
        let own = log_normal(self.variation, random);
        let demand = mean.scale(scene * own);
        if random.random::<f64>() < self.scene_change {
            scene = log_normal(self.scene_variation, random);
        }
        self.at = ((frame + 1) % self.group.len().max(1), scene);
        demand
    }
}

fn log_normal(sigma: f64, random: &mut Xoshiro256PlusPlus) -> f64 {
    let z: f64 = StandardNormal.sample(random);
    (sigma * z - sigma * sigma / 2.0).exp()
}
