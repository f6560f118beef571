//! The smallest budget with which the jobs of a recording would have missed no more than they may.
//!
//! Assumptions: (1) the reservation's period is the task's, and its begin each job's release; (2)
//! in each period the whole budget is given by the period's end and perhaps not before: what
//! admission promises, and no more; (3) a job that is not done takes from the next period's budget
//! before the next job does, as an unmodified program does its overdue work first.

use onbeat_model::Span;

/// How many of the jobs, of these demands in order, miss the end of their period with `budget` in
/// each.
pub fn missed(demands: &[Span], budget: Span) -> usize {
    let mut overdue = Span::ZERO;
    demands
        .iter()
        .filter(|&&demand| {
            let work = overdue + demand;
            overdue = work - budget;
            !overdue.is_zero()
        })
        .count()
}

/// The smallest budget with which at most the share `may_miss` of the jobs misses; none without a
/// job.
pub fn least_budget(demands: &[Span], may_miss: f64) -> Option<Span> {
    let longest = *demands.iter().max()?;
    let may_miss = (may_miss.clamp(0.0, 1.0) * demands.len() as f64).floor() as usize;
    let suffices = |ns| missed(demands, Span::from_ns(ns)) <= may_miss;
    // A larger budget never makes a job miss, and the longest job's never does.
    let (mut too_small, mut enough) = (0, longest.as_ns());
    while enough > too_small + 1 {
        let middle = too_small + (enough - too_small) / 2;
        if suffices(middle) {
            enough = middle;
        } else {
            too_small = middle;
        }
    }
    Some(Span::from_ns(enough))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spans(ns: &[u64]) -> Vec<Span> {
        ns.iter().map(|&ns| Span::from_ns(ns)).collect()
    }

    #[test]
    fn a_job_that_overruns_takes_from_those_behind_it() {
        let demands = spans(&[5, 12, 9, 9, 5, 5]);
        assert_eq!(missed(&demands, Span::from_ns(12)), 0);
        assert_eq!(missed(&demands, Span::from_ns(10)), 2);
        assert_eq!(missed(&demands, Span::from_ns(9)), 3);
        assert_eq!(least_budget(&[], 0.1), None);
    }

    proptest! {
        #![proptest_config(crate::tests::same_cases())]

        #[test]
        fn it_is_the_first_budget_that_suffices(
            ns in prop::collection::vec(1..60_u64, 1..40),
            may_miss in 0.0..1.0_f64,
        ) {
            let demands = spans(&ns);
            let allowed = may_miss * ns.len() as f64;
            let first = (1..60).map(Span::from_ns).find(|&budget| missed(&demands, budget) as f64 <= allowed);
            prop_assert_eq!(least_budget(&demands, may_miss), first);
        }
    }
}
