//! The distribution of demands, in groups of equal width (GRACE-OS, section 2.2).

use onbeat_model::{Demand, Span};

/// How many of the last jobs stayed within each boundary.
///
/// The range from the smallest demand b0 to the largest br is divided into r groups; of each
/// boundary bi it is known which share of jobs, F(bi), demanded no more (eq. 1).
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bounds: Vec<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    pub demand: Span,
    /// F: the share of jobs that demanded no more.
    pub within: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    pub demand: Span,
    /// F(bm): at least what was asked for.
    pub within: f64,
    /// m: which boundary it is.
    pub group: usize,
}

impl Histogram {
    /// The histogram of the window's jobs, in `groups` groups (at least one); none if there is no
    /// job.
    ///
    /// Costs `groups` binary searches: the window is kept sorted as jobs come.
    pub fn of(demand: &Demand, groups: usize) -> Option<Self> {
        let sorted = demand.sorted();
        let (&least, &most) = (sorted.first()?, sorted.last()?);
        let groups = groups.max(1) as u128;
        let range = u128::from((most - least).as_ns());
        let bounds = (0..=groups).map(|group| {
            // Whole nanoseconds, rounded up, so that the last one is the largest demand.
            let above = (range * group).div_ceil(groups);
            let demand = least + Span::from_ns(u64::try_from(above).unwrap_or(u64::MAX));
            let within = sorted.partition_point(|&job| job <= demand);
            Bound {
                demand,
                within: within as f64 / sorted.len() as f64,
            }
        });
        Some(Self {
            bounds: bounds.collect(),
        })
    }

    /// The smallest boundary that at least the share `rho` of jobs stayed within (eq. 2): the
    /// largest for a rho of one or more.
    pub fn budget(&self, rho: f64) -> Budget {
        let last = self.bounds.len() - 1;
        let group = self.bounds.iter().position(|bound| bound.within >= rho);
        let group = group.unwrap_or(last);
        let Bound { demand, within } = self.bounds[group];
        Budget {
            demand,
            within,
            group,
        }
    }

    pub fn worst(&self) -> Budget {
        self.budget(1.0)
    }

    pub fn up_to(&self, budget: &Budget) -> &[Bound] {
        self.bounds.get(..=budget.group).unwrap_or(&self.bounds)
    }
}
