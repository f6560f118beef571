//! `org.onbeat.Monitor1`: for observers, such as `onbeat top`. Changes nothing.

use onbeat_control::DoneJob;
use onbeat_model::Instant;
use zbus::message::Header;
use zbus::{Connection, interface};

use super::caller::Callers;
use super::wire::{BusError, Properties, described};
use crate::fault::Fault;
use crate::monitor::{MOST_THREADS, MonitorQuery};
use crate::request::{RequestSender, ServiceRequest};

/// When it ended, its response time, its execution time, and whether it missed its deadline.
type JobTuple = (u64, u64, u64, bool);

/// The object.
pub(super) struct Monitor {
    requests: RequestSender,
    callers: Callers,
}

impl Monitor {
    pub(super) const fn new(requests: RequestSender, callers: Callers) -> Self {
        Self { requests, callers }
    }
}

#[interface(name = "org.onbeat.Monitor1")]
impl Monitor {
    /// How things stand with the caller's threads, as List of org.onbeat.Manager1 tells it; root
    /// gets those of all users. Beside it: when that was, in nanoseconds; what all reservations
    /// take and may take, in CPUs; the jobs that ended after a time, of at most 256 threads, each
    /// with its end, response time, execution time in nanoseconds and whether it missed its
    /// deadline; and when one thread (0: none) woke in the last seconds. The last 64 jobs of each
    /// thread are kept.
    #[zbus(out_args("now_ns", "bandwidth", "threads", "jobs", "wakeups_ns"))]
    async fn look(
        &self,
        since_ns: u64,
        jobs_of: Vec<u32>,
        wakeups_of: u32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<
        (
            u64,
            (f64, f64),
            Vec<Properties>,
            Vec<(u32, Vec<JobTuple>)>,
            Vec<u64>,
        ),
        BusError,
    > {
        let caller = self.callers.of(&header, connection).await?;
        if jobs_of.len() > MOST_THREADS {
            return Err(BusError::from(Fault::Invalid(format!(
                "the jobs of {} threads are too many at a time: ask for at most {MOST_THREADS}",
                jobs_of.len()
            ))));
        }
        let query = MonitorQuery {
            since: Instant::from_ns(since_ns),
            jobs_of: jobs_of.into_iter().collect(),
            wakeups_of: (wakeups_of != 0).then_some(wakeups_of),
        };
        let seen = self
            .requests
            .ask(|reply| ServiceRequest::Look(caller, query, reply))
            .await?;
        let jobs = |jobs: &Vec<DoneJob>| jobs.iter().map(job).collect();
        Ok((
            seen.now.as_ns(),
            (seen.reserved.as_cpus(), seen.total.as_cpus()),
            seen.items.iter().map(described).collect(),
            seen.jobs.iter().map(|(tid, of)| (*tid, jobs(of))).collect(),
            seen.wakeups.iter().map(|at| at.as_ns()).collect(),
        ))
    }

    /// How the program goes on to which a process belongs, as far as the caller may see it: one
    /// object in JSON, with the applications, threads and decisions that "onbeat run --report"
    /// writes. Decisions and jobs are those after a time; of the jobs of each thread, the last 64.
    #[zbus(out_args("progress"))]
    async fn progress(
        &self,
        process: u32,
        since_ns: u64,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<String, BusError> {
        let caller = self.callers.of(&header, connection).await?;
        let query = (process, Instant::from_ns(since_ns));
        let progress = self
            .requests
            .ask(|reply| ServiceRequest::Progress(caller, query, reply))
            .await?;
        let text = serde_json::to_string(&progress);
        text.map_err(|error| BusError::Failed(error.to_string()))
    }
}

fn job(done: &DoneJob) -> JobTuple {
    (
        done.ended.as_ns(),
        done.response.as_ns(),
        done.executed.as_ns(),
        done.missed,
    )
}
