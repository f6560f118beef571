//! The kernel's report on sched_ext, for `onbeat-lab scheduler status`.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::{ALL, functions};

const FOLDER: &str = "/sys/kernel/sched_ext";

/// The advice for a kernel that misdescribes a function.
pub(crate) const OTHER_BUILD: &str =
    "boot another build of it, or another version, for `onbeat-lab scheduler`";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchedExtStatus {
    /// The kernel's word: `enabled`, `disabled`, or on the way to one of these.
    pub state: String,
    pub scheduler: Option<String>,
    /// Whether it schedules all ordinary tasks, not only those of SCHED_EXT.
    pub whole: bool,
    /// How often a scheduler was put in force since the machine has booted.
    pub starts: u64,
}

/// The kernel's report; none if it has no sched_ext.
pub fn status() -> Option<SchedExtStatus> {
    status_in(Path::new(FOLDER))
}

fn status_in(folder: &Path) -> Option<SchedExtStatus> {
    let read =
        |name: &str| fs::read_to_string(folder.join(name)).map(|text| text.trim().to_owned());
    let state = read("state").ok()?;
    let scheduler = read("root/ops").ok().filter(|_| state != "disabled");
    Some(SchedExtStatus {
        whole: read("switch_all").is_ok_and(|all| all == "1") && scheduler.is_some(),
        starts: read("enable_seq")
            .ok()
            .and_then(|starts| starts.parse().ok())
            .unwrap_or_default(),
        state,
        scheduler,
    })
}

/// What keeps this kernel, which has sched_ext and no scheduler, from taking one of ours, and what
/// to do about it.
pub fn obstacle() -> Option<String> {
    let function = functions::misdescribed(ALL.iter().map(|scheduler| scheduler.object))?;
    Some(format!(
        "this build of the kernel misdescribes {function}: schedulers that call it are refused: {OTHER_BUILD}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn the_status_is_what_the_kernel_says() {
        let kernel = folder(&[
            ("state", "enabled\n"),
            ("root/ops", "best\n"),
            ("switch_all", "1\n"),
            ("enable_seq", "3\n"),
        ]);
        let status = status_in(kernel.path()).unwrap();
        assert_eq!(status.scheduler.as_deref(), Some("best"));
        assert!(status.whole);
        assert_eq!(status.starts, 3);
        let kernel = folder(&[("state", "disabled\n"), ("switch_all", "0\n")]);
        let status = status_in(kernel.path()).unwrap();
        assert_eq!((status.scheduler, status.whole), (None, false));
        assert_eq!(status_in(Path::new("/nowhere/at/all")), None);
    }
}
