//! The tasks that tracked tasks wake, without being tracked themselves: `struct partner` of
//! record.h, read now and then and not event by event, so that a wakeup costs an untracked task
//! next to nothing.

use std::mem::offset_of;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use onbeat_model::{Event, Instant, Name, Task};

use super::skeleton::types::{partner, partner_key};
use super::wire;

/// Between two readings of who was woken. Pipelines are reviewed every 250 ms (`onbeat-control`),
/// so two readings fit between two reviews.
const PARTNERS_EVERY: onbeat_model::Span = onbeat_model::Span::from_ms(100);
/// How many are read with one system call. The programs of a desktop wait for some twenty servers.
const BATCH: u32 = 64;

const KEY: usize = size_of::<partner_key>();
const VALUE: usize = size_of::<partner>();

/// The counts, and when they are to be read again.
#[derive(Debug)]
pub(super) struct PartnerCounts {
    map: MapHandle,
    next: Instant,
}

impl PartnerCounts {
    pub(super) const fn new(map: MapHandle) -> Self {
        Self {
            map,
            next: Instant::ZERO,
        }
    }

    /// Appends who was woken since the last time, if it is time again.
    ///
    /// Entries that the kernel could not hand over stay, and are told the next time.
    pub(super) fn tell(&mut self, now: Instant, events: &mut Vec<Event>) {
        if now < self.next {
            return;
        }
        self.next = now + PARTNERS_EVERY;
        let read = self
            .map
            .lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY);
        let told = |(key, value): (Vec<u8>, Vec<u8>)| woke(&key, &value, now);
        events.extend(read.into_iter().flatten().filter_map(told));
    }
}

pub(super) fn woke(key: &[u8], value: &[u8], at: Instant) -> Option<Event> {
    let key: &[u8; KEY] = key.try_into().ok()?;
    let value: &[u8; VALUE] = value.try_into().ok()?;
    Some(Event::Woke {
        at,
        task: wire::unpack(wire::long(key, offset_of!(partner_key, waker))),
        wakee: Task {
            id: wire::unpack(wire::long(key, offset_of!(partner_key, wakee))),
            pid: u32::try_from(wire::long(value, offset_of!(partner, pid))).ok()?,
            comm: Name::new(value.get(offset_of!(partner, comm)..)?),
        },
        count: wire::long(value, offset_of!(partner, count)),
    })
}
