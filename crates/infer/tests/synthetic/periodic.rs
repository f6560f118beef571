use onbeat_model::Burst;

use crate::synthetic::{Random, burst};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Periodic {
    pub(crate) period_ns: f64,
    pub(crate) releases: u32,
    /// Releases are late by up to this share of the period, evenly.
    pub(crate) jitter: f64,
    /// This share of the jobs does not come.
    pub(crate) missing: f64,
    /// Wakeups for nothing, per job.
    pub(crate) spurious: f64,
    /// Wakeups of a job after the first: at set places in the period, and at random ones after
    /// them.
    pub(crate) wakeups: u32,
    /// The thread's clock runs fast by this.
    pub(crate) drift: f64,
}

impl Periodic {
    pub(crate) fn for_a_second(period_ns: f64) -> Self {
        Self {
            period_ns,
            releases: (1e9 / period_ns) as u32,
            jitter: 0.003,
            ..Self::PLAIN
        }
    }

    pub(crate) const PLAIN: Self = Self {
        period_ns: 20e6,
        releases: 50,
        jitter: 0.0,
        missing: 0.0,
        spurious: 0.0,
        wakeups: 0,
        drift: 0.0,
    };

    pub(crate) fn bursts(&self, random: &mut Random) -> Vec<Burst> {
        let start = 5e9 + random.even() * self.period_ns;
        let work = random.ratio_between(0.01, 0.1) * self.period_ns;
        let places: Vec<f64> = (0..self.wakeups)
            .map(|_| random.between(0.02, 0.4))
            .collect();
        let mut bursts = Vec::new();
        for job in 0..self.releases {
            let release = start
                + f64::from(job) * self.period_ns * (1.0 - self.drift)
                + random.even() * self.jitter * self.period_ns;
            if !random.chance(self.missing) {
                bursts.push(burst(release, work * random.between(0.5, 1.5)));
                for place in &places {
                    let late = random.exponential() * 0.01;
                    let at = release + (place + late) * self.period_ns;
                    bursts.push(burst(at, work * 0.3));
                }
            }
            if random.chance(self.spurious) {
                let at = start + (f64::from(job) + random.even()) * self.period_ns;
                bursts.push(burst(at, work * random.between(0.1, 1.0)));
            }
        }
        bursts
    }
}
