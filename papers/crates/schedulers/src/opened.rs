//! A scheduler before it is loaded: what can be set, and what it is to schedule.

use std::ffi::OsStr;
use std::time::Duration;

use libbpf_rs::btf::Btf;
use libbpf_rs::{ObjectBuilder, OpenObject};

use crate::layout::{Layout, Value};
use crate::running::{Layouts, Running};
use crate::{Description, Error, complaints, kernel};

/// From the kernel's enum scx_ops_flags: only tasks with the policy SCHED_EXT are scheduled.
const SCX_OPS_SWITCH_PARTIAL: u64 = 1 << 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All that the kernel's fair scheduler would: SCHED_OTHER, SCHED_BATCH, SCHED_IDLE and
    /// SCHED_EXT.
    Whole,
    /// Those of SCHED_EXT. They run only when no other task wants the CPU.
    Chosen,
}

#[derive(Debug)]
pub struct Opened {
    name: &'static str,
    object: OpenObject,
    params: Layout,
    least: Layout,
    ops: Layout,
    layouts: Layouts,
}

impl Opened {
    /// Opens a scheduler's object. Needs no privilege.
    pub fn new(scheduler: &Description) -> Result<Self, Error> {
        complaints::keep();
        let name = scheduler.name;
        let malformed = |what| Error::Malformed { name, what };
        let object = ObjectBuilder::default()
            .name(name)
            .and_then(|builder| builder.open_memory(scheduler.object))
            .map_err(Error::kernel("open a scheduler's object"))?;
        let btf = Btf::from_raw(name, scheduler.object)
            .map_err(Error::kernel("read the types of a scheduler's object"))?
            .ok_or_else(|| malformed("types"))?;
        Ok(Self {
            name,
            object,
            params: Layout::of_variable(&btf, ".data", "params").unwrap_or_default(),
            least: Layout::of_variable(&btf, ".data", "least").unwrap_or_default(),
            ops: Layout::of_struct(&btf, "sched_ext_ops").ok_or_else(|| malformed("operations"))?,
            layouts: Layouts {
                statistics: Layout::of_struct(&btf, "statistics")
                    .ok_or_else(|| malformed("statistics"))?,
                task: Layout::of_struct(&btf, &format!("{name}_task")).unwrap_or_default(),
                machine: Layout::of_variable(&btf, ".bss", "machine").unwrap_or_default(),
            },
        })
    }

    pub fn settings(&self) -> Vec<Value> {
        let mut maps = self.object.maps();
        let data = maps.find(|map| is_section(map.name(), ".data"));
        data.and_then(|map| map.initial_value().map(|bytes| self.params.read(bytes)))
            .unwrap_or_default()
    }

    /// Sets one of the [`settings`](Self::settings).
    /// Fails if there is none of that name, or the value is too large for it, or less than the
    /// scheduler can do with.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), Error> {
        let Some(field) = self.params.field(name) else {
            return Err(Error::NoSuchSetting {
                scheduler: self.name,
                name: name.to_owned(),
                known: self.params.names(),
            });
        };
        let mut maps = self.object.maps_mut();
        let mut data = maps.find(|map| is_section(map.name(), ".data"));
        let bytes = data.as_mut().and_then(|map| map.initial_value_mut());
        let bytes = bytes.unwrap_or_default();
        let name = name.to_owned();
        let least = self.least.field(&name).and_then(|field| field.read(bytes));
        match least.filter(|&least| i128::from(value) < least) {
            Some(least) => Err(Error::TooSmall { name, value, least }),
            None if field.write(bytes, value) => Ok(()),
            None => Err(Error::TooLarge { name, value }),
        }
    }

    /// Loads it and puts it in force. The kernel ends it if a task that is ready does not run for
    /// `watchdog`; without one, for the kernel's own 30 s.
    pub fn start(mut self, extent: Extent, watchdog: Option<Duration>) -> Result<Running, Error> {
        let name = self.name;
        if let Some(name) = kernel::status().ok_or(Error::NoSchedExt)?.scheduler {
            return Err(Error::OtherLoaded { name });
        }
        let flags = match extent {
            Extent::Whole => 0,
            Extent::Chosen => SCX_OPS_SWITCH_PARTIAL,
        };
        let watchdog_ms = watchdog.map_or(0, |span| {
            u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
        });
        self.add_to_operation("flags", flags)?;
        self.add_to_operation("timeout_ms", watchdog_ms)?;
        let object = self
            .object
            .load()
            .map_err(|error| Error::loading(name, error))?;
        Running::attach(name, object, self.layouts)
    }

    fn add_to_operation(&mut self, member: &'static str, more: u64) -> Result<(), Error> {
        let malformed = Error::Malformed {
            name: self.name,
            what: "operations",
        };
        let mut map = self.object.maps_mut().find(|map| map.name() == OPERATIONS);
        let bytes = map.as_mut().and_then(|map| map.initial_value_mut());
        let (Some(field), Some(bytes)) = (self.ops.field(member), bytes) else {
            return Err(malformed);
        };
        let own = field.read(bytes).and_then(|own| u64::try_from(own).ok());
        let value = own.ok_or(malformed)? + more;
        if field.write(bytes, value) {
            Ok(())
        } else {
            let name = member.to_owned();
            Err(Error::TooLarge { name, value })
        }
    }
}

/// The section that tells how the scheduler ended.
pub(crate) const OUTCOME: &str = ".data.outcome";

/// The map that holds the operations.
pub(crate) const OPERATIONS: &str = "scheduler";

/// libbpf puts the start of the object's name before the section's.
pub(crate) fn is_section(map: &OsStr, section: &str) -> bool {
    map.as_encoded_bytes().ends_with(section.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL;

    #[test]
    fn a_setting_is_what_it_was_set_to_and_the_others_stay() {
        for scheduler in &ALL {
            let mut opened = Opened::new(scheduler).unwrap();
            let before = opened.settings();
            let Some(name) = before.first().map(|setting| setting.name.clone()) else {
                continue;
            };
            opened.set(&name, 30_000).unwrap();
            for (now, before) in opened.settings().into_iter().zip(before) {
                let expected = if before.name == name {
                    30_000
                } else {
                    before.value
                };
                assert_eq!((now.value, &now.name), (expected, &before.name));
            }
        }
    }

    #[test]
    fn what_a_scheduler_cannot_do_with_is_refused_and_what_it_can_is_said() {
        let mut opened = Opened::new(crate::find("reserve").unwrap()).unwrap();
        let before = opened.settings();
        for name in ["portion_ns", "slice_ns"] {
            let error = opened.set(name, 0).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("20000"), "{error}");
            assert!(opened.set(name, 19_999).is_err());
        }
        assert_eq!(opened.settings(), before);
        opened.set("portion_ns", 20_000).unwrap();
        let mut opened = Opened::new(crate::find("grace").unwrap()).unwrap();
        assert!(opened.set("target_percent", 0).is_err());
        let mut opened = Opened::new(crate::find("best").unwrap()).unwrap();
        opened.set("mdn", 0).unwrap();
    }
}
