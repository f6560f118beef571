//! The library that programs are preloaded with, as a file that they can trust.
//!
//! The environment names it for as long as a program and its descendants run, also when onbeat is long gone. For an
//! ordinary user it is a file without a name in onbeat's folder in `/proc`: whoever may get that process's number, the
//! kernel lets nobody open what another user's process has open. Root may, and would load whatever he finds there; so
//! his is a file on disk, in a folder that only he can write to, and it stays.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::Error;
use super::memory::{nameless, path, seal};

const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/listener.so"));
/// Root's. Not in `/run`, from where nothing may be executed.
const FOLDER: &str = "/var/cache/onbeat";
/// `linux/capability.h`: may open what other users' processes have open.
const CAP_SYS_PTRACE: libc::c_ulong = 19;

/// The library, for as long as this lives at least.
#[derive(Debug)]
pub(super) enum Library {
    /// Has no name.
    Nameless(File),
    /// Only root can write there.
    Roots(PathBuf),
}

impl Library {
    /// One that the programs of this user can trust.
    pub(super) fn new() -> Result<Self, Error> {
        // SAFETY: take nothing and always succeed.
        let users = unsafe { [libc::getuid(), libc::geteuid()] };
        if users[0] != users[1] {
            return Err(Error::Raised);
        }
        // SAFETY: numbers only.
        let inherited = unsafe {
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_IS_SET,
                CAP_SYS_PTRACE,
                0,
                0,
            ) == 1
        };
        if users[0] != 0 && !inherited {
            let library = nameless_library().map_err(|source| Error::NoMemory { source })?;
            return Ok(Self::Nameless(library));
        }
        let folder = Path::new(FOLDER);
        make_folder(folder)?;
        stored_in(folder).map(Self::Roots)
    }

    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Nameless(file) => path(file).into(),
            Self::Roots(path) => path.clone(),
        }
    }
}

fn nameless_library() -> io::Result<File> {
    // Where executable ones must be asked for, and where that word is not known yet.
    let file = nameless(c"onbeat-listener", libc::MFD_EXEC);
    let mut file = file.or_else(|_| nameless(c"onbeat-listener", 0))?;
    file.write_all(BYTES)?;
    seal(
        &file,
        libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE,
    )?;
    Ok(file)
}

/// Makes sure that `folder` is there, and that only root can change what is in it or on the way to it.
fn make_folder(folder: &Path) -> Result<(), Error> {
    let no_library = |source| Error::NoLibrary {
        folder: folder.to_owned(),
        source,
    };
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o755).create(folder);
    made.map_err(no_library)?;
    for on_the_way in folder.ancestors() {
        let facts = fs::symlink_metadata(on_the_way).map_err(no_library)?;
        if !is_roots_folder(&facts) {
            let path = on_the_way.to_owned();
            return Err(Error::NotOnlyRoots { path });
        }
    }
    Ok(())
}

fn is_roots_folder(facts: &Metadata) -> bool {
    facts.is_dir() && facts.uid() == 0 && facts.mode() & 0o022 == 0
}

/// The library's path in `folder`. It is named by what is in it, as another onbeat's may be in use.
fn stored_in(folder: &Path) -> Result<PathBuf, Error> {
    let mut hasher = DefaultHasher::new();
    BYTES.hash(&mut hasher);
    let path = folder.join(format!("listener-{:016x}.so", hasher.finish()));
    if fs::read(&path).is_ok_and(|found| found == BYTES) {
        return Ok(path);
    }
    store(&path).map_err(|source| Error::NoLibrary {
        folder: folder.to_owned(),
        source,
    })?;
    Ok(path)
}

/// All at once: another onbeat may be about to load it.
fn store(path: &Path) -> io::Result<()> {
    let unfinished = path.with_extension(format!("so.{}", std::process::id()));
    let stored = fs::write(&unfinished, BYTES)
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
        let refused = make_folder(&behind).unwrap_err();
        assert!(matches!(refused, Error::NotOnlyRoots { .. }), "{refused}");
        let link = open.path().join("link");
        std::os::unix::fs::symlink("/usr", &link).unwrap();
        let refused = make_folder(&link).unwrap_err();
        assert!(matches!(refused, Error::NotOnlyRoots { path } if path == link));
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
}
