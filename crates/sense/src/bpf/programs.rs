//! The programs that processes run: programs.h. Which ones are told is said by their names.

use std::collections::BTreeSet;
use std::mem::offset_of;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use onbeat_model::RunningProgram;

use super::BpfError;
use super::skeleton::types::{program, running};
use super::wire::{long, unpack, word};

/// Where the path begins in what is told of a process.
const HEAD: usize = offset_of!(running, path);

const NAME: usize = size_of::<program>();

#[derive(Debug)]
pub(super) struct Programs {
    map: MapHandle,
    told: BTreeSet<[u8; NAME]>,
}

impl Programs {
    pub(super) const fn new(map: MapHandle) -> Self {
        Self {
            map,
            told: BTreeSet::new(),
        }
    }

    /// Those of these `names` from now on, as many as there is room for. A name that is as long as
    /// the kernel's table keeps of a longer one stands for that, too.
    pub(super) fn tell(&mut self, names: &BTreeSet<String>) -> Result<(), BpfError> {
        let names = names
            .iter()
            .map(|name| key(name))
            .take(self.map.max_entries() as usize);
        let names: BTreeSet<[u8; NAME]> = names.collect();
        for former in self.told.difference(&names) {
            let removed = self.map.delete(former);
            removed.map_err(BpfError::kernel("change the table of programs"))?;
        }
        for new in names.difference(&self.told) {
            let added = self.map.update(new, &[1], MapFlags::ANY);
            added.map_err(BpfError::kernel("change the table of programs"))?;
        }
        self.told = names;
        Ok(())
    }
}

pub(super) fn running(bytes: &[u8]) -> Option<(RunningProgram, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let path_bytes = word(head, offset_of!(running, bytes)) as usize;
    let (path, rest) = rest.split_at_checked(path_bytes)?;
    let parts = path
        .strip_suffix(&[0])
        .unwrap_or_default()
        .rsplit(|byte| *byte == 0);
    let program = RunningProgram {
        process: unpack(long(head, offset_of!(running, id))),
        uid: word(head, offset_of!(running, uid)),
        path: String::from_utf8_lossy(&parts.collect::<Vec<_>>().join(&b'/')).into_owned(),
        groups: long(head, offset_of!(running, groups)),
    };
    Some((program, rest))
}

pub(super) fn all(mut bytes: &[u8]) -> Vec<RunningProgram> {
    let next = || {
        let (program, rest) = running(bytes)?;
        bytes = rest;
        Some(program)
    };
    std::iter::from_fn(next).collect()
}

/// As the kernel copies a string: its last byte is zero.
fn key(name: &str) -> [u8; NAME] {
    let mut key = [0; NAME];
    let kept = name.bytes().take(NAME - 1);
    key.iter_mut().zip(kept).for_each(|(to, from)| *to = from);
    key
}
