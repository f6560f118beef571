//! The names of programs whose executions by tasks that are not tracked are told.

use std::collections::BTreeSet;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::{BpfError, skeleton::types::program};

/// The size of the table's keys.
const NAME: usize = size_of::<program>();

/// See the file's head.
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

/// As the kernel copies a string: its last byte is zero.
fn key(name: &str) -> [u8; NAME] {
    let mut key = [0; NAME];
    let kept = name.bytes().take(NAME - 1);
    key.iter_mut().zip(kept).for_each(|(to, from)| *to = from);
    key
}
