//! Metrics of the loop and its threads for Prometheus: at an HTTP endpoint on loopback, or in a
//! file for the textfile collector of node_exporter.
//!
//! ```text
//!  journal ──▶ Metrics::decided      counts
//!  each turn ─▶ Metrics::attend ──▶ page: all metrics of now ──▶ Endpoint (on request),
//!                                                                or the file (every 5 s)
//! ```
//!
//! The loop makes the page between two turns, on request, so it is of one moment, and costs nothing
//! without a reader. `table` has each metric's name, kind, unit and help, and nothing else names
//! one.

mod endpoint;
mod file;
mod page;
mod place;
mod table;
mod target;
mod text;

use onbeat_control::{Controller, Entry, What};
use onbeat_model::{Actuator, Bandwidth, Instant};

use endpoint::Endpoint;
pub use endpoint::asks_for_metrics;
use file::MetricsFile;
pub use place::cgroup_of;
pub use table::{ALL, Metric, MetricKind};
pub use target::{MetricsTarget, NoTarget};

#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    #[error(
        "cannot serve metrics at {address}: {source}; another program may serve there: choose another port"
    )]
    Address {
        address: std::net::SocketAddr,
        source: std::io::Error,
    },
    #[error("cannot write metrics to {}: {source}; it is tried again every 5 s", path.display())]
    File {
        path: std::path::PathBuf,
        source: std::io::Error,
    },
}

#[derive(Debug)]
pub struct Metrics {
    place: OpenTarget,
    decisions: [u64; COUNTED.len()],
    leaked: Bandwidth,
}

#[derive(Debug)]
enum OpenTarget {
    Endpoint(Endpoint),
    File(MetricsFile),
}

/// What is counted, in the order of the page.
const COUNTED: [What; 5] = [
    What::Reserved,
    What::Changed,
    What::Released,
    What::Refused,
    What::TakenOver,
];

impl Metrics {
    pub fn open(target: &MetricsTarget) -> Result<Self, MetricsError> {
        let place = match target {
            MetricsTarget::Address(address) => OpenTarget::Endpoint(Endpoint::open(*address)?),
            MetricsTarget::File(path) => OpenTarget::File(MetricsFile::new(path)),
        };
        Ok(Self {
            place,
            decisions: [0; COUNTED.len()],
            leaked: Bandwidth::ZERO,
        })
    }

    /// Where they are: an address with its port, also where any port was asked for; or a file.
    pub fn place(&self) -> String {
        match &self.place {
            OpenTarget::Endpoint(endpoint) => format!("http://{}/metrics", endpoint.address()),
            OpenTarget::File(file) => file.path().display().to_string(),
        }
    }

    pub fn decided(&mut self, entry: &Entry) {
        let mut counts = COUNTED.iter().zip(&mut self.decisions);
        if let Some((_, count)) = counts.find(|(what, _)| **what == entry.what) {
            *count += 1;
        }
    }

    /// So much bandwidth the kernel may count for tasks that left their reservations.
    pub const fn set_leaked(&mut self, leaked: Bandwidth) {
        self.leaked = leaked;
    }

    /// Answers a request, or writes the file, if one is due.
    /// Fails if a file cannot be written, at the first attempt in a row that fails. Nothing is lost
    /// for good: it is tried again.
    pub fn attend<A: Actuator>(
        &mut self,
        controller: &mut Controller<A>,
        now: Instant,
    ) -> Result<(), MetricsError> {
        let (decisions, leaked) = (&self.decisions, self.leaked);
        let page = || page::of(controller, decisions, leaked, now);
        match &mut self.place {
            OpenTarget::Endpoint(endpoint) => endpoint.answer(page),
            OpenTarget::File(file) => file.write_if_due(now, page)?,
        }
        Ok(())
    }
}
