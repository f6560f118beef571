//! `org.freedesktop.RealtimeKit1`: its clients are served as they are.
//!
//! Methods, properties, limits and errors are RealtimeKit's. Clients get more than from it: see
//! `docs/realtimekit.md`.

use onbeat_act::Priority;
use onbeat_model::Span;
use zbus::message::Header;
use zbus::{Connection, fdo, interface};

use super::caller::Callers;
use super::limits::{LimitsInForce, PriorityLimits};
use super::polkit::Action;
use crate::fault::Fault;
use crate::request::{About, RequestSender, ServiceRequest};

pub(super) const PATH: &str = "/org/freedesktop/RealtimeKit1";

pub(super) struct RealtimeKit {
    requests: RequestSender,
    callers: Callers,
    limits: LimitsInForce,
}

impl RealtimeKit {
    pub(super) const fn new(
        requests: RequestSender,
        callers: Callers,
        limits: LimitsInForce,
    ) -> Self {
        Self {
            requests,
            callers,
            limits,
        }
    }

    fn limits(&self) -> fdo::Result<PriorityLimits> {
        let refused = || {
            let text = "onbeat.toml says that clients of RealtimeKit are not served (serve in [realtimekit])";
            fdo::Error::AccessDenied(text.to_owned())
        };
        self.limits.get().ok_or_else(refused)
    }

    async fn prioritise(
        &self,
        (thread, process): (u64, Option<u64>),
        priority: Priority,
        header: &Header<'_>,
    ) -> fdo::Result<()> {
        let caller = self.callers.of(header).await.map_err(error)?;
        self.callers.charge_tracking(&caller);
        let none = |_| error(Fault::NoSuchTask(format!("there is no task {thread}")));
        let tid = u32::try_from(thread).map_err(none)?;
        let process = process.map(u32::try_from).transpose().map_err(none)?;
        let action = match priority {
            Priority::RealTime(_) => Action::MakeRealTime,
            Priority::Nice(_) => Action::MakeHighPriority,
        };
        let target = self
            .callers
            .target(&caller, (tid, process), action, header)
            .await
            .map_err(error)?;
        if let Priority::RealTime(_) = priority {
            within_rttime(target.task.pid, self.limits()?.rttime).map_err(error)?;
        }
        let about = About { caller, target };
        let request = |reply| ServiceRequest::Prioritise(about, priority, reply);
        self.requests.ask(request).await.map_err(error)
    }

    fn priority(&self, priority: u32) -> fdo::Result<Priority> {
        let most = self.limits()?.priority;
        if (1..=most).contains(&priority) {
            Ok(Priority::RealTime(priority))
        } else {
            Err(fdo::Error::AccessDenied(format!(
                "real-time priority {priority} is not granted: ask for 1 to {most} (MaxRealtimePriority)"
            )))
        }
    }

    fn nice(&self, nice: i32) -> fdo::Result<Priority> {
        let least = self.limits()?.nice;
        if (least..=19).contains(&nice) {
            Ok(Priority::Nice(nice))
        } else {
            Err(fdo::Error::AccessDenied(format!(
                "nice level {nice} is not granted: ask for {least} (MinNiceLevel) to 19"
            )))
        }
    }
}

/// RealtimeKit's methods, with its names and types.
#[interface(name = "org.freedesktop.RealtimeKit1")]
impl RealtimeKit {
    /// Gives a thread of the caller's process real-time scheduling.
    async fn make_thread_realtime(
        &self,
        thread: u64,
        priority: u32,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let priority = self.priority(priority)?;
        let process = calling_process(&header, &self.callers.connection).await?;
        self.prioritise((thread, Some(process)), priority, &header)
            .await
    }

    /// The same for a thread of another process of the caller's user, for a broker (a portal) to
    /// call.
    #[zbus(name = "MakeThreadRealtimeWithPID")]
    async fn make_thread_realtime_with_pid(
        &self,
        process: u64,
        thread: u64,
        priority: u32,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let priority = self.priority(priority)?;
        self.prioritise((thread, Some(process)), priority, &header)
            .await
    }

    /// Gives a thread of the caller's process a nice level below zero.
    async fn make_thread_high_priority(
        &self,
        thread: u64,
        priority: i32,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let priority = self.nice(priority)?;
        let process = calling_process(&header, &self.callers.connection).await?;
        self.prioritise((thread, Some(process)), priority, &header)
            .await
    }

    /// The same for a thread of another process of the caller's user.
    #[zbus(name = "MakeThreadHighPriorityWithPID")]
    async fn make_thread_high_priority_with_pid(
        &self,
        process: u64,
        thread: u64,
        priority: i32,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let priority = self.nice(priority)?;
        self.prioritise((thread, Some(process)), priority, &header)
            .await
    }

    /// Gives every thread back what it had before it asked. Root may.
    async fn reset_known(&self, #[zbus(header)] header: Header<'_>) -> fdo::Result<()> {
        let caller = self.callers.of(&header).await.map_err(error)?;
        if !caller.account.is_root() {
            let text = "only root may reset the threads of others".to_owned();
            return Err(fdo::Error::AccessDenied(text));
        }
        let reset = self.requests.ask(ServiceRequest::Reset).await;
        reset.map_err(error)
    }

    /// The same: threads that others gave real-time priority are theirs.
    async fn reset_all(&self, #[zbus(header)] header: Header<'_>) -> fdo::Result<()> {
        self.reset_known(header).await
    }

    /// RealtimeKit ends when it is not needed; a service that holds reservations does not.
    async fn exit(&self) -> fdo::Result<()> {
        Err(fdo::Error::AccessDenied(
            "onbeat serves RealtimeKit's clients: 'systemctl stop onbeat' ends it".to_owned(),
        ))
    }

    /// The longest RLIMIT_RTTIME that a client may have, in microseconds.
    #[zbus(property(emits_changed_signal = "false"), name = "RTTimeUSecMax")]
    async fn rttime_usec_max(&self) -> fdo::Result<i64> {
        Ok(in_us(self.limits()?.rttime))
    }

    /// The highest priority that is granted.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn max_realtime_priority(&self) -> fdo::Result<i32> {
        Ok(i32::try_from(self.limits()?.priority).unwrap_or(i32::MAX))
    }

    /// The lowest nice level that is granted.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn min_nice_level(&self) -> fdo::Result<i32> {
        Ok(self.limits()?.nice)
    }
}

async fn calling_process(header: &Header<'_>, connection: &Connection) -> fdo::Result<u64> {
    let denied = || fdo::Error::AccessDenied("the bus does not say who calls".to_owned());
    let sender = header.sender().ok_or_else(denied)?;
    let reply = connection
        .call_method(
            Some("org.freedesktop.DBus"),
            "/org/freedesktop/DBus",
            Some("org.freedesktop.DBus"),
            "GetConnectionUnixProcessID",
            &sender.as_str(),
        )
        .await
        .map_err(|_| denied())?;
    let pid: u32 = reply.body().deserialize().map_err(|_| denied())?;
    Ok(u64::from(pid))
}

fn in_us(span: Span) -> i64 {
    i64::try_from(span.as_ns() / 1000).unwrap_or(i64::MAX)
}

/// A real-time thread that never sleeps stops the machine; RLIMIT_RTTIME ends it before.
/// RealtimeKit demands that limit of a client, and so do we.
fn within_rttime(process: u32, most: Span) -> Result<(), Fault> {
    let most = in_us(most);
    let limit = hard_rttime_us(process);
    if limit.is_some_and(|limit| i64::try_from(limit).is_ok_and(|limit| limit <= most)) {
        return Ok(());
    }
    Err(Fault::NotPermitted(format!(
        "process {process} must limit RLIMIT_RTTIME to {most} us first (setrlimit(2))"
    )))
}

/// The hard limit of RLIMIT_RTTIME in microseconds; none if it is unlimited, or cannot be read.
fn hard_rttime_us(process: u32) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// RealtimeKit's names for what went wrong: it has two.
fn error(fault: Fault) -> fdo::Error {
    let text = fault.to_string();
    match fault {
        Fault::NotPermitted(_) => fdo::Error::AccessDenied(text),
        _ => fdo::Error::Failed(text),
    }
}
