//! A folder of recordings with their truth: `truth.json`, `apps/NAME.lN.*`, `lime/periodic` and
//! `lime/sporadic`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use onbeat_sense::recording::{Recording, read};

/// Per recording, or per program, and per thread name what is right.
pub(crate) type Truths = BTreeMap<String, BTreeMap<String, Truth>>;
/// A thread's entry: null if it has no rhythm, else its periods in ms, and null among them if it
/// is too starved to keep them.
type Entry = Option<Vec<Option<f64>>>;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Truth {
    /// The true periods in ms; empty if the thread has no rhythm.
    pub(crate) periods: Vec<f64>,
    /// The thread has these periods, but is too starved to keep them: none is right, too.
    pub(crate) starved: bool,
}

impl From<Entry> for Truth {
    fn from(entry: Entry) -> Self {
        let entry = entry.unwrap_or_default();
        Self {
            starved: entry.contains(&None),
            periods: entry.into_iter().flatten().collect(),
        }
    }
}

impl Truth {
    pub(crate) fn is_aperiodic(&self) -> bool {
        self.periods.is_empty()
    }

    pub(crate) fn may_be_none(&self) -> bool {
        self.is_aperiodic() || self.starved
    }
}

pub(crate) struct App {
    /// Program and load: the file's name up to its second full stop.
    pub(crate) name: String,
    pub(crate) recording: Recording,
    pub(crate) threads: BTreeMap<String, Truth>,
}

pub(crate) fn truths(folder: &Path) -> Result<Truths, Box<dyn Error>> {
    type Entries = BTreeMap<String, BTreeMap<String, Entry>>;
    let entries: Entries = serde_json::from_slice(&std::fs::read(folder.join("truth.json"))?)?;
    let truths = |threads: BTreeMap<String, Entry>| {
        let truth = |(name, entry)| (name, Truth::from(entry));
        threads.into_iter().map(truth).collect()
    };
    Ok(entries
        .into_iter()
        .map(|(name, threads)| (name, truths(threads)))
        .collect())
}

/// Every recording under `folder/apps` which `folder/truth.json` names, or whose program it names.
pub(crate) fn apps(folder: &Path) -> Result<Vec<App>, Box<dyn Error>> {
    let truths = truths(folder)?;
    let mut apps = Vec::new();
    for path in files(&folder.join("apps"))? {
        let file = file_name(&path);
        let mut parts = file.split('.');
        let program = parts.next().unwrap_or_default();
        let name = format!("{program}.{}", parts.next().unwrap_or_default());
        if let Some(threads) = truths.get(&name).or_else(|| truths.get(program)) {
            apps.push(App {
                recording: read(&path)?,
                name,
                threads: threads.clone(),
            });
        }
    }
    Ok(apps)
}

pub(crate) struct Single {
    pub(crate) name: String,
    pub(crate) recording: Recording,
    pub(crate) truth: Truth,
}

/// The recordings in `folder/lime/periodic` with their periods in ms, which are in their names, and
/// those in `folder/lime/sporadic`, which have none.
pub(crate) fn lime(folder: &Path) -> Result<Vec<Single>, Box<dyn Error>> {
    let mut recordings = Vec::new();
    for path in files(&folder.join("lime/periodic"))? {
        let name = file_name(&path);
        let period_ns: f64 = name
            .split("period=")
            .nth(1)
            .and_then(|rest| rest.split('.').next())
            .ok_or_else(|| format!("'{name}' has no period in its name"))?
            .parse()?;
        recordings.push(Single {
            name,
            recording: read(&path)?,
            truth: Truth {
                periods: vec![period_ns / 1e6],
                starved: false,
            },
        });
    }
    for path in files(&folder.join("lime/sporadic"))? {
        recordings.push(Single {
            name: file_name(&path),
            recording: read(&path)?,
            truth: Truth::default(),
        });
    }
    Ok(recordings)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
