//! Every metric, once. `docs/metrics.md` and the example dashboard are held against this by a test.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Gauge,
    Counter,
}

impl MetricKind {
    #[must_use]
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

const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Gauge,
        unit,
        labels: &[],
        help,
    }
}

const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Metric {
    Metric {
        kind: MetricKind::Counter,
        ..gauge(name, unit, help)
    }
}

const fn of_each(metric: Metric) -> Metric {
    Metric {
        labels: &["tid", "comm"],
        ..metric
    }
}

pub(crate) const BUILD: Metric = Metric {
    labels: &["version"],
    ..gauge(
        "onbeat_build_info",
        "-",
        "Always 1; the version is a label.",
    )
};
pub(crate) const TRACKED: Metric = gauge(
    "onbeat_threads_tracked",
    "threads",
    "Threads that are watched.",
);
pub(crate) const WITH_RHYTHM: Metric = gauge(
    "onbeat_threads_with_rhythm",
    "threads",
    "Watched threads that have a period now.",
);
pub(crate) const RESERVED: Metric = gauge(
    "onbeat_threads_reserved",
    "threads",
    "Threads that hold a reservation.",
);
pub(crate) const TAKEN_OVER: Metric = gauge(
    "onbeat_threads_taken_over",
    "threads",
    "Threads whose scheduling another program has changed; onbeat leaves them alone.",
);
pub(crate) const RESERVED_CPUS: Metric = gauge(
    "onbeat_reserved_cpus",
    "CPUs",
    "The sum of all reservations' bandwidths.",
);
pub(crate) const LIMIT_CPUS: Metric = gauge(
    "onbeat_reserved_limit_cpus",
    "CPUs",
    "What all reservations together may have.",
);
pub(crate) const LEAKED_CPUS: Metric = gauge(
    "onbeat_leaked_cpus",
    "CPUs",
    "What the kernel may count for tasks that left the service's reservations by themselves.",
);
pub(crate) const DECISIONS: Metric = Metric {
    labels: &["what"],
    ..counter(
        "onbeat_decisions_total",
        "decisions",
        "Reservations made, changed, released and refused, and threads taken over by others.",
    )
};
pub(crate) const LOST: Metric = counter(
    "onbeat_events_lost_total",
    "events",
    "Events that the tracer had no room for.",
);
pub(crate) const JOBS: Metric = counter(
    "onbeat_jobs_total",
    "jobs",
    "Jobs of all threads with a period, those that have ended among them.",
);
pub(crate) const MISSED: Metric = counter(
    "onbeat_missed_deadlines_total",
    "jobs",
    "Of these, jobs that ended after the next one's release.",
);
pub(crate) const EXHAUSTIONS: Metric = counter(
    "onbeat_budget_exhaustions_total",
    "times",
    "How often a budget of a thread with a period ran out.",
);
/// One series for each application with a watched thread.
const fn of_application(metric: Metric) -> Metric {
    Metric {
        labels: &["pid", "comm"],
        ..metric
    }
}

pub(crate) const APPLICATION_THREADS: Metric = Metric {
    labels: &["pid", "comm", "means"],
    ..gauge(
        "onbeat_application_threads",
        "threads",
        "Threads that worked for the application, by the means that served them.",
    )
};
pub(crate) const APPLICATION_RESERVED: Metric = of_application(gauge(
    "onbeat_application_reserved_cpus",
    "CPUs",
    "The bandwidth reserved for the application's threads, as a mean since the first was watched.",
));
pub(crate) const APPLICATION_CPU: Metric = of_application(counter(
    "onbeat_application_cpu_seconds_total",
    "seconds",
    "The CPU time that the application's threads took while they were watched.",
));
pub(crate) const APPLICATION_JOBS: Metric = of_application(counter(
    "onbeat_application_jobs_total",
    "jobs",
    "Jobs of the application's threads with a period.",
));
pub(crate) const APPLICATION_MISSED: Metric = of_application(counter(
    "onbeat_application_missed_deadlines_total",
    "jobs",
    "Of these, jobs that ended after the next one's release.",
));
pub(crate) const THREAD_INFO: Metric = Metric {
    labels: &["tid", "comm", "unit", "container", "pod", "namespace"],
    ..gauge(
        "onbeat_thread_info",
        "-",
        "Always 1; the labels say where the thread belongs, as far as its cgroup tells.",
    )
};
pub(crate) const THREAD_PERIOD: Metric = of_each(gauge(
    "onbeat_thread_period_seconds",
    "seconds",
    "The thread's period.",
));
pub(crate) const THREAD_CONFIDENCE: Metric = of_each(gauge(
    "onbeat_thread_confidence_ratio",
    "ratio",
    "How sure the period is, from 0 to 1.",
));
pub(crate) const THREAD_RESERVED: Metric = of_each(gauge(
    "onbeat_thread_reserved_cpus",
    "CPUs",
    "The bandwidth that the thread holds; 0 without a reservation.",
));
pub(crate) const THREAD_BUDGET: Metric = of_each(gauge(
    "onbeat_thread_budget_seconds",
    "seconds",
    "The budget that the thread holds in each period; 0 without a reservation.",
));
pub(crate) const THREAD_CPU: Metric = of_each(counter(
    "onbeat_thread_cpu_seconds_total",
    "seconds",
    "The CPU time that the thread took while it was watched.",
));
pub(crate) const THREAD_JOBS: Metric = of_each(counter(
    "onbeat_thread_jobs_total",
    "jobs",
    "The thread's jobs since its period was found.",
));
pub(crate) const THREAD_MISSED: Metric = of_each(counter(
    "onbeat_thread_missed_deadlines_total",
    "jobs",
    "Of these, jobs that ended after the next one's release.",
));
pub(crate) const THREAD_EXHAUSTIONS: Metric = of_each(counter(
    "onbeat_thread_budget_exhaustions_total",
    "times",
    "How often the thread's budget ran out.",
));
pub(crate) const THREAD_RESPONSE: Metric = Metric {
    labels: &["tid", "comm", "q"],
    ..gauge(
        "onbeat_thread_response_time_seconds",
        "seconds",
        "The response time, from release to end, that the share q of the thread's jobs stayed within; q = 1: the longest.",
    )
};
pub(crate) const OWN_CPU: Metric = counter(
    "process_cpu_seconds_total",
    "seconds",
    "onbeat's own CPU time.",
);
pub(crate) const OWN_MEMORY: Metric = gauge(
    "process_resident_memory_bytes",
    "bytes",
    "onbeat's own memory.",
);
pub(crate) const OWN_FILES: Metric = gauge(
    "process_open_fds",
    "files",
    "The files that onbeat has open.",
);

pub const ALL: [Metric; 31] = [
    BUILD,
    TRACKED,
    WITH_RHYTHM,
    RESERVED,
    TAKEN_OVER,
    RESERVED_CPUS,
    LIMIT_CPUS,
    LEAKED_CPUS,
    DECISIONS,
    LOST,
    JOBS,
    MISSED,
    EXHAUSTIONS,
    APPLICATION_THREADS,
    APPLICATION_RESERVED,
    APPLICATION_CPU,
    APPLICATION_JOBS,
    APPLICATION_MISSED,
    THREAD_INFO,
    THREAD_PERIOD,
    THREAD_CONFIDENCE,
    THREAD_RESERVED,
    THREAD_BUDGET,
    THREAD_CPU,
    THREAD_JOBS,
    THREAD_MISSED,
    THREAD_EXHAUSTIONS,
    THREAD_RESPONSE,
    OWN_CPU,
    OWN_MEMORY,
    OWN_FILES,
];
