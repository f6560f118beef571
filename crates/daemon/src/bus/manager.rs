//! `org.onbeat.Manager1`: what onbeat offers on the bus.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use async_channel::Receiver;
use onbeat_model::{Reservation, Span};
use zbus::interface;
use zbus::message::Header;
use zbus::zvariant::OwnedValue;

use super::caller::Callers;
use super::names::NAME;
use super::polkit::Action;
use super::wire::{Properties, Times, body, children, counted, described, summed};
use crate::fault::Fault;
use crate::publisher::Change;
use crate::request::{About, Caller, RequestSender, ServiceRequest};

/// The most connections of one user that are told of changes. A person has a few clients, such as
/// `top` and a panel; 32 leave room, and bound what one change costs.
const MOST_SUBSCRIBERS: usize = 32;

pub(super) const PATH: &str = "/org/onbeat/Manager1";

type Subscribers = Arc<Mutex<HashMap<Arc<str>, Caller>>>;

pub(super) struct ManagerObject {
    requests: RequestSender,
    callers: Callers,
    subscribers: Subscribers,
}

impl ManagerObject {
    pub(super) fn new(requests: RequestSender, callers: Callers) -> Self {
        Self {
            requests,
            callers,
            subscribers: Subscribers::default(),
        }
    }

    pub(super) fn subscribers(&self) -> Subscribers {
        Arc::clone(&self.subscribers)
    }
}

/// Everything here is documented where it is introspected.
#[interface(name = "org.onbeat.Manager1")]
impl ManagerObject {
    /// Tracks a process with all its threads, or one thread of a process: those that
    /// have a rhythm get a reservation that follows it. Option "children" (b): the processes that
    /// it starts, too. Holds until Untrack, or until the caller leaves the bus.
    async fn track(
        &self,
        task: u32,
        options: HashMap<String, OwnedValue>,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Fault> {
        // polkit may take long to answer: what the caller sent is not held meanwhile.
        let children = children(options)?;
        let about = self.about(task, &header).await?;
        self.callers.charge_tracking(&about.caller);
        let request = |reply| ServiceRequest::Track(about, children, reply);
        self.requests.ask(request).await
    }

    /// No longer tracks what this connection had tracked, nor the processes that it
    /// started, but for those that it has tracked by themselves: they get back what they had
    /// before.
    async fn untrack(&self, task: u32, #[zbus(header)] header: Header<'_>) -> Result<(), Fault> {
        let about = self.about(task, &header).await?;
        let request = |reply| ServiceRequest::Untrack(about, reply);
        self.requests.ask(request).await
    }

    /// Gives a thread a reservation of just this size, in nanoseconds: runtime in each period,
    /// before the deadline. Asked again, it is changed. Holds until Release, or until the caller
    /// leaves the bus.
    async fn reserve(
        &self,
        thread: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Fault> {
        let about = self.about(thread, &header).await?;
        let [runtime, deadline, period] = [runtime_ns, deadline_ns, period_ns].map(Span::from_ns);
        let reservation = Reservation::new(runtime, deadline, period)
            .map_err(|error| Fault::Invalid(error.to_string()))?;
        let request = |reply| ServiceRequest::Reserve(about, reservation, reply);
        self.requests.ask(request).await
    }

    /// Takes back what Reserve gave: the thread gets back what it had before, or, if it is
    /// tracked, what its rhythm asks for.
    async fn release(&self, thread: u32, #[zbus(header)] header: Header<'_>) -> Result<(), Fault> {
        let about = self.about(thread, &header).await?;
        let request = |reply| ServiceRequest::Release(about, reply);
        self.requests.ask(request).await
    }

    /// This connection has an account of this number, with this runtime in each period, in
    /// nanoseconds, which the tasks that join it share: they go before others until that is used
    /// up. Asked again, it is changed; with a runtime of 0 it ends.
    async fn share(
        &self,
        account: u32,
        runtime_ns: u64,
        period_ns: u64,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Fault> {
        let caller = self.callers.of(&header).await?;
        let [runtime, period] = [runtime_ns, period_ns].map(Span::from_ns);
        let wanted = (runtime_ns > 0).then(|| Reservation::new(runtime, period, period));
        let wanted = wanted.transpose();
        let wanted = wanted.map_err(|error| Fault::Invalid(error.to_string()))?;
        let request = |reply| ServiceRequest::Share(caller, account, wanted, reply);
        self.requests.ask(request).await
    }

    /// Has a thread, or a whole process with all threads that it starts, join that account. Holds
    /// until Untrack.
    async fn join(
        &self,
        task: u32,
        account: u32,
        whole: bool,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Fault> {
        let about = self.about(task, &header).await?;
        self.callers.charge_tracking(&about.caller);
        let request = |reply| ServiceRequest::Join(about, account, whole, reply);
        self.requests.ask(request).await
    }

    /// What the tasks of that account have used of it so far, and what is left of it now.
    #[zbus(out_args("consumed_ns", "remaining_ns"))]
    async fn balance(
        &self,
        account: u32,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(u64, u64), Fault> {
        let caller = self.callers.of(&header).await?;
        let request = |reply| ServiceRequest::Balance(caller, account, reply);
        let (consumed, remaining) = self.requests.ask(request).await?;
        Ok((consumed.as_ns(), remaining.as_ns()))
    }

    /// The caller's threads that are tracked or reserved for; root gets those of all users.
    #[zbus(out_args("threads"))]
    async fn list(&self, #[zbus(header)] header: Header<'_>) -> Result<Vec<Properties>, Fault> {
        let caller = self.callers.of(&header).await?;
        let request = |reply| ServiceRequest::List(caller, reply);
        let items = self.requests.ask(request).await?;
        Ok(items.iter().map(described).collect())
    }

    /// The applications of the threads in List, each with the sums over its threads since the
    /// first of them was heard of, those that have ended among them.
    #[zbus(out_args("applications"))]
    async fn list_applications(
        &self,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<Properties>, Fault> {
        let caller = self.callers.of(&header).await?;
        let request = |reply| ServiceRequest::ListApplications(caller, reply);
        let applications = self.requests.ask(request).await?;
        Ok(applications.iter().map(summed).collect())
    }

    /// How much there is of everything, and the caller's own quota.
    #[zbus(out_args("statistics"))]
    async fn get_statistics(
        &self,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Properties, Fault> {
        let caller = self.callers.of(&header).await?;
        let request = |reply| ServiceRequest::Count(caller, reply);
        Ok(counted(&self.requests.ask(request).await?))
    }

    /// From now on this connection is sent the signal Changed, for the caller's threads; root those
    /// of all users.
    async fn subscribe(&self, #[zbus(header)] header: Header<'_>) -> Result<(), Fault> {
        let caller = self.callers.of(&header).await?;
        let mut subscribers = self
            .subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|_, other| !other.client.is_gone());
        let his = subscribers
            .values()
            .filter(|other| other.account.uid == caller.account.uid);
        if his.count() >= MOST_SUBSCRIBERS {
            return Err(Fault::OverQuota(
                "too many of your connections are subscribed to changes: unsubscribe one"
                    .to_owned(),
            ));
        }
        subscribers.insert(Arc::clone(&caller.client.name), caller);
        Ok(())
    }

    /// No longer.
    async fn unsubscribe(&self, #[zbus(header)] header: Header<'_>) -> Result<(), Fault> {
        let caller = self.callers.of(&header).await?;
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&caller.client.name);
        Ok(())
    }

    /// Reads the configuration anew. Reservations stay. If it has a mistake, the old one stays in
    /// force, and the mistake is the answer, and in the log. Else the keys are that were changed
    /// and take effect only when the service is started anew.
    #[zbus(out_args("later"))]
    async fn reload(&self, #[zbus(header)] header: Header<'_>) -> Result<Vec<&'static str>, Fault> {
        let caller = self.callers.of(&header).await?;
        let permitted = self.callers.permit(&caller, Action::Reload, &header);
        permitted.await?;
        self.requests.ask(ServiceRequest::Reload).await
    }

    /// Something was done to a thread: "reserved", "changed", "released", "refused" or
    /// "taken-over". Times are those of the old and the new reservation: runtime, deadline and
    /// period in nanoseconds, three zeroes for none. Sent to those who subscribed, as far as they
    /// keep up.
    #[zbus(signal)]
    async fn changed(
        emitter: &zbus::object_server::SignalEmitter<'_>,
        thread: u32,
        process: u32,
        name: &str,
        what: &str,
        why: &str,
        times: (Times, Times),
    ) -> zbus::Result<()>;

    /// The version of onbeat.
    #[zbus(property(emits_changed_signal = "const"))]
    async fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

impl ManagerObject {
    /// The caller, and the task that it means, if it may have something done to it.
    async fn about(&self, task: u32, header: &Header<'_>) -> Result<About, Fault> {
        let (callers, own) = (&self.callers, Action::ManageOwnTasks);
        let caller = callers.of(header).await?;
        let target = callers.target(&caller, (task, None), own, header);
        let target = target.await?;
        Ok(About { caller, target })
    }
}

/// Tells subscribers of changes, from now on, on a thread of its own. One that is gone is
/// forgotten.
pub(super) fn tell(
    connection: &zbus::blocking::Connection,
    changes: Receiver<Change>,
    subscribers: Subscribers,
) -> anyhow::Result<()> {
    let connection = connection.clone();
    let tell = move || {
        while let Ok(change) = changes.recv_blocking() {
            let mut all = subscribers.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, one| !one.client.is_gone());
            let to: Vec<Arc<str>> = all
                .values()
                .filter(|one| one.account.is_root() || one.account.uid == change.uid)
                .map(|one| Arc::clone(&one.client.name))
                .collect();
            drop(all);
            for name in to {
                if connection
                    .emit_signal(Some(&*name), PATH, NAME, "Changed", &body(&change))
                    .is_err()
                {
                    return;
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("bus-changes".to_owned())
        .spawn(tell)
        .context("cannot start a thread")?;
    Ok(())
}
