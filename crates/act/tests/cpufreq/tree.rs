use std::fs;
use std::path::PathBuf;

use onbeat_act::cpufreq::{Cpufreq, CpufreqError, Tree};
use onbeat_act::restore::StateFile;
use onbeat_model::Speed;
use tempfile::TempDir;

pub(crate) fn mhz(mhz: u64) -> Speed {
    Speed::from_khz(mhz * 1000).unwrap()
}

pub(crate) struct Fake(TempDir);

impl Fake {
    /// The laptop of GRACE-OS, under a governor of the kernel.
    pub(crate) fn laptop() -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        fake.add(0, "1000000 800000 700000 600000 500000 300000 ");
        fake
    }

    /// A domain with these speeds, the highest first.
    pub(crate) fn add(&self, number: u32, speeds: &str) {
        let mut words = speeds.split_whitespace();
        let highest = words.next().unwrap();
        let lowest = words.next_back().unwrap_or(highest);
        fs::create_dir_all(self.path(number, "")).unwrap();
        for (file, text) in [
            ("scaling_driver", "acpi-cpufreq"),
            ("scaling_governor", "schedutil"),
            ("scaling_available_frequencies", speeds),
            ("cpuinfo_min_freq", lowest),
            ("cpuinfo_max_freq", highest),
            ("scaling_min_freq", lowest),
            ("scaling_max_freq", highest),
            ("scaling_cur_freq", highest),
            ("scaling_setspeed", "<unsupported>"),
        ] {
            self.write(number, file, text);
        }
    }

    pub(crate) fn path(&self, number: u32, file: &str) -> PathBuf {
        let folder = self
            .0
            .path()
            .join("cpufreq")
            .join(format!("policy{number}"));
        folder.join(file)
    }

    pub(crate) fn write(&self, number: u32, file: &str, text: &str) {
        fs::write(self.path(number, file), format!("{text}\n")).unwrap();
    }

    pub(crate) fn read(&self, number: u32, file: &str) -> String {
        let text = fs::read_to_string(self.path(number, file)).unwrap();
        text.trim().to_owned()
    }

    pub(crate) fn limits(&self, number: u32) -> [u64; 2] {
        ["scaling_min_freq", "scaling_max_freq"]
            .map(|file| self.read(number, file).parse::<u64>().unwrap() / 1000)
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::at(&self.0.path().join("cpufreq"))
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }

    pub(crate) fn state_files(&self) -> usize {
        fs::read_dir(self.state()).map_or(0, Iterator::count)
    }

    pub(crate) fn cpufreq(&self) -> Result<Cpufreq, CpufreqError> {
        let state_file = StateFile::create(&self.state()).unwrap();
        Cpufreq::new(&self.tree(), state_file)
    }
}
