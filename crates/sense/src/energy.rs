//! How much energy the processors took, by their own count (RAPL, as the kernel's powercap tells
//! it).
//!
//! A package's counter holds microjoules and begins anew at its range, after some minutes under
//! load: it is to be read more often than that. Only whole packages are counted: their parts
//! (cores, memory controllers) are in them already, and what a laptop's platform zone counts beside
//! them is no processor's.

use std::fs;
use std::path::{Path, PathBuf};

use onbeat_model::{Feature, Support};

pub const POWERCAP: &str = "/sys/class/powercap";

/// The counters of all packages, and what they came to since they were first read.
#[derive(Clone, Debug)]
pub struct Energy {
    packages: Vec<Package>,
    total_uj: u64,
}

#[derive(Clone, Debug)]
struct Package {
    counter: PathBuf,
    range_uj: u64,
    last_uj: u64,
}

impl Energy {
    /// The packages in this folder, counted from now on; none where there is none that may be read.
    pub fn open(powercap: &Path) -> Option<Self> {
        let packages: Vec<Package> = packages(powercap)
            .iter()
            .filter_map(|p| Package::open(p))
            .collect();
        (!packages.is_empty()).then_some(Self {
            packages,
            total_uj: 0,
        })
    }

    /// Microjoules since it was opened. A counter that cannot be read any more counts no further.
    pub fn read_uj(&mut self) -> u64 {
        for package in &mut self.packages {
            self.total_uj = self
                .total_uj
                .saturating_add(package.since_last().unwrap_or(0));
        }
        self.total_uj
    }
}

impl Package {
    fn open(folder: &Path) -> Option<Self> {
        let counter = folder.join("energy_uj");
        Some(Self {
            range_uj: number(&folder.join("max_energy_range_uj"))?,
            last_uj: number(&counter)?,
            counter,
        })
    }

    fn since_last(&mut self) -> Option<u64> {
        let now = number(&self.counter)?;
        let last = std::mem::replace(&mut self.last_uj, now);
        Some(match now.checked_sub(last) {
            Some(more) => more,
            None => self.range_uj.saturating_sub(last).saturating_add(now),
        })
    }
}

/// The folders of whole packages: `intel-rapl:0` and so on (AMD's have that name, too), called
/// `package-N`.
fn packages(powercap: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(powercap).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|folder| {
            let zone = folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            let is_whole = zone.is_some_and(|zone| {
                zone.starts_with("intel-rapl:") && zone.matches(':').count() == 1
            });
            let name = fs::read_to_string(folder.join("name")).unwrap_or_default();
            is_whole && name.starts_with("package-")
        })
        .collect();
    folders.sort();
    folders
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Whether energy can be read here: a line of `onbeat doctor`.
pub fn probe(powercap: &Path) -> Feature {
    let name = "energy";
    let folders = packages(powercap);
    if folders.is_empty() {
        let detail = "no RAPL: no processor here tells what energy it takes";
        let advice = "nothing to do: the report of a run with [power] has no energy";
        return Feature::new(name, Support::Partial, detail, advice);
    }
    let count = folders.len();
    let packages = if count == 1 { "package" } else { "packages" };
    match Energy::open(powercap) {
        Some(energy) if energy.packages.len() == count => {
            let detail = format!("RAPL: {count} {packages}");
            Feature::new(name, Support::Full, &detail, "")
        }
        _ => {
            let detail = format!("RAPL: {count} {packages}, and not all may be read");
            let advice = "run onbeat as root: the counters are root's";
            Feature::new(name, Support::Partial, &detail, advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of two packages, with the zones that are not to be counted.
    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new() -> Self {
            let fake = Self(tempfile::tempdir().unwrap());
            for (zone, name) in [
                ("intel-rapl", ""),
                ("intel-rapl:0", "package-0"),
                ("intel-rapl:0:0", "core"),
                ("intel-rapl:1", "package-1"),
                ("intel-rapl:2", "psys"),
                ("intel-rapl-mmio:0", "package-0"),
            ] {
                fake.write(zone, "name", name);
                fake.write(zone, "max_energy_range_uj", "1000");
                fake.write(zone, "energy_uj", "100");
            }
            fake
        }

        fn write(&self, zone: &str, file: &str, text: &str) {
            let folder = self.0.path().join(zone);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(file), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn whole_packages_are_added_up_from_when_they_were_opened() {
        let fake = Fake::new();
        let mut energy = Energy::open(fake.0.path()).unwrap();
        assert_eq!(energy.read_uj(), 0);
        for zone in [
            "intel-rapl:0",
            "intel-rapl:0:0",
            "intel-rapl:2",
            "intel-rapl-mmio:0",
        ] {
            fake.write(zone, "energy_uj", "150");
        }
        fake.write("intel-rapl:1", "energy_uj", "103");
        assert_eq!(energy.read_uj(), 53);
        assert_eq!(energy.read_uj(), 53);
    }

    #[test]
    fn a_counter_that_begins_anew_counts_on() {
        let fake = Fake::new();
        let mut energy = Energy::open(fake.0.path()).unwrap();
        fake.write("intel-rapl:0", "energy_uj", "990");
        assert_eq!(energy.read_uj(), 890);
        fake.write("intel-rapl:0", "energy_uj", "20");
        assert_eq!(energy.read_uj(), 890 + 10 + 20);
    }

    #[test]
    fn the_doctor_tells_whether_there_is_one() {
        let fake = Fake::new();
        let there = probe(fake.0.path());
        assert_eq!(
            (there.standing, there.detail.as_str()),
            (Support::Full, "RAPL: 2 packages")
        );
        fake.write("intel-rapl:1", "energy_uj", "");
        assert_eq!(probe(fake.0.path()).standing, Support::Partial);
        let nowhere = fake.0.path().join("nowhere");
        assert!(Energy::open(&nowhere).is_none());
        assert!(probe(&nowhere).detail.starts_with("no RAPL"));
    }
}
