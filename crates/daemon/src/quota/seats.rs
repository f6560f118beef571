//! Who sits at the machine, as systemd-logind has it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file for each seat, which only root writes, and `sd_seat_get_active(3)` reads.
pub(crate) const SEATS: &str = "/run/systemd/seats";

pub(crate) fn users_at(seats: &Path) -> BTreeSet<u32> {
    let entries = fs::read_dir(seats).into_iter().flatten().flatten();
    // logind writes a file beside the one that it replaces.
    let whole = entries.filter(|entry| !entry.file_name().as_bytes().starts_with(b"."));
    let texts = whole.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let uid = |line: &str| line.strip_prefix("ACTIVE_UID=")?.parse().ok();
    texts
        .filter_map(|text| text.lines().find_map(uid))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sessions_in_the_foreground_count() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(users_at(&folder.path().join("none")), BTreeSet::new());
        let files = [
            (
                "seat0",
                "IS_SEAT0=1\nACTIVE=2\nACTIVE_UID=1000\nSESSIONS=2 3\nUIDS=1000 1001\n",
            ),
            ("seat-greeter", "IS_SEAT0=0\nCAN_GRAPHICAL=1\nUIDS=117\n"),
            ("seat-other", "ACTIVE=c1\nACTIVE_UID=1002\n"),
            (".#seat0Xy1", "ACTIVE=4\nACTIVE_UID=10"),
        ];
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(users_at(folder.path()), BTreeSet::from([1000, 1002]));
    }
}
