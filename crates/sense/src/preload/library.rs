//! The library that programs are preloaded with, as a file that they can trust.
//!
//! The environment names it for as long as a program and its descendants run, also when onbeat is
//! long gone. For an ordinary user it is a file without a name in onbeat's folder in `/proc`: if
//! the process's number goes to another process, the kernel still lets no other user open what a
//! user's process has open. Root may, and would load whatever he finds there; so his is a file on
//! disk, in a folder that only he can write to, and it stays. Root of a user namespace that has no
//! other user in it is an ordinary one: of those outside, he may open what is his own.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, MemfdFlags, SealFlags, StatVfsMountFlags, access, fcntl_add_seals, statvfs,
};
use rustix::process::{geteuid, getuid};
use rustix::thread::{CapabilitySet, capability_is_in_ambient_set};

use super::PreloadError;
use super::memory::{nameless, path};

const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/listener.so"));
/// Root's. Not in `/run`, from where nothing may be executed.
const FOLDER: &str = "/var/cache/onbeat";
/// Root's where the administrator has made it, as nothing may be executed from the other one.
const CHOSEN: &str = "/usr/lib/onbeat";

/// The library, for as long as this lives at least.
#[derive(Debug)]
pub(super) enum Library {
    Nameless(File),
    Roots(PathBuf),
}

impl Library {
    /// One that the programs of this user can trust.
    pub(super) fn new() -> Result<Self, PreloadError> {
        match LibraryLocation::of_this_user()? {
            LibraryLocation::Nowhere => nameless_library().map(Self::Nameless),
            LibraryLocation::In(folder) => stored_in(folder).map(Self::Roots),
        }
    }

    /// Whether there can be one. Leaves nothing behind.
    pub(super) fn probe() -> Result<(), PreloadError> {
        match LibraryLocation::of_this_user()? {
            LibraryLocation::Nowhere => nameless_library().map(drop),
            LibraryLocation::In(folder) if is_stored(&file_in(folder)) => Ok(()),
            LibraryLocation::In(folder) => access(there_of(folder), Access::WRITE_OK)
                .map_err(|source| no_library(folder, source.into())),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Nameless(file) => path(file).into(),
            Self::Roots(path) => path.clone(),
        }
    }
}

enum LibraryLocation {
    Nowhere,
    /// Only root can change what is there, and it can be executed.
    In(&'static Path),
}

impl LibraryLocation {
    fn of_this_user() -> Result<Self, PreloadError> {
        if getuid() != geteuid() {
            return Err(PreloadError::Raised);
        }
        let inherited = capability_is_in_ambient_set(CapabilitySet::SYS_PTRACE);
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        if (!getuid().is_root() && !inherited.unwrap_or(false)) || has_one_user(&map) {
            return Ok(Self::Nowhere);
        }
        let [chosen, own] = [CHOSEN, FOLDER].map(Path::new);
        let folder = if chosen.is_dir() { chosen } else { own };
        check(folder)?;
        Ok(Self::In(folder))
    }
}

/// Whether that is all users of this namespace, by its `uid_map`: lines of the first one inside,
/// the first one outside, and how many.
fn has_one_user(uid_map: &str) -> bool {
    let count = |line: &str| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok();
    uid_map.lines().map(count).sum::<Option<u64>>() == Some(1)
}

fn nameless_library() -> Result<File, PreloadError> {
    // Where executable ones must be asked for, and where that word is not known yet.
    let file = nameless("onbeat-listener", MemfdFlags::EXEC);
    let file = file.or_else(|_| nameless("onbeat-listener", MemfdFlags::empty()));
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    file.and_then(|mut file| {
        file.write_all(BYTES)?;
        fcntl_add_seals(&file, seals)?;
        Ok(file)
    })
    .map_err(|source| PreloadError::NoMemory { source })
}

/// Whether only root can change what is in `folder`, or on the way to it, and programs could load
/// it from there. Only root can make the missing folders.
fn check(folder: &Path) -> Result<(), PreloadError> {
    let there = there_of(folder);
    for on_the_way in there.ancestors() {
        let facts = fs::symlink_metadata(on_the_way).map_err(|e| no_library(folder, e))?;
        if !is_roots_folder(&facts) {
            let path = on_the_way.to_owned();
            return Err(PreloadError::NotOnlyRoots { path });
        }
    }
    let mount = statvfs(there).map_err(|e| no_library(folder, e.into()))?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(PreloadError::NotExecuted {
            folder: folder.to_owned(),
            chosen: CHOSEN,
        });
    }
    Ok(())
}

/// As much of the way to `folder` as is there; perhaps all, and perhaps a link that leads nowhere.
fn there_of(folder: &Path) -> &Path {
    let mut on_the_way = folder.ancestors();
    on_the_way
        .find(|path| fs::symlink_metadata(path).is_ok())
        .unwrap_or(Path::new("/"))
}

fn is_roots_folder(facts: &Metadata) -> bool {
    facts.is_dir() && facts.uid() == 0 && facts.mode() & 0o022 == 0
}

fn no_library(folder: &Path, source: io::Error) -> PreloadError {
    PreloadError::NoLibrary {
        folder: folder.to_owned(),
        source,
        chosen: CHOSEN,
    }
}

/// Where the library is in `folder`. It is named by what is in it, as another onbeat's may be in
/// use.
fn file_in(folder: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    BYTES.hash(&mut hasher);
    folder.join(format!("listener-{:016x}.so", hasher.finish()))
}

/// A file that another user left there while they could is not onbeat's, whatever is in it now.
fn is_stored(path: &Path) -> bool {
    let user = geteuid().as_raw();
    let is_ours =
        |facts: Metadata| facts.is_file() && facts.uid() == user && facts.mode() & 0o022 == 0;
    fs::symlink_metadata(path).is_ok_and(is_ours)
        && fs::read(path).is_ok_and(|found| found == BYTES)
}

fn stored_in(folder: &Path) -> Result<PathBuf, PreloadError> {
    let path = file_in(folder);
    if is_stored(&path) {
        return Ok(path);
    }
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .and_then(|()| store(&path))
        .map_err(|source| no_library(folder, source))?;
    Ok(path)
}

/// All at once: another onbeat may be about to load it.
fn store(path: &Path) -> io::Result<()> {
    let unfinished = path.with_extension(format!("so.{}", std::process::id()));
    let _ = fs::remove_file(&unfinished);
    let stored = File::create_new(&unfinished)
        .and_then(|mut file| file.write_all(BYTES))
        .and_then(|()| fs::set_permissions(&unfinished, Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&unfinished, path));
    if stored.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_an_elf_file_that_nobody_else_can_change() {
        let library = Library::new().unwrap();
        assert_eq!(fs::read(library.path()).unwrap(), BYTES);
        assert!(BYTES.starts_with(b"\x7fELF"));
        match library {
            Library::Nameless(file) => {
                let other = File::options().write(true).open(path(&file)).unwrap();
                assert!(std::os::unix::fs::FileExt::write_at(&other, b"x", 0).is_err());
            }
            Library::Roots(path) => {
                let facts = fs::metadata(&path).unwrap();
                assert_eq!((facts.uid(), facts.mode() & 0o022), (0, 0));
                assert!(!path.starts_with("/proc"));
            }
        }
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused_and_so_is_one_behind_it() {
        let open = tempfile::tempdir().unwrap();
        let behind = open.path().join("folder/behind");
        fs::create_dir_all(&behind).unwrap();
        fs::set_permissions(open.path(), Permissions::from_mode(0o1777)).unwrap();
        let refused = check(&behind).unwrap_err();
        assert!(
            matches!(refused, PreloadError::NotOnlyRoots { .. }),
            "{refused}"
        );
        let link = open.path().join("link");
        std::os::unix::fs::symlink("/usr", &link).unwrap();
        let refused = check(&link).unwrap_err();
        assert!(matches!(refused, PreloadError::NotOnlyRoots { path } if path == link));
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_root_s_if_what_it_would_be_in_is() {
        check(Path::new("/usr/not-there/yet")).unwrap();
        assert!(!Path::new("/usr/not-there").exists());
    }

    #[test]
    fn a_user_is_alone_where_his_number_is_the_only_one() {
        assert!(has_one_user("         0       1000          1\n"));
        assert!(!has_one_user("         0          0 4294967295\n"));
        assert!(!has_one_user("0 1000 1\n1 100000 65536\n"));
        assert!(!has_one_user("") && !has_one_user("0 1000\n") && !has_one_user("0 0 x\n"));
    }

    #[test]
    fn what_was_found_damaged_is_written_anew_and_what_is_whole_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let library = stored_in(folder.path()).unwrap();
        let first = fs::metadata(&library).unwrap().ino();
        assert_eq!(stored_in(folder.path()).unwrap(), library);
        assert_eq!(fs::metadata(&library).unwrap().ino(), first);
        fs::write(&library, b"something else").unwrap();
        assert_eq!(stored_in(folder.path()).unwrap(), library);
        assert_eq!(fs::read(&library).unwrap(), BYTES);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_others_can_change_or_point_elsewhere_is_written_anew_though_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let library = stored_in(folder.path()).unwrap();
        fs::set_permissions(&library, Permissions::from_mode(0o757)).unwrap();
        assert_eq!(stored_in(folder.path()).unwrap(), library);
        assert_eq!(fs::metadata(&library).unwrap().mode() & 0o022, 0);

        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&library, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &library).unwrap();
        assert_eq!(stored_in(folder.path()).unwrap(), library);
        assert!(fs::symlink_metadata(&library).unwrap().is_file());
    }
}
