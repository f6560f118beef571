//! The configuration: `/etc/onbeat/onbeat.toml`, and what lies in `onbeat.d` beside it, in the
//! order of the names; what is said later counts. packaging/onbeat.toml is an example with every
//! key.
//!
//! It is parsed without any look at the machine; that users and groups of these names exist is
//! found out when it is put in force.

mod file;
mod units;
mod values;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use onbeat_decide::predictor::{Kind, Parameters};
use onbeat_decide::supervisor::Limits as Shares;
use onbeat_model::{Bandwidth, Span};

use crate::bus;
use crate::keeper::Trial;
use crate::person;
use crate::quota::{Quota, Quotas};
use crate::rules::{Rule, Rules};
use file::{File, RulesFile};

/// Where the configuration is.
pub const PATH: &str = "/etc/onbeat/onbeat.toml";

/// What is wrong with a configuration: where, what, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}; name another file with --config")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in it is not right.
    #[error("{path}:{line}: {problem}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line in it, from 1.
        line: usize,
        /// What is wrong, and what to write instead.
        problem: String,
    },
}

/// Everything that is configured.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The most that all reservations together may take, as a share of all CPUs.
    pub total: f64,
    /// The most that one thread may take.
    pub per_task: Bandwidth,
    /// What each thread with a rhythm gets even if not everything fits.
    pub minimum: Bandwidth,
    /// How a thread's next budget is predicted.
    pub predictor: Kind,
    /// With which parameters.
    pub parameters: Parameters,
    /// Quotas, as far as they need no look at the database of users.
    quota: Quota,
    users: Vec<(Place, String, Quota)>,
    groups: Vec<(Place, String, Quota)>,
    /// What clients of RealtimeKit get; none if they are not served.
    pub realtimekit: Option<bus::Limits>,
    /// What a thread that asked for real-time priority gets at first.
    pub trial: Trial,
    /// Which programs are tracked by themselves.
    pub rules: Rules,
    /// Whether threads of the same user that work for those that are kept are found and kept with
    /// them.
    pub pipelines: bool,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    line: usize,
}

impl Place {
    fn wrong(&self, problem: String) -> ConfigError {
        ConfigError::Wrong {
            path: self.path.clone(),
            line: self.line,
            problem,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            total: Shares::DEFAULT_TOTAL,
            per_task: Bandwidth::from_cpus(Shares::DEFAULT_PER_TASK),
            minimum: Bandwidth::from_cpus(0.01),
            predictor: Kind::default(),
            parameters: Parameters::default(),
            quota: Quota::default(),
            users: Vec::new(),
            groups: Vec::new(),
            realtimekit: Some(bus::Limits::default()),
            trial: Trial {
                share: Bandwidth::from_cpus(0.5),
                period: Span::from_ms(10),
            },
            rules: Rules::default(),
            pipelines: true,
        }
    }
}

impl Config {
    /// The keys that are others than in `started`, with which the service was started, and take
    /// effect when it is started again.
    #[must_use]
    pub fn later_than(&self, started: &Self) -> Vec<&'static str> {
        let pipelines = (self.pipelines != started.pipelines).then_some("pipelines");
        pipelines.into_iter().collect()
    }

    /// The quotas, with users and groups looked up.
    ///
    /// # Errors
    /// If one of them does not exist.
    pub fn quotas(&self) -> Result<Quotas, ConfigError> {
        let look_up =
            |all: &[(Place, String, Quota)], kind: &str, find: fn(&str) -> Option<u32>| {
                all.iter()
                    .map(|(place, name, quota)| {
                        let number = find(name).ok_or_else(|| {
                            place.wrong(format!(
                                "there is no {kind} {name}: mend the name, or remove the quota"
                            ))
                        })?;
                        Ok((number, *quota))
                    })
                    .collect::<Result<HashMap<u32, Quota>, ConfigError>>()
            };
        Ok(Quotas {
            default: self.quota,
            users: look_up(&self.users, "user", person::user_named)?,
            groups: look_up(&self.groups, "group", person::group_named)?,
        })
    }
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> ConfigError {
    let path = path.to_owned();
    move |source| ConfigError::Unreadable { path, source }
}

/// Where everything is that makes up the configuration.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The file; none for the one at its usual place, which need not be there.
    pub config: Option<PathBuf>,
    /// The folder of the rules for well-known programs.
    pub rules: PathBuf,
    /// The folders of systemd's files, each with one for `system` and one for `user`: what a later
    /// one has replaces a file of the same name in an earlier one.
    pub units: Vec<PathBuf>,
}

impl Sources {
    /// These, or what stands for them: a file at its usual place, and rules where `make install`
    /// has put them with the binary that runs.
    #[must_use]
    pub fn new(config: Option<PathBuf>, rules: Option<PathBuf>) -> Self {
        let beside = || {
            let binary = std::env::current_exe().unwrap_or_default();
            let prefix = binary.parent().and_then(Path::parent);
            prefix
                .unwrap_or(Path::new("/usr"))
                .join("share/onbeat/rules.d")
        };
        Self {
            config,
            rules: rules.unwrap_or_else(beside),
            units: UNITS.map(PathBuf::from).to_vec(),
        }
    }
}

/// See systemd.unit(5), "Unit File Load Path", the last one first. Folders in users' homes are not
/// among them: the service reads no file that a user can write.
const UNITS: [&str; 4] = [
    "/usr/lib/systemd",
    "/usr/local/lib/systemd",
    "/run/systemd",
    "/etc/systemd",
];

/// Reads the file and what is in the folder beside it that is called like it, ending in `.d`; then
/// what drop-ins of units say; then the rules for well-known programs, unless they are switched
/// off.
///
/// # Errors
/// If something cannot be read or is not right.
pub fn read(sources: &Sources) -> Result<Config, ConfigError> {
    let (path, must_exist) = match &sources.config {
        Some(path) => (path.as_path(), true),
        None => (Path::new(PATH), false),
    };
    let mut files = Vec::new();
    match fs::read_to_string(path) {
        Ok(text) => files.push((path.to_owned(), text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => {}
        Err(error) => return Err(unreadable(path)(error)),
    }
    files.extend(texts_in(&path.with_extension("d"), "toml")?);
    let mut config = parse(&files)?;
    config.rules.list.extend(units::rules(&sources.units)?);
    if config.rules.shipped {
        for (path, text) in texts_in(&sources.rules, "toml")? {
            config.rules.list.extend(shipped_rules(&path, &text)?);
        }
    }
    Ok(config)
}

/// What is in a folder; nothing if it is not there.
fn entries_in(folder: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    entries.map_err(unreadable(folder))
}

/// The files of a folder whose names end in `.extension`, in the order of their names. A folder
/// that is not there has none.
fn texts_in(folder: &Path, extension: &str) -> Result<Vec<(PathBuf, String)>, ConfigError> {
    let mut parts = entries_in(folder)?;
    parts.retain(|path| path.extension().is_some_and(|own| own == extension));
    parts.sort_unstable();
    let read = |part: PathBuf| {
        let text = fs::read_to_string(&part).map_err(unreadable(&part))?;
        Ok((part, text))
    };
    parts.into_iter().map(read).collect()
}

/// The rules for well-known programs in a file that is installed with onbeat: they hold for users'
/// own programs, never for root's.
fn shipped_rules(path: &Path, text: &str) -> Result<Vec<Rule>, ConfigError> {
    let file: RulesFile = toml::from_str(text).map_err(|error| wrong(path, text, &error))?;
    let mut rules = file.read(path, text)?;
    for rule in &mut rules {
        rule.but_root = true;
    }
    Ok(rules)
}

/// The same of texts, with what errors call them.
///
/// # Errors
/// If something in one of them is not right.
pub fn parse(files: &[(PathBuf, String)]) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    for (path, text) in files {
        let file: File = toml::from_str(text).map_err(|error| wrong(path, text, &error))?;
        file.put_into(&mut config, path, text)?;
    }
    Ok(config)
}

/// The parser's word, with the line, and what to do where it does not say that itself.
fn wrong(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start);
    let message = error.message().trim().replace('\n', ", ");
    let says_what_to_do = message.contains("expected") || message.contains(": write");
    let problem = if says_what_to_do {
        message
    } else {
        format!(
            "{message}: mend this line, or see the example in /usr/share/doc/onbeat/onbeat.toml"
        )
    };
    ConfigError::Wrong {
        path: path.to_owned(),
        line: line_of(text, start),
        problem,
    }
}

/// The number of the line in which the byte at `offset` is, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|&&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests;
