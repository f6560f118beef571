//! The files of rules: one for each container that is kept, in a folder that the service reads.
//!
//! A file is named by the container's id, which is checked before it becomes a name. It comes and
//! goes as a whole. Other files in the folder are left alone.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use onbeat_model::Bandwidth;

/// The id of a container: 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerId(String);

impl ContainerId {
    pub fn new(text: &str) -> Option<Self> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_id = text.len() == 64 && text.bytes().all(is_digit);
        is_id.then(|| Self(text.to_owned()))
    }

    fn file_name(&self) -> String {
        format!("{BEGINNING}{}{END}", self.0)
    }

    fn of_file_name(name: &str) -> Option<Self> {
        Self::new(name.strip_prefix(BEGINNING)?.strip_suffix(END)?)
    }
}

const BEGINNING: &str = "container-";
const END: &str = ".toml";
/// A file that is being written. The service reads names that end in `.toml` alone.
const UNFINISHED: &str = "container.new";

#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of this path. It need not be there yet.
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Writes the rule of a container; the service logs `name`.
    /// Fails if the file cannot be written. A former one is then still there.
    pub fn put(&self, id: &ContainerId, name: &str, bandwidth: Bandwidth) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)?;
        let unfinished = self.0.join(UNFINISHED);
        fs::write(&unfinished, text(id, name, bandwidth))?;
        fs::rename(unfinished, self.0.join(id.file_name()))
    }

    pub fn remove(&self, id: &ContainerId) -> io::Result<bool> {
        match fs::remove_file(self.0.join(id.file_name())) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the rules of all containers but these. Returns how many were removed.
    pub fn remove_all_but(&self, kept: &BTreeSet<ContainerId>) -> io::Result<usize> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut count = 0;
        for entry in entries {
            let name = entry?.file_name();
            let id = name.to_str().and_then(ContainerId::of_file_name);
            if let Some(id) = id.filter(|id| !kept.contains(id)) {
                count += usize::from(self.remove(&id)?);
            }
        }
        Ok(count)
    }
}

fn text(id: &ContainerId, name: &str, bandwidth: Bandwidth) -> String {
    let share = format!("{:.3}%", bandwidth.as_cpus() * 100.0);
    format!(
        "# Written by onbeat-node, and removed with the container.\n\
         [[rule]]\n\
         name = \"{}\"\n\
         container = \"{}\"\n\
         cap = \"{share}\"\n\
         bandwidth = \"{share}\"\n",
        plain(name),
        id.0
    )
}

/// The longest name of a rule, in bytes: a namespace and a container's name of 63 bytes each and a
/// pod's of 253 fit.
const LONGEST_NAME: usize = 400;

/// The name with nothing in it that needs an escape in a file or in a terminal.
pub fn plain(name: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '/' | ' ' => c,
        _ => '?',
    };
    name.chars().map(plain).take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use onbeat_daemon::{Sources, read};

    use super::*;

    fn id(digit: char) -> ContainerId {
        ContainerId::new(&digit.to_string().repeat(64)).unwrap()
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn an_id_has_64_hexadecimal_digits_and_nothing_else() {
        let good = "0123456789abcdef".repeat(4);
        assert!(ContainerId::new(&good).is_some());
        for bad in [
            String::new(),
            good[1..].to_owned(),
            format!("{good}0"),
            good.replace('f', "F"),
            good.replace('f', "/"),
            format!("../{}", &good[3..]),
        ] {
            assert_eq!(ContainerId::new(&bad), None, "{bad}");
        }
    }

    #[test]
    fn rules_come_and_go_with_their_containers_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let rules = Folder::new(folder.path().join("rules.d"));
        assert_eq!(rules.remove_all_but(&BTreeSet::new()).unwrap(), 0);
        assert!(!rules.remove(&id('a')).unwrap());
        let rules = Folder::new(folder.path().to_owned());
        fs::write(folder.path().join("other.toml"), "").unwrap();
        for digit in ['a', 'b', 'c', 'a'] {
            rules
                .put(&id(digit), "default/film", Bandwidth::ONE)
                .unwrap();
        }
        assert_eq!(names(&folder).len(), 4);
        assert!(rules.remove(&id('b')).unwrap());
        assert_eq!(rules.remove_all_but(&BTreeSet::from([id('c')])).unwrap(), 1);
        assert_eq!(
            names(&folder),
            [id('c').file_name(), "other.toml".to_owned()]
        );
    }

    #[test]
    fn the_service_reads_what_is_written_whatever_the_names_are() {
        let folder = tempfile::tempdir().unwrap();
        let rules = Folder::new(folder.path().join("rules.d"));
        let least = Bandwidth::from_cpus(0.001);
        let name = format!("a\"]\n[[rule]]\nprogram = \"x{}", "é".repeat(9000));
        rules.put(&id('a'), &name, least).unwrap();
        let most = Bandwidth::from_cpus(100.0);
        rules.put(&id('b'), "default/film/app", most).unwrap();
        let config = folder.path().join("onbeat.toml");
        fs::write(&config, "").unwrap();
        let sources = Sources {
            config: Some(config),
            rules: folder.path().join("none"),
            units: Vec::new(),
            given: folder.path().join("rules.d"),
        };
        let (config, _) = read(&sources).unwrap();
        let [first, second] = &config.rules.list[..] else {
            panic!("{:?}", config.rules.list);
        };
        assert_eq!(first.container.as_deref(), Some(&*id('a').0));
        assert_eq!(first.bandwidth, Some(least));
        assert_eq!(&*second.name, "default/film/app");
        assert_eq!(second.bandwidth, Some(most));
    }
}
