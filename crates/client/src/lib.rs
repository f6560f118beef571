//! Real-time scheduling for a thread that knows its period: an audio callback, a control loop, a
//! renderer.
//!
//! ```no_run
//! // In the thread that plays 256 frames at 48 kHz and computes for at most 1 ms for them.
//! # use std::time::Duration;
//! let kept = onbeat_client::keep_audio_thread(256, 48_000, Some(Duration::from_millis(1)));
//! if let Err(error) = &kept {
//!     eprintln!("ordinary scheduling: {error}");
//! }
//! // ... plays, for as long as `kept` lives
//! ```
//!
//! onbeat's service gives the thread a reservation (`SCHED_DEADLINE`) of its period, within the
//! user's quota. Where no service runs, or where it refuses, RealtimeKit gives it a priority
//! (`SCHED_RR`), which has no bound of its own but RealtimeKit's.

use std::time::Duration;

use zbus::blocking::{Connection, Proxy, connection};

/// A bus or a service that hangs must not hold up a program's start for longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// What the thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// A reservation of the period and budget that were given.
    Reserved,
    /// onbeat's service watches it, and reserves what it needs while other programs want the CPUs.
    Watched,
    /// A real-time priority of RealtimeKit's.
    Priority(u32),
}

/// Neither the service nor RealtimeKit has changed anything.
#[derive(Debug, thiserror::Error)]
#[error("onbeat's service: {service}; RealtimeKit: {realtime_kit}")]
pub struct Error {
    pub service: Box<zbus::Error>,
    pub realtime_kit: Box<zbus::Error>,
}

/// The thread's scheduling ends when this is dropped, from whatever thread.
#[derive(Debug)]
pub struct Kept {
    means: Means,
    thread: libc::pid_t,
    /// A reservation ends with it.
    _connection: Connection,
}

impl Kept {
    #[must_use]
    pub fn means(&self) -> Means {
        self.means
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if matches!(self.means, Means::Priority(_)) {
            let ordinary = libc::sched_param { sched_priority: 0 };
            // Without the flag that RealtimeKit has set, the kernel would refuse that.
            let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
            // SAFETY: the parameter outlives the call. A thread that has ended is ESRCH.
            unsafe { libc::sched_setscheduler(self.thread, policy, &raw const ordinary) };
        }
    }
}

/// As [`keep_current_thread`], for a thread that plays or records so many frames at a time.
///
/// # Errors
///
/// As there.
pub fn keep_audio_thread(
    frames: u32,
    rate_hz: u32,
    budget: Option<Duration>,
) -> Result<Kept, Error> {
    let period = Duration::from_secs(1) * frames / rate_hz.max(1);
    keep_current_thread(period, budget)
}

/// Serves the calling thread, which computes for at most `budget` in each `period`. Without a
/// budget, the service finds out what it needs.
///
/// # Errors
///
/// If neither the service nor RealtimeKit can be reached or grants it, each with what it said.
pub fn keep_current_thread(period: Duration, budget: Option<Duration>) -> Result<Kept, Error> {
    // SAFETY: gettid takes nothing and always succeeds.
    let thread = unsafe { libc::gettid() };
    let connection = connect().map_err(|error| Error {
        service: Box::new(error.clone()),
        realtime_kit: Box::new(error),
    })?;
    let means = by_service(&connection, thread, period, budget).or_else(|service| {
        by_realtime_kit(&connection, thread).map_err(|realtime_kit| Error {
            service: Box::new(service),
            realtime_kit: Box::new(realtime_kit),
        })
    })?;
    Ok(Kept {
        means,
        thread,
        _connection: connection,
    })
}

fn connect() -> zbus::Result<Connection> {
    connection::Builder::system()?
        .method_timeout(ANSWER_WITHIN)
        .build()
}

fn by_service(
    connection: &Connection,
    thread: libc::pid_t,
    period: Duration,
    budget: Option<Duration>,
) -> zbus::Result<Means> {
    let manager = Proxy::new(
        connection,
        "org.onbeat.Manager1",
        "/org/onbeat/Manager1",
        "org.onbeat.Manager1",
    )?;
    let thread = thread.cast_unsigned();
    if let Some(budget) = budget {
        let [runtime_ns, period_ns] =
            [budget, period].map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let reservation = (thread, runtime_ns, period_ns, period_ns);
        manager.call::<_, _, ()>("Reserve", &reservation)?;
        return Ok(Means::Reserved);
    }
    let options = std::collections::HashMap::<&str, zbus::zvariant::Value>::new();
    manager.call::<_, _, ()>("Track", &(thread, options))?;
    Ok(Means::Watched)
}

fn by_realtime_kit(connection: &Connection, thread: libc::pid_t) -> zbus::Result<Means> {
    let kit = Proxy::new(
        connection,
        "org.freedesktop.RealtimeKit1",
        "/org/freedesktop/RealtimeKit1",
        "org.freedesktop.RealtimeKit1",
    )?;
    let highest: i32 = kit.get_property("MaxRealtimePriority")?;
    let longest_us: i64 = kit.get_property("RTTimeUSecMax")?;
    let priority = highest.clamp(1, 10).cast_unsigned();
    limit_real_time(longest_us.cast_unsigned());
    let thread = u64::from(thread.cast_unsigned());
    kit.call::<_, _, ()>("MakeThreadRealtime", &(thread, priority))?;
    Ok(Means::Priority(priority))
}

/// RealtimeKit gives nothing to a process that may compute for longer than this without a pause.
fn limit_real_time(longest_us: u64) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is valid for writing, and read only after that.
    unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &raw mut limit) };
    limit.rlim_cur = limit.rlim_cur.min(longest_us);
    limit.rlim_max = limit.rlim_max.min(longest_us);
    // SAFETY: the limit outlives the call. If it fails, RealtimeKit refuses, and says so.
    unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) };
}
