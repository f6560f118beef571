//! The sections `[X-OnBeat]` of drop-ins of systemd's units: each unit that has one is a rule.
//!
//! systemd skips sections whose names begin with `X-` (systemd.unit(5)). The service reads drop-ins
//! when it reads its configuration, and only from folders that root alone can write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::error::{ConfigError, Place};
use super::file::RuleTable;
use super::texts::{entries_in, texts_in};
use crate::rules::Rule;

const SECTION: &str = "[X-OnBeat]";

/// The rules of all units below these folders; see [`Sources::units`](super::Sources::units).
pub(super) fn rules(folders: &[PathBuf]) -> Result<Vec<Rule>, ConfigError> {
    let mut rules = Vec::new();
    for of_whom in ["system", "user"] {
        // By unit and name of the drop-in, as systemd applies them.
        let mut drop_ins: BTreeMap<String, BTreeMap<PathBuf, (PathBuf, String)>> = BTreeMap::new();
        for folder in folders {
            for (unit, path) in units_with_drop_ins(&folder.join(of_whom))? {
                let of_unit = drop_ins.entry(unit).or_default();
                for (file, text) in texts_in(&path, "conf")? {
                    let name = file.file_name().map(PathBuf::from).unwrap_or_default();
                    of_unit.insert(name, (file, text));
                }
            }
        }
        for (unit, files) in drop_ins {
            rules.extend(rule_of(&unit, files.into_values())?);
        }
    }
    Ok(rules)
}

/// The units that have a folder of drop-ins in `folder`, and these.
fn units_with_drop_ins(folder: &Path) -> Result<Vec<(String, PathBuf)>, ConfigError> {
    let unit_of = |path: PathBuf| {
        let unit = path.file_name()?.to_str()?.strip_suffix(".d")?;
        // `service.d` is for all services.
        let is_unit = unit.contains('.') && path.is_dir();
        is_unit.then(|| (unit.to_owned(), path.clone()))
    };
    Ok(entries_in(folder)?
        .into_iter()
        .filter_map(unit_of)
        .collect())
}

/// The rule of `unit`, if one of its drop-ins has the section; what a later one says counts.
fn rule_of(
    unit: &str,
    files: impl Iterator<Item = (PathBuf, String)>,
) -> Result<Option<Rule>, ConfigError> {
    let mut said = Table::from_iter([("unit".to_owned(), Value::from(unit))]);
    let mut section = None;
    let mut keeps = true;
    for (path, text) in files {
        for (line, setting) in in_section(&text) {
            let path = path.clone();
            let place = Place { path, line };
            if let Some(setting) = setting {
                let (key, value) = read_setting(setting).map_err(|problem| place.wrong(problem))?;
                if key == "keep" {
                    keeps = value == Value::Boolean(true);
                } else {
                    let alone = Table::from_iter([(key.clone(), value.clone())]);
                    table_of(alone).map_err(|error| place.wrong(problem_of(&error)))?;
                    said.insert(key, value);
                }
            }
            section = Some(place);
        }
    }
    let Some(place) = section.filter(|_| keeps) else {
        return Ok(None);
    };
    let rule = table_of(said).map_err(|error| place.wrong(problem_of(&error)))?;
    rule.read(unit.to_owned(), &place).map(Some)
}

fn table_of(said: Table) -> Result<RuleTable, toml::de::Error> {
    Value::Table(said).try_into()
}

fn problem_of(error: &toml::de::Error) -> String {
    error.message().trim().replace('\n', ", ")
}

/// The lines of the section with their numbers, from 1: the heading, which is no setting, and the
/// settings.
fn in_section(text: &str) -> impl Iterator<Item = (usize, Option<&str>)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line == SECTION;
            return inside.then_some((index + 1, None));
        }
        let is_setting = inside && !line.is_empty() && !line.starts_with(['#', ';']);
        is_setting.then_some((index + 1, Some(line)))
    })
}

/// `Key=value` as a key of a rule and its value.
fn read_setting(setting: &str) -> Result<(String, Value), String> {
    const KEYS: &str = "Keep, Threads, Children, Adopt, Weight or Cap";
    let (key, value) = setting
        .split_once('=')
        .ok_or_else(|| format!("'{setting}' is no setting: write KEY=VALUE, KEY being {KEYS}"))?;
    let value = value.trim();
    let read = match key.trim() {
        "Keep" | "Children" | "Adopt" => match value {
            "1" | "yes" | "true" | "on" => Value::Boolean(true),
            "0" | "no" | "false" | "off" => Value::Boolean(false),
            _ => return Err(format!("'{value}' is neither: write yes or no")),
        },
        "Threads" => {
            let names = value.split_whitespace().map(Value::from);
            Value::Array(names.collect())
        }
        "Weight" => {
            let weight: Result<f64, _> = value.parse();
            let weight = weight.ok().filter(|weight| weight.is_finite());
            weight.map(Value::from).ok_or_else(|| {
                format!("'{value}' is no weight: write a number above 0, as in 2.5")
            })?
        }
        "Cap" => Value::from(value),
        other => return Err(format!("there is no {other}: write {KEYS}")),
    };
    Ok((key.trim().to_lowercase(), read))
}

#[cfg(test)]
mod tests {
    use onbeat_model::Bandwidth;

    use std::fs;

    use super::*;

    fn file(folder: &Path, place: &str, text: &str) {
        let path = folder.join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_unit_with_a_section_of_its_own_is_a_rule() {
        let folder = tempfile::tempdir().unwrap();
        let [usr, etc] = ["usr", "etc"].map(|name| folder.path().join(name));
        let has = "[Service]\nNice=5\n# a comment\n[X-OnBeat]\n; another one\nCap = 40%\nThreads=data-loop.* a\n";
        file(&usr, "user/pipewire.service.d/onbeat.conf", has);
        file(
            &usr,
            "user/pipewire.service.d/other.conf",
            "[X-OnBeat]\nAdopt=yes\nWeight=2\n[Unit]\nWeight=9\n",
        );
        file(&usr, "system/film.service.d/10.conf", "[X-OnBeat]\n");
        file(&usr, "system/film.service.d/notes.txt", "[X-OnBeat]\nno\n");
        file(&usr, "system/hidden.service.d/10.conf", "[X-OnBeat]\n");
        // A file of the same name in /etc replaces it.
        file(&etc, "system/hidden.service.d/10.conf", "[Service]\n");
        file(&usr, "system/off.service.d/10.conf", "[X-OnBeat]\n");
        file(
            &etc,
            "system/off.service.d/20.conf",
            "[X-OnBeat]\nKeep=no\n",
        );
        file(&usr, "system/service.d/10.conf", "[X-OnBeat]\n");
        file(&usr, "system/plain.service", "[X-OnBeat]\n");
        let rules = rules(&[usr, etc]).unwrap();
        let units: Vec<_> = rules.iter().map(|rule| rule.unit.as_deref()).collect();
        assert_eq!(units, [Some("film.service"), Some("pipewire.service")]);
        let sound = &rules[1];
        assert_eq!(&*sound.name, "pipewire.service");
        assert_eq!(sound.threads, ["data-loop.*", "a"]);
        assert!(sound.adopt && !sound.children && sound.user.is_none());
        assert_eq!(sound.treatment.cap, Some(Bandwidth::from_cpus(0.4)));
        assert_eq!(sound.treatment.weight, 2.0);
    }

    #[test]
    fn a_mistake_in_a_section_is_told_with_its_line() {
        for (setting, remedy) in [
            ("Cap=40", "'40' is no share: write per cent above 0"),
            ("Cap", "'Cap' is no setting: write KEY=VALUE"),
            ("Children=maybe", "'maybe' is neither: write yes or no"),
            ("Weight=heavy", "'heavy' is no weight"),
            ("Weight=-1", "write a weight above 0"),
            ("Colour=red", "there is no Colour: write Keep"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let text = format!("[X-OnBeat]\n{setting}\n");
            file(folder.path(), "user/a.service.d/x.conf", &text);
            let error = rules(&[folder.path().to_owned()]).unwrap_err().to_string();
            assert!(error.contains("a.service.d/x.conf:2: "), "{error}");
            assert!(error.contains(remedy), "{setting}: {error}");
        }
    }
}
