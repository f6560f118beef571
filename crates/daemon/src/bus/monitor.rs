//! `org.onbeat.Monitor1`: for observers, such as `onbeat top`. Changes nothing.

use onbeat_model::Instant;
use zbus::interface;
use zbus::message::Header;

use super::caller::Callers;
use crate::fault::Fault;
use crate::request::{RequestSender, ServiceRequest};

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
    /// How the program goes on to which a process belongs (0: all programs), as far as the caller
    /// may see it: one object in JSON, with the applications, threads and decisions that "onbeat
    /// run --report" writes, and of each thread how it stands now. Decisions and jobs are those
    /// after a time, the jobs of at most 256 threads, and of each the last 64.
    #[zbus(out_args("progress"))]
    async fn progress(
        &self,
        process: u32,
        since_ns: u64,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<String, Fault> {
        let caller = self.callers.of(&header).await?;
        let process = Some(process).filter(|process| *process != 0);
        let query = (process, Instant::from_ns(since_ns));
        let progress = self
            .requests
            .ask(|reply| ServiceRequest::Progress(caller, query, reply))
            .await?;
        let text = serde_json::to_string(&progress);
        text.map_err(|error| Fault::Failed(error.to_string()))
    }
}
