//! A folder of recordings with their truth: `truth.json`, `apps/NAME.lN.txt.gz`, `lime/periodic`
//! and `lime/sporadic`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use onbeat_sense::replay::{Recording, read};

/// Per program and thread name the true periods in ms; none for a thread that is not periodic.
pub(crate) type Truth = BTreeMap<String, BTreeMap<String, Option<Vec<f64>>>>;

/// A recording and the truth about its threads.
pub(crate) struct App {
    /// The file's name up to `.txt`: program and load.
    pub(crate) name: String,
    pub(crate) recording: Recording,
    pub(crate) threads: BTreeMap<String, Option<Vec<f64>>>,
}

/// Every recording under `folder/apps` whose program `folder/truth.json` names.
pub(crate) fn apps(folder: &Path) -> Result<Vec<App>, Box<dyn Error>> {
    let truth: Truth = serde_json::from_slice(&std::fs::read(folder.join("truth.json"))?)?;
    let mut apps = Vec::new();
    for path in files(&folder.join("apps"))? {
        let name = file_name(&path);
        let program = name.split('.').next().unwrap_or_default();
        if let Some(threads) = truth.get(program) {
            apps.push(App {
                recording: read(&path)?,
                name: name.split(".txt").next().unwrap_or_default().to_owned(),
                threads: threads.clone(),
            });
        }
    }
    Ok(apps)
}

/// A recording with one thread.
pub(crate) struct Single {
    pub(crate) name: String,
    pub(crate) recording: Recording,
    /// The true period in ms; none if it is not periodic.
    pub(crate) periods: Vec<f64>,
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
            periods: vec![period_ns / 1e6],
        });
    }
    for path in files(&folder.join("lime/sporadic"))? {
        recordings.push(Single {
            name: file_name(&path),
            recording: read(&path)?,
            periods: Vec::new(),
        });
    }
    Ok(recordings)
}

/// The files in a folder in the order of their names; none if there is no such folder.
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
