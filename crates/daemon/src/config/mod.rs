//! The configuration: `/etc/onbeat/onbeat.toml`, and what lies in `onbeat.d` beside it, in the
//! order of the names; what is said later counts. packaging/onbeat.toml is an example with every
//! key.
//!
//! It is parsed without any look at the machine; that users and groups of these names exist is
//! found out when it is put in force.

mod error;
mod file;
mod settings;
mod tables;
mod texts;
mod units;
mod values;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::rules::Rule;
pub use error::{ConfigError, Place};
use error::{unreadable, wrong};
use file::{File, RulesFile};
pub use settings::Config;
pub use tables::{Budgets, LimitsTable, Prediction};
use texts::texts_in;
pub use values::{Share, Time};

/// The most files of given rules that are read. More than a node of Kubernetes has containers.
const MOST_GIVEN: usize = 1024;

pub const PATH: &str = "/etc/onbeat/onbeat.toml";

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
    /// The folder in which other programs of root's, such as `onbeat-node`, keep rules. It is read
    /// again when it has changed.
    pub given: PathBuf,
}

impl Sources {
    /// These, or what stands for them: a file at its usual place, and rules where `make install`
    /// has put them with the binary that runs.
    pub fn new(config: Option<PathBuf>, rules: Option<PathBuf>, state: &Path) -> Self {
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
            given: state.join("rules.d"),
        }
    }

    /// Shows whether the folder of given rules has changed: the names of its files, and which files
    /// these are. A change puts another file in the place of one.
    pub(crate) fn given_now(&self) -> BTreeSet<(OsString, u64)> {
        let entries = fs::read_dir(&self.given).into_iter().flatten().flatten();
        let files = entries.map(|entry| (entry.file_name(), entry.ino()));
        files.take(MOST_GIVEN).collect()
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
/// the rules that other programs have given; then what drop-ins of units say; then the rules for
/// well-known programs, unless they are switched off.
/// Fails if something cannot be read or is not right.
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
    config.rules.list.extend(given_rules(&sources.given)?);
    config.rules.list.extend(units::rules(&sources.units)?);
    if config.rules.shipped {
        for (path, text) in texts_in(&sources.rules, "toml")? {
            config.rules.list.extend(shipped_rules(&path, &text)?);
        }
    }
    Ok(config)
}

/// The rules in the folder of given ones. A file that is wrong is told and left out: it is another
/// program's, and must not keep the administrator's files from being read.
fn given_rules(folder: &Path) -> Result<Vec<Rule>, ConfigError> {
    let mut rules = Vec::new();
    for (path, text) in texts_in(folder, "toml")?.into_iter().take(MOST_GIVEN) {
        let file = tables_of::<RulesFile>(&path, &text);
        match file.and_then(|file| file.read(&path, &text)) {
            Ok(of_file) => rules.extend(of_file),
            Err(error) => tracing::warn!("{error}; the file is left out"),
        }
    }
    Ok(rules)
}

/// The rules for well-known programs in a file that is installed with onbeat: they hold for users'
/// own programs, never for root's.
fn shipped_rules(path: &Path, text: &str) -> Result<Vec<Rule>, ConfigError> {
    let file: RulesFile = tables_of(path, text)?;
    let mut rules = file.read(path, text)?;
    for rule in &mut rules {
        rule.but_root = true;
    }
    Ok(rules)
}

/// The same of texts, with what errors call them.
/// Fails if something in one of them is not right.
pub fn parse(files: &[(PathBuf, String)]) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    for (path, text) in files {
        let file: File = tables_of(path, text)?;
        file.put_into(&mut config, path, text)?;
    }
    Ok(config)
}

/// The tables in `text`, which errors call `path`.
/// Fails if the text is not TOML, or has a key that `T` has not.
pub fn tables_of<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| wrong(path, text, &error))
}

#[cfg(test)]
mod tests;
