//! rt-app, a program whose threads are periodic by construction, and say themselves how late they
//! were: its own logs of its jobs. (The successor of the one of LFS++, section 7.2.)

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::log::numbers;
use crate::statistics::{mean, quantile};

#[derive(Clone)]
pub(crate) struct Log {
    jobs: Vec<LoggedJob>,
}

#[derive(Clone, Copy)]
struct LoggedJob {
    released_s: f64,
    response_ms: f64,
    is_late: bool,
}

pub(crate) struct Jobs {
    /// Jobs after the time that was left out.
    pub(crate) jobs: usize,
    /// Those that ended after the next release.
    pub(crate) missed: usize,
    pub(crate) response_mean_ms: f64,
    pub(crate) response_p50_ms: f64,
    /// 99% took no longer.
    pub(crate) response_p99_ms: f64,
    pub(crate) response_max_ms: f64,
}

impl Jobs {
    pub(crate) fn miss_ratio(&self) -> f64 {
        self.missed as f64 / self.jobs.max(1) as f64
    }
}

impl Log {
    /// The log of the first instance of `task`, in the folder where rt-app was told to leave its
    /// logs.
    pub(crate) fn read(folder: &Path, task: &str) -> anyhow::Result<Self> {
        let prefix = format!("log-{task}-");
        let mut files: Vec<PathBuf> = fs::read_dir(folder)
            .with_context(|| format!("there are no logs of rt-app in {}", folder.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
            })
            .collect();
        files.sort();
        let file = files
            .first()
            .with_context(|| format!("rt-app wrote no log for {task}: what it said tells why"))?;
        let jobs: Vec<LoggedJob> = numbers(file)?.into_iter().map(job).collect();
        if jobs.is_empty() {
            bail!("rt-app ran no job of {task}; if its reservation was refused, it said so");
        }
        Ok(Self { jobs })
    }

    pub(crate) fn joined(logs: &[Self]) -> Self {
        let jobs = logs.iter().flat_map(|log| log.jobs.iter().copied());
        Self {
            jobs: jobs.collect(),
        }
    }

    pub(crate) fn jobs(&self, leave_out_s: f64) -> Jobs {
        let after = self.jobs.iter().filter(|job| job.released_s >= leave_out_s);
        let responses: Vec<f64> = after.clone().map(|job| job.response_ms).collect();
        Jobs {
            jobs: responses.len(),
            missed: after.filter(|job| job.is_late).count(),
            response_mean_ms: mean(&responses),
            response_p50_ms: quantile(&responses, 0.50),
            response_p99_ms: quantile(&responses, 0.99),
            response_max_ms: quantile(&responses, 1.0),
        }
    }

    /// When each job was released, in seconds, and its response time in ms; without those of the
    /// first `leave_out_s`.
    pub(crate) fn responses(&self, leave_out_s: f64) -> Vec<(f64, f64)> {
        let after = self.jobs.iter().filter(|job| job.released_s >= leave_out_s);
        after.map(|job| (job.released_s, job.response_ms)).collect()
    }
}

/// Columns idx, perf, run, period, start, end, rel_st, slack, c_duration, c_period, wu_lat, all
/// times in us. `rel_st` is when the job started, since the thread did; the response time counts
/// from the release, which is `slack` and the period away from the end.
fn job([_, _, _, _, _, _, released_us, slack_us, _, period_us, _]: [f64; 11]) -> LoggedJob {
    LoggedJob {
        released_s: released_us / 1e6,
        response_ms: (period_us - slack_us) / 1e3,
        is_late: slack_us < 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_the_time_that_is_left_out_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let line = |started: u64, slack: i64| {
            format!(" 0 214 450 3500 2200 2201 {started} {slack} 105 3500 9\n")
        };
        let lines = line(0, -5500) + &line(1_000_000, 2500) + &line(2_000_000, -500);
        let text = format!("# Policy : SCHED_OTHER\n#idx  perf\n{lines}");
        fs::write(folder.path().join("log-short-0.log"), text).unwrap();
        let log = Log::read(folder.path(), "short").unwrap();
        assert_eq!(log.responses(1.0), [(1.0, 1.0), (2.0, 4.0)]);
        let jobs = log.jobs(1.0);
        assert_eq!((jobs.jobs, jobs.missed), (2, 1));
        assert_eq!((jobs.response_mean_ms, jobs.response_max_ms), (2.5, 4.0));
        assert_eq!(log.jobs(9.0).miss_ratio(), 0.0);
    }
}
