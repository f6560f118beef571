//! Every metric, once. `docs/metrics.md` and the example dashboard are held against this by a test.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Gauge,
    Counter,
}

impl MetricKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub unit: &'static str,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal in $unit:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(crate) const $constant: Metric = Metric {
            name: $name,
            kind: MetricKind::$kind,
            unit: $unit,
            labels: &[$($label),*],
            help: $help,
        };)*
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD: Gauge "onbeat_build_info" in "-" ["version"]
        "Always 1; the version is a label.";
    TRACKED: Gauge "onbeat_threads_tracked" in "threads" []
        "Threads that are watched.";
    WITH_RHYTHM: Gauge "onbeat_threads_with_rhythm" in "threads" []
        "Watched threads that have a period now.";
    RESERVED: Gauge "onbeat_threads_reserved" in "threads" []
        "Threads that hold a reservation.";
    TAKEN_OVER: Gauge "onbeat_threads_taken_over" in "threads" []
        "Threads whose scheduling another program has changed; onbeat leaves them alone.";
    RESERVED_CPUS: Gauge "onbeat_reserved_cpus" in "CPUs" []
        "The sum of all reservations' bandwidths.";
    LIMIT_CPUS: Gauge "onbeat_reserved_limit_cpus" in "CPUs" []
        "What all reservations together may have.";
    LEAKED_CPUS: Gauge "onbeat_leaked_cpus" in "CPUs" []
        "What the kernel may count for tasks that left the service's reservations by themselves.";
    DECISIONS: Counter "onbeat_decisions_total" in "decisions" ["what"]
        "Reservations made, changed, released and refused, and threads taken over by others.";
    LOST: Counter "onbeat_events_lost_total" in "events" []
        "Events that the tracer had no room for.";
    JOBS: Counter "onbeat_jobs_total" in "jobs" []
        "Jobs of all threads with a period, those that have ended among them.";
    MISSED: Counter "onbeat_missed_deadlines_total" in "jobs" []
        "Of these, jobs that ended after the next one's release.";
    EXHAUSTIONS: Counter "onbeat_budget_exhaustions_total" in "times" []
        "How often a budget of a thread with a period ran out.";
    APPLICATION_THREADS: Gauge "onbeat_application_threads" in "threads" ["pid", "comm", "means"]
        "Threads that worked for the application, by the means that served them.";
    APPLICATION_RESERVED: Gauge "onbeat_application_reserved_cpus" in "CPUs" ["pid", "comm"]
        "The bandwidth reserved for the application's threads, as a mean since the first was watched.";
    APPLICATION_CPU: Counter "onbeat_application_cpu_seconds_total" in "seconds" ["pid", "comm"]
        "The CPU time that the application's threads took while they were watched.";
    APPLICATION_JOBS: Counter "onbeat_application_jobs_total" in "jobs" ["pid", "comm"]
        "Jobs of the application's threads with a period.";
    APPLICATION_MISSED: Counter "onbeat_application_missed_deadlines_total" in "jobs" ["pid", "comm"]
        "Of these, jobs that ended after the next one's release.";
    THREAD_INFO: Gauge "onbeat_thread_info" in "-" ["tid", "comm", "unit", "container", "pod", "namespace"]
        "Always 1; the labels say where the thread belongs, as far as its cgroup tells.";
    THREAD_PERIOD: Gauge "onbeat_thread_period_seconds" in "seconds" ["tid", "comm"]
        "The thread's period.";
    THREAD_CONFIDENCE: Gauge "onbeat_thread_confidence_ratio" in "ratio" ["tid", "comm"]
        "How sure the period is, from 0 to 1.";
    THREAD_RESERVED: Gauge "onbeat_thread_reserved_cpus" in "CPUs" ["tid", "comm"]
        "The bandwidth that the thread holds; 0 without a reservation.";
    THREAD_BUDGET: Gauge "onbeat_thread_budget_seconds" in "seconds" ["tid", "comm"]
        "The budget that the thread holds in each period; 0 without a reservation.";
    THREAD_CPU: Counter "onbeat_thread_cpu_seconds_total" in "seconds" ["tid", "comm"]
        "The CPU time that the thread took while it was watched.";
    THREAD_JOBS: Counter "onbeat_thread_jobs_total" in "jobs" ["tid", "comm"]
        "The thread's jobs since its period was found.";
    THREAD_MISSED: Counter "onbeat_thread_missed_deadlines_total" in "jobs" ["tid", "comm"]
        "Of these, jobs that ended after the next one's release.";
    THREAD_EXHAUSTIONS: Counter "onbeat_thread_budget_exhaustions_total" in "times" ["tid", "comm"]
        "How often the thread's budget ran out.";
    THREAD_RESPONSE: Gauge "onbeat_thread_response_time_seconds" in "seconds" ["tid", "comm", "q"]
        "The response time, from release to end, that the share q of the thread's jobs stayed within; q = 1: the longest.";
    OWN_CPU: Counter "process_cpu_seconds_total" in "seconds" []
        "onbeat's own CPU time.";
    OWN_MEMORY: Gauge "process_resident_memory_bytes" in "bytes" []
        "onbeat's own memory.";
    OWN_FILES: Gauge "process_open_fds" in "files" []
        "The files that onbeat has open.";
}
