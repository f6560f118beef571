//! What tasks have used above ordinary effective priority, and who lends his: meter.h.

use std::collections::HashMap;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder, libbpf_sys};
use memmap2::{MmapOptions, MmapRaw};
use onbeat_model::{Instant, Span, TaskId};

use super::skeleton::types::{lender, member, meter_slot, spender as kinds, spender_key};
use super::{BpfError, wire};
use onbeat_kernel::clock;

/// An interval of the meter that is open for this long is charged at a look. Looks come every 5 ms.
const SETTLED_AFTER: Span = Span::from_ms(4);

/// Who is charged. Numbers are the caller's own; 0 is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spender {
    Application(u32),
    Account(u32),
}

impl Spender {
    fn key(self) -> [u8; size_of::<spender_key>()] {
        let (kind, number) = match self {
            Self::Application(number) => (kinds::SPENDER_APPLICATION, number),
            Self::Account(number) => (kinds::SPENDER_ACCOUNT, number),
        };
        let mut key = [0; size_of::<spender_key>()];
        key[offset_of!(spender_key, kind)..][..4].copy_from_slice(&kind.0.to_ne_bytes());
        key[offset_of!(spender_key, number)..][..4].copy_from_slice(&number.to_ne_bytes());
        key
    }
}

const TID: usize = offset_of!(meter_slot, tid);

/// See the file's head. Copies are of the same meter.
#[derive(Clone, Debug)]
pub struct Meter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    members: MapHandle,
    spent: MapHandle,
    slots: Table,
    lenders: Table,
    overdrawn: Mutex<RingBuffer<'static>>,
    look: OwnedFd,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    tasks: HashMap<TaskId, member>,
    free: Vec<u32>,
}

impl Meter {
    pub(super) fn new(
        [members, spent, slots, lenders, overdrawn]: [MapHandle; 5],
        look: OwnedFd,
    ) -> Result<Self, BpfError> {
        let mut wakes = RingBufferBuilder::new();
        wakes.add(&overdrawn, |_| 0).map_err(BpfError::loading)?;
        Ok(Self(Arc::new(Inner {
            members,
            spent,
            slots: Table::map(&slots)?,
            lenders: Table::map(&lenders)?,
            overdrawn: Mutex::new(wakes.build().map_err(BpfError::loading)?),
            look,
            known: Mutex::default(),
        })))
    }

    /// The CPU time that was spent so far, as real-time and deadline tasks or members with a nice
    /// value below 0, up to some milliseconds if [`look`](Self::look) is called as often.
    pub fn spent(&self, spender: Spender) -> Span {
        let value = self.0.spent.lookup(&spender.key(), MapFlags::ANY);
        let value = value.ok().flatten();
        let ns = value.and_then(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?)));
        Span::from_ns(ns.unwrap_or_default())
    }

    pub fn assign(&self, task: TaskId, application: u32) {
        self.change(task, |member, _| member.application = application);
    }

    pub fn charge_to(&self, task: TaskId, account: u32) {
        if self.known().tasks.get(&task).map_or(0, |it| it.account) == account {
            return;
        }
        self.change(task, |member, _| member.account = account);
    }

    /// `task` has another priority from here than it had. Others may inherit it for this CPU time
    /// in a tenth of a second; without one, it has none any more that it could lend.
    pub fn lends(&self, task: TaskId, allowance: Option<Span>) {
        let lenders = &self.0.lenders;
        let place = self.known().tasks.get(&task).map_or(0, |it| it.place);
        let former = (place != 0).then(|| lenders.u64_of(place, offset_of!(lender, allowance_ns)));
        if former.map(|former| former.load(Relaxed)) == allowance.map(Span::as_ns) {
            return;
        }
        self.change(task, |member, known| match allowance {
            Some(allowance) => {
                if member.place == 0 {
                    member.place = known.place(lenders);
                }
                let field = |at| lenders.u64_of(member.place, at);
                field(offset_of!(lender, allowance_ns)).store(allowance.as_ns(), Relaxed);
                let id = wire::pack(task);
                if field(offset_of!(lender, id)).swap(id, Release) != id {
                    field(offset_of!(lender, lent_ns)).store(0, Relaxed);
                    field(offset_of!(lender, is_over)).store(0, Relaxed);
                    field(offset_of!(lender, heir)).store(0, Relaxed);
                }
            }
            None => known.leave(member, lenders),
        });
        // It may run already, and no switch would tell.
        self.look_where(|cpu| self.0.slots.u32_of(cpu, TID).load(Relaxed) == task.tid);
    }

    /// `task` is gone, or nothing more is to be charged for it.
    pub fn forget(&self, task: TaskId) {
        let known = &mut *self.known();
        if let Some(mut member) = known.tasks.remove(&task) {
            known.leave(&mut member, &self.0.lenders);
            // It is there, unless there was no room.
            let _ = self.0.members.delete(&wire::pack(task).to_ne_bytes());
            let mut others = known.tasks.values();
            if !others.any(|other| other.application == member.application) {
                // The table has room for so many applications at a time, not ever.
                let _ = (self.0.spent).delete(&Spender::Application(member.application).key());
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, task: TaskId, change: impl FnOnce(&mut member, &mut Known)) {
        let known = &mut *self.known();
        let mut member = known.tasks.get(&task).copied().unwrap_or_default();
        change(&mut member, known);
        let numbers = [member.application, member.account, member.place, 0];
        let value: Vec<u8> = numbers.into_iter().flat_map(u32::to_ne_bytes).collect();
        let id = wire::pack(task).to_ne_bytes();
        // Without room it is charged to its user alone.
        let _ = self.0.members.update(&id, &value, MapFlags::ANY);
        known.tasks.insert(task, member);
    }

    /// Charges what runs for some milliseconds already. Without it, what never sleeps is charged
    /// when it does. Allocates nothing.
    pub fn look(&self) {
        let now = clock::now().as_ns();
        self.look_where(|cpu| {
            let since = self.0.slots.u64_of(cpu, offset_of!(meter_slot, since_ns));
            now.saturating_sub(since.load(Relaxed)) >= SETTLED_AFTER.as_ns()
        });
    }

    /// When a thread last ran whose real-time priority is not from here.
    #[must_use]
    pub fn others_real_time(&self) -> Option<Instant> {
        let of = |cpu| {
            self.0
                .slots
                .u64_of(cpu, offset_of!(meter_slot, real_time_ns))
        };
        let last = (0..self.0.slots.len)
            .map(|cpu| of(cpu).load(Relaxed))
            .max()?;
        (last != 0).then(|| Instant::from_ns(last))
    }

    fn look_where(&self, wanted: impl Fn(u32) -> bool) {
        for cpu in 0..self.0.slots.len {
            if self.0.slots.u32_of(cpu, TID).load(Relaxed) == 0 || !wanted(cpu) {
                continue;
            }
            let mut options = libbpf_sys::bpf_test_run_opts {
                sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
                flags: libbpf_sys::BPF_F_TEST_RUN_ON_CPU,
                cpu,
                ..libbpf_sys::bpf_test_run_opts::default()
            };
            // A CPU that is gone runs nothing.
            // SAFETY: the options are valid, and name no buffer.
            unsafe {
                libbpf_sys::bpf_prog_test_run_opts(self.0.look.as_raw_fd(), &raw mut options);
            }
        }
    }

    /// Tells the tasks that have something to lend. Allocates nothing.
    pub fn lenders(&self, mut tell: impl FnMut(TaskId)) {
        self.each(|task, _| tell(task));
    }

    /// Tells the tasks that have lent more than they may, or to another user's, and to which of
    /// these, for as long as they have something to lend. Allocates nothing.
    pub fn overdrawn(&self, mut tell: impl FnMut(TaskId, Option<TaskId>)) {
        self.each(|task, place| {
            let field = |at| self.0.lenders.u64_of(place, at).load(Relaxed);
            if field(offset_of!(lender, is_over)) != 0 {
                let heir = field(offset_of!(lender, heir));
                tell(task, (heir != 0).then(|| wire::unpack(heir)));
            }
        });
    }

    /// Sleeps until another task is [`overdrawn`](Self::overdrawn), which is true, or for so long.
    /// Allocates nothing.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let wakes = self.0.overdrawn.lock();
        let wakes = wakes.unwrap_or_else(PoisonError::into_inner);
        let woken = wakes.poll_raw(timeout);
        if woken < 0 {
            thread::sleep(timeout);
        }
        woken > 0
    }

    fn each(&self, mut then: impl FnMut(TaskId, u32)) {
        let lenders = &self.0.lenders;
        for place in 1..=lenders.used.load(Relaxed) {
            let id = lenders.u64_of(place, offset_of!(lender, id)).load(Acquire);
            if id != 0 {
                then(wire::unpack(id), place);
            }
        }
    }
}

impl Known {
    /// A place in the table of lenders; 0 if there is none.
    fn place(&mut self, lenders: &Table) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let fresh = lenders.used.load(Relaxed) + 1;
            if fresh >= lenders.len {
                return 0;
            }
            lenders.used.store(fresh, Relaxed);
            fresh
        })
    }

    fn leave(&mut self, member: &mut member, lenders: &Table) {
        let place = std::mem::take(&mut member.place);
        if place != 0 {
            lenders
                .u64_of(place, offset_of!(lender, id))
                .store(0, Release);
            self.free.push(place);
        }
    }
}

#[derive(Debug)]
struct Table {
    entries: MmapRaw,
    stride: usize,
    len: u32,
    /// The entries up to this one were in use at some time; the one of number 0 never is.
    used: AtomicU32,
}

impl Table {
    fn map(map: &MapHandle) -> Result<Self, BpfError> {
        let stride = (map.value_size() as usize).next_multiple_of(8);
        let len = map.max_entries();
        let entries = MmapOptions::new()
            .len(stride * len as usize)
            .map_raw(&map.as_fd())
            .map_err(|source| BpfError::kernel("map the meter")(source.into()))?;
        Ok(Self {
            entries,
            stride,
            len,
            used: AtomicU32::new(0),
        })
    }

    fn place<T>(&self, entry: u32, at: usize) -> *mut T {
        let entry = entry.min(self.len - 1) as usize;
        // SAFETY: the entry is one of the map's, and `at` the offset of a field of its type.
        unsafe {
            self.entries
                .as_mut_ptr()
                .add(entry * self.stride + at)
                .cast()
        }
    }

    fn u64_of(&self, entry: u32, at: usize) -> &AtomicU64 {
        // SAFETY: it stays mapped as long as `self` lives, and is only accessed by atomics.
        unsafe { AtomicU64::from_ptr(self.place(entry, at)) }
    }

    fn u32_of(&self, entry: u32, at: usize) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.place(entry, at)) }
    }
}
