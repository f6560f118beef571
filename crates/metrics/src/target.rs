//! Where metrics go.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsTarget {
    Address(SocketAddr),
    /// A file for the textfile collector of node_exporter.
    File(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTarget {
    #[error(
        "{0} is not on loopback, and other hosts must not read what runs here: write 127.0.0.1:{port} or [::1]:{port}",
        port = .0.port()
    )]
    NotLoopback(SocketAddr),
    #[error("write an address as 127.0.0.1:9464, or a file whose name ends in .prom")]
    Neither,
}

impl FromStr for MetricsTarget {
    type Err = NoTarget;

    fn from_str(text: &str) -> Result<Self, NoTarget> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return if address.ip().is_loopback() {
                Ok(Self::Address(address))
            } else {
                Err(NoTarget::NotLoopback(address))
            };
        }
        let path = PathBuf::from(text);
        if path
            .extension()
            .is_some_and(|extension| extension == "prom")
        {
            Ok(Self::File(path))
        } else {
            Err(NoTarget::Neither)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_an_address_on_loopback_or_a_file_that_the_collector_reads() {
        let target = |text: &str| text.parse::<MetricsTarget>();
        for address in ["127.0.0.1:9464", "[::1]:0"] {
            assert_eq!(
                target(address),
                Ok(MetricsTarget::Address(address.parse().unwrap()))
            );
        }
        let file = "/var/lib/prometheus/node-exporter/onbeat.prom";
        assert_eq!(target(file), Ok(MetricsTarget::File(file.into())));
        let told = target("0.0.0.0:9464").unwrap_err().to_string();
        assert!(told.contains("write 127.0.0.1:9464"), "{told}");
        for neither in ["9464", "localhost:9464", "", "metrics.txt"] {
            assert_eq!(target(neither), Err(NoTarget::Neither), "{neither}");
        }
    }
}
