//! One policy domain of cpufreq: a group of CPUs that have their speed in common, as a folder of
//! files.
//!
//! Nothing that stands in these files is trusted: a driver may leave any of them out, or put words
//! where numbers are due. Anything else is an error that names the file and its text.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use onbeat_model::{Ladder, Speed};
use serde::{Deserialize, Serialize};

/// Between speeds that a driver does not list, in kHz: powernowd's.
const STEP_KHZ: u64 = 100_000;
const MOST_STEPS: u64 = 64;

/// Of a governor of the kernel.
const NAME_BYTES: usize = 15;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree(PathBuf);

impl Default for Tree {
    fn default() -> Self {
        Self(PathBuf::from("/sys/devices/system/cpu/cpufreq"))
    }
}

impl Tree {
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self(root.to_owned())
    }

    #[must_use]
    pub fn domain(&self, number: u32) -> Domain {
        Domain::new(&self.0, number)
    }

    #[must_use]
    pub fn domains(&self) -> Vec<Domain> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_prefix("policy")?.parse().ok()
        });
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        let domains = numbers.into_iter().map(|number| self.domain(number));
        // The folder of a domain whose CPUs are all offline is empty.
        domains.filter(|d| d.present().is_ok()).collect()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DomainError {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    #[error("{path} says '{text}', which is no {wanted}: the speed of these CPUs is left alone")]
    Odd {
        path: PathBuf,
        text: String,
        wanted: &'static str,
    },
    #[error("cannot write {value} to {path}: {error}")]
    Write {
        path: PathBuf,
        value: String,
        error: io::Error,
    },
}

/// Everything of a domain that onbeat may change, and the governor that gives it its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainSettings {
    /// The governor, which chooses between the limits. onbeat never changes that.
    pub governor: String,
    #[serde(rename = "min_khz")]
    pub min: Speed,
    #[serde(rename = "max_khz")]
    pub max: Speed,
    /// `scaling_setspeed`, if the governor leaves the choice to user space.
    #[serde(rename = "setspeed_khz")]
    pub setspeed: Option<Speed>,
}

impl DomainSettings {
    /// Whether each value is that of one of the settings `through` which the domain went: what it
    /// may tell while a change, which is several writes, is on its way or was cut off.
    pub(crate) fn are_on_the_way<'a>(
        &self,
        through: impl Iterator<Item = &'a Self> + Clone,
    ) -> bool {
        through
            .clone()
            .any(|settings| settings.governor == self.governor)
            && through.clone().any(|settings| settings.min == self.min)
            && through.clone().any(|settings| settings.max == self.max)
            && through
                .clone()
                .any(|settings| settings.setspeed == self.setspeed)
    }

    /// These, but with the one `speed`: as the userspace governor's choice, or with any other
    /// governor as the only speed between the limits.
    #[must_use]
    pub fn with_speed(&self, speed: Speed) -> Self {
        if self.setspeed.is_some() {
            Self {
                setspeed: Some(speed),
                ..self.clone()
            }
        } else {
            Self {
                min: speed,
                max: speed,
                ..self.clone()
            }
        }
    }
}

impl fmt::Display for DomainSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            governor,
            min,
            max,
            setspeed,
        } = self;
        match setspeed {
            Some(speed) => write!(f, "{governor} at {speed}"),
            None => write!(f, "{governor} from {min} to {max}"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Domain {
    number: u32,
    folder: PathBuf,
}

impl Domain {
    pub(super) fn new(root: &Path, number: u32) -> Self {
        let folder = root.join(format!("policy{number}"));
        Self { number, folder }
    }

    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    #[must_use]
    pub fn exists(&self) -> bool {
        self.folder.is_dir()
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    fn read(&self, file: &str) -> Result<String, DomainError> {
        let path = self.path(file);
        match fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(error) => Err(DomainError::Read { path, error }),
        }
    }

    fn odd(&self, file: &str, text: &str, wanted: &'static str) -> DomainError {
        DomainError::Odd {
            path: self.path(file),
            text: text.chars().take(80).collect(),
            wanted,
        }
    }

    fn speed(&self, file: &str) -> Result<Speed, DomainError> {
        let text = self.read(file)?;
        parse_speed(&text).ok_or_else(|| self.odd(file, &text, "frequency in kHz"))
    }

    #[must_use]
    pub fn driver(&self) -> String {
        self.read("scaling_driver").unwrap_or_default()
    }

    pub fn present(&self) -> Result<Speed, DomainError> {
        self.speed("scaling_cur_freq")
    }

    #[must_use]
    pub fn may_be_set(&self) -> bool {
        let open = |file| fs::OpenOptions::new().write(true).open(self.path(file));
        open("scaling_min_freq").is_ok() && open("scaling_max_freq").is_ok()
    }

    pub fn settings(&self) -> Result<DomainSettings, DomainError> {
        let governor = self.read("scaling_governor")?;
        let is_name = !governor.is_empty() && governor.len() <= NAME_BYTES;
        if !is_name || !governor.chars().all(|c| c.is_ascii_graphic()) {
            return Err(self.odd("scaling_governor", &governor, "governor"));
        }
        let setspeed = (governor == "userspace").then(|| self.speed("scaling_setspeed"));
        Ok(DomainSettings {
            governor,
            min: self.speed("scaling_min_freq")?,
            max: self.speed("scaling_max_freq")?,
            setspeed: setspeed.transpose()?,
        })
    }

    /// The speeds between its present limits: those that the driver lists, or steps of 100 MHz.
    pub fn ladder(&self) -> Result<Ladder, DomainError> {
        let settings = self.settings()?;
        let allowed = settings.min..=settings.max;
        let speeds = match self.read("scaling_available_frequencies") {
            Ok(text) if !text.is_empty() => {
                let file = "scaling_available_frequencies";
                let words = text.split_ascii_whitespace();
                let speeds: Option<Vec<Speed>> = words.map(parse_speed).collect();
                speeds.ok_or_else(|| self.odd(file, &text, "list of frequencies in kHz"))?
            }
            _ => stepped(
                self.speed("cpuinfo_min_freq")?,
                self.speed("cpuinfo_max_freq")?,
            ),
        };
        Ladder::new(speeds.into_iter().filter(|speed| allowed.contains(speed))).ok_or_else(|| {
            let text = format!("{} to {}", settings.min, settings.max);
            self.odd("scaling_min_freq", &text, "range with a frequency in it")
        })
    }

    /// Sets the speed as `settings` say: the userspace governor's choice, or both limits, of which
    /// the one first that makes room for the other.
    ///
    /// The kernel may put limits in force only some time later: until then its files tell the old
    /// ones.
    /// Fails if the kernel refuses; then some of it may be set.
    pub(crate) fn set(
        &self,
        settings: &DomainSettings,
        now: &DomainSettings,
    ) -> Result<(), DomainError> {
        if let Some(speed) = settings.setspeed {
            return self.write("scaling_setspeed", speed);
        }
        let max = ("scaling_max_freq", settings.max);
        let min = ("scaling_min_freq", settings.min);
        let rises = settings.max >= now.max;
        for (file, speed) in if rises { [max, min] } else { [min, max] } {
            self.write(file, speed)?;
        }
        Ok(())
    }

    fn write(&self, file: &str, speed: Speed) -> Result<(), DomainError> {
        let (path, value) = (self.path(file), speed.as_khz().to_string());
        // Opened and written, never made: what is not there is not there to be set.
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()))
            .map_err(|error| DomainError::Write { path, value, error })
    }
}

fn parse_speed(text: &str) -> Option<Speed> {
    Speed::from_khz(text.parse().ok()?)
}

/// Both ends, and steps from the highest down in between.
fn stepped(lowest: Speed, highest: Speed) -> Vec<Speed> {
    let (low, high) = (lowest.as_khz(), highest.as_khz());
    let step = STEP_KHZ.max(high.saturating_sub(low) / MOST_STEPS);
    let steps = (0..MOST_STEPS).map(|n| high.saturating_sub(n.saturating_mul(step)));
    let speeds = steps.take_while(|&khz| khz > low).chain([low]);
    speeds.filter_map(Speed::from_khz).collect()
}
