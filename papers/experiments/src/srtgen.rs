//! `srtgen`'s log of its jobs (experiments/workloads).

use std::fs;
use std::path::Path;

use anyhow::Context;

#[derive(Debug, Default)]
pub(crate) struct SrtLog {
    jobs: Vec<SrtJob>,
}

#[derive(Clone, Copy, Debug)]
struct SrtJob {
    finished: f64,
    used: f64,
    missed: bool,
}

impl SrtLog {
    /// Reads it.
    ///
    /// An error if there is none, or a line is damaged.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let job = |line: &str| {
            let fields: Vec<f64> = line.split(',').map_while(|f| f.parse().ok()).collect();
            Some(SrtJob {
                finished: *fields.get(3)?,
                used: *fields.get(5)?,
                missed: *fields.get(6)? != 0.0,
            })
        };
        let jobs: Option<Vec<SrtJob>> = text.lines().skip(1).map(job).collect();
        Some(Self { jobs: jobs? })
    }

    /// When the first job was done (ns).
    pub(crate) fn begins(&self) -> Option<f64> {
        self.jobs.first().map(|job| job.finished)
    }

    /// The share of a CPU that its jobs took which were done from `from` to `to` (ns).
    pub(crate) fn share(&self, (from, to): (f64, f64)) -> f64 {
        let used = self.within(from, to).fold(0.0, |sum, job| sum + job.used);
        used / (to - from)
    }

    /// The share of these jobs that missed their deadlines.
    pub(crate) fn missed(&self, (from, to): (f64, f64)) -> f64 {
        let (jobs, missed) = self
            .within(from, to)
            .fold((0_u32, 0_u32), |(jobs, missed), job| {
                (jobs + 1, missed + u32::from(job.missed))
            });
        f64::from(missed) / f64::from(jobs.max(1))
    }

    fn within(&self, from: f64, to: f64) -> impl Iterator<Item = &SrtJob> {
        self.jobs
            .iter()
            .filter(move |job| (from..to).contains(&job.finished))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_misses_are_those_of_the_jobs_done_in_the_time() {
        let log = "job,release_ns,started_ns,finished_ns,demand_ns,used_ns,missed,notified\n\
                   0,0,0,10,5,4,0,0\n1,10,10,20,5,6,1,1\n2,20,20,30,5,5,0,0\n";
        let log = SrtLog::parse(log).unwrap();
        assert_eq!(log.begins(), Some(10.0));
        assert_eq!(log.share((10.0, 30.0)), 0.5);
        assert_eq!(log.missed((10.0, 30.0)), 0.5);
        assert_eq!(log.missed((100.0, 130.0)), 0.0);
        assert!(SrtLog::parse("heading\n1,2,3\n").is_none());
    }
}
