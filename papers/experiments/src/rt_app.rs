//! rt-app, a program whose threads are periodic by construction, and say themselves how late they
//! were: its own logs of its jobs. (The successor of the one of LFS++, section 7.2.)

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Serialize;

use crate::statistics::{mean, quantile};

#[derive(Clone, Debug)]
pub(crate) struct Log {
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    released_us: f64,
    response_us: f64,
    slack_us: f64,
}

#[derive(Clone, Debug, Serialize)]
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
        let rows: Vec<Row> = fs::read_to_string(file)?.lines().filter_map(row).collect();
        if rows.is_empty() {
            bail!("rt-app ran no job of {task}; if its reservation was refused, it said so");
        }
        Ok(Self { rows })
    }

    pub(crate) fn joined(logs: &[Self]) -> Self {
        let rows = logs.iter().flat_map(|log| log.rows.iter().cloned());
        Self {
            rows: rows.collect(),
        }
    }

    pub(crate) fn jobs(&self, leave_out_s: f64) -> Jobs {
        let responses: Vec<f64> = self
            .responses(leave_out_s)
            .iter()
            .map(|(_, response_ms)| *response_ms)
            .collect();
        Jobs {
            jobs: responses.len(),
            missed: self
                .after(leave_out_s)
                .filter(|row| row.slack_us < 0.0)
                .count(),
            response_mean_ms: mean(&responses),
            response_p50_ms: quantile(&responses, 0.50),
            response_p99_ms: quantile(&responses, 0.99),
            response_max_ms: quantile(&responses, 1.0),
        }
    }

    /// When each job was released, in seconds, and its response time in ms; without those of the
    /// first `leave_out_s`.
    pub(crate) fn responses(&self, leave_out_s: f64) -> Vec<(f64, f64)> {
        self.after(leave_out_s)
            .map(|row| (row.released_us / 1e6, row.response_us / 1e3))
            .collect()
    }

    fn after(&self, leave_out_s: f64) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(move |row| row.released_us >= leave_out_s * 1e6)
    }
}

/// Columns idx, perf, run, period, start, end, rel_st, slack, c_duration, c_period, wu_lat, all
/// times in us. `rel_st` is when the job started, since the thread did; the response time counts
/// from the release, which is `slack` and the period away from the end.
fn row(line: &str) -> Option<Row> {
    let cells: Vec<f64> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let &[_, _, _, _, _, _, released_us, slack_us, _, period_us, _] = cells.as_slice() else {
        return None;
    };
    Some(Row {
        released_us,
        response_us: period_us - slack_us,
        slack_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "   0    21448      450     3501      2200023441      2200026942            7298       2951       1051       3505         99";

    #[test]
    fn a_line_of_the_log_is_a_job_and_its_head_is_none() {
        let job = row(LINE).unwrap();
        assert_eq!(job.released_us, 7298.0);
        assert_eq!(job.slack_us, 2951.0);
        assert_eq!(job.response_us, 554.0);
        assert!(row("#idx     perf      run   period").is_none());
        assert!(row("# Policy : SCHED_OTHER priority : 0").is_none());
    }

    #[test]
    fn jobs_of_the_time_that_is_left_out_do_not_count() {
        let job = |released_us, response_us| Row {
            released_us,
            response_us,
            slack_us: 3505.0 - response_us,
        };
        let rows = vec![job(0.0, 9000.0), job(1e6, 1000.0), job(2e6, 4000.0)];
        let log = Log { rows };
        assert_eq!(log.responses(1.0), [(1.0, 1.0), (2.0, 4.0)]);
        let jobs = log.jobs(1.0);
        assert_eq!((jobs.jobs, jobs.missed), (2, 1));
        assert_eq!((jobs.response_mean_ms, jobs.response_max_ms), (2.5, 4.0));
        assert_eq!(log.jobs(9.0).miss_ratio(), 0.0);
    }
}
