//! The predictor of AQuoSA's adaptive reservations (LFS++, section 7.3), which knows the coding
//! scheme: after how many jobs a group of pictures repeats.
//!
//! Each place in the group has its own window of N jobs, and the budget of the next job is (1+x)
//! times the percentile p = (N-j)/N of the jobs at its place. The paper names the idea and no
//! constants; N, j and x are those of its section 5.3. It adds nothing else: no raise of an
//! exhausted budget, and no budget before the first group is over.

use onbeat_decide::predictor::{Parameters, percentile};
use onbeat_model::{Demand, Span};

pub(crate) struct Scheme {
    parameters: Parameters,
    places: Vec<Demand>,
    next: usize,
}

impl Scheme {
    /// A scheme that repeats after `length` jobs (at least one), of which the next is the first.
    pub(crate) fn new(length: usize, parameters: Parameters) -> Self {
        Self {
            places: vec![Demand::new(parameters.window); length.max(1)],
            parameters,
            next: 0,
        }
    }

    pub(crate) fn job(&mut self, executed: Span) {
        if let Some(place) = self.places.get_mut(self.next) {
            place.record(executed);
        }
        self.next = (self.next + 1) % self.places.len();
    }

    /// The budget of the job after the last one; none as long as nothing is known of its place.
    pub(crate) fn budget(&self) -> Option<Span> {
        let predicted = percentile(self.places.get(self.next)?, &self.parameters)?;
        Some(predicted.scale(1.0 + self.parameters.spread.max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_gets_the_budget_of_its_place_in_the_group() {
        let ms = Span::from_ms;
        let mut scheme = Scheme::new(3, Parameters::default());
        for executed in [ms(9), ms(3), ms(5)] {
            assert_eq!(scheme.budget(), None, "a first group tells nothing");
            scheme.job(executed);
        }
        for _ in 0..4 {
            for executed in [ms(9), ms(3), ms(5)] {
                assert_eq!(scheme.budget(), Some(executed.scale(1.1)));
                scheme.job(executed);
            }
        }
    }
}
