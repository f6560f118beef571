//! The processes without rights that parse files for an onbeat.

use std::fs;

use crate::common::eventually;

/// The field `name` of the process's status.
pub(crate) fn status_field(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"))?;
    Some(field.to_owned())
}

/// The two processes without rights that parse files for the process `pid`, its child and that
/// one's, once both have given up their rights.
pub(crate) fn parsers_of(pid: u32) -> (u32, u32) {
    let children = |pid: u32| -> Vec<u32> {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        children.split_whitespace().flat_map(str::parse).collect()
    };
    let (supervisor, worker) = eventually("a process with a filter of system calls", || {
        let pairs = children(pid).into_iter().flat_map(|supervisor| {
            let workers = children(supervisor).into_iter();
            workers.map(move |worker| (supervisor, worker))
        });
        let is_confined = |pid| status_field(pid, "Seccomp").as_deref() == Some("2");
        pairs.into_iter().find(|(_, worker)| is_confined(*worker))
    });
    for process in [supervisor, worker] {
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            let held = status_field(process, set);
            assert_eq!(held.as_deref(), Some("0000000000000000"));
        }
        assert_eq!(status_field(process, "NoNewPrivs").as_deref(), Some("1"));
        for number in ["Uid", "Gid"] {
            let nobody = "65534\t65534\t65534\t65534";
            assert_eq!(status_field(process, number).as_deref(), Some(nobody));
        }
    }
    (supervisor, worker)
}
