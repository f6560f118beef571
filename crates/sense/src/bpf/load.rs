//! Loads the tracer's programs and attaches them; what remains are their links and maps.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapHandle, MapMut};

use super::programs::Programs;
use super::skeleton::{TracerSkel, TracerSkelBuilder};
use super::{BpfError, BpfOptions, Hooks, MarkHook, interrupts};

/// The attached tracer. The kernel keeps programs and maps for as long as these are held.
pub(super) struct Loaded {
    pub(super) hooks: Hooks,
    pub(super) mark_hook: MarkHook,
    pub(super) attached: Attached,
    pub(super) chooser: Link,
    pub(super) running: Option<Link>,
    pub(super) records: MapHandle,
    /// The tasks that tracked tasks wake, without being tracked themselves.
    pub(super) partners: MapHandle,
    pub(super) ends: MapHandle,
    /// The meter's: members, sums, slots, lenders, and who is woken.
    pub(super) meter: [MapHandle; 5],
    pub(super) state: MapHandle,
}

pub(super) struct Attached {
    skeleton: TracerSkel<'static>,
    hooks: Hooks,
    /// The names of those whose executions are told.
    pub(super) programs: Programs,
}

impl Attached {
    pub(super) fn look(&self) -> Result<OwnedFd, BpfError> {
        let program = self.skeleton.progs.look.as_fd().try_clone_to_owned();
        program.map_err(|e| BpfError::loading(e.into()))
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached")
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}

/// Loads the programs on BTF tracepoints, or on raw ones where the kernel refuses those; and hears
/// marks in the cheapest way that it does not refuse.
pub(super) fn load(options: &BpfOptions) -> Result<Loaded, BpfError> {
    // libbpf would write to standard error what comes back as an error all the same.
    libbpf_rs::set_print(None);
    let both = [Hooks::Btf, Hooks::Raw];
    let hooks = match &options.hooks {
        Hooks::Probe => &both[..],
        chosen => std::slice::from_ref(chosen),
    };
    let ways = hooks
        .iter()
        .flat_map(|&hooks| MarkHook::ALL.map(|marks| (hooks, marks)));
    let mut refused = None;
    for (hooks, mark_hook) in ways {
        match load_on(hooks, mark_hook, options) {
            Err(BpfError::NoPrivilege) => return Err(BpfError::NoPrivilege),
            Err(error) => refused = Some(error),
            loaded => return loaded,
        }
    }
    Err(refused.expect("there is a way to try"))
}

fn load_on(hooks: Hooks, mark_hook: MarkHook, options: &BpfOptions) -> Result<Loaded, BpfError> {
    // The skeleton borrows the place of its object, one pointer, and closes the object itself.
    let object = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = TracerSkelBuilder::default()
        .open(object)
        .map_err(BpfError::loading)?;
    if let Some(rodata) = &mut open.maps.rodata_data {
        rodata.buffer_bytes = whole_buffer(options.buffer_bytes).into();
        rodata.most_tasks = options.most_tasks.into();
        rodata.raw_wakeups = options.raw_wakeups;
        rodata.bounds_bursts = options.bound_bursts;
        rodata.tell_partners = options.partners;
        rodata.tells_calls = !options.calls.is_empty();
        rodata.calls = options.calls.words();
        let places = interrupts::places();
        rodata.preempt_count_from_rq = places.preempt_count.unwrap_or(0);
        if let Some(timers) = places.timers {
            rodata.timers_from_rq = timers.all;
            rodata.tick_from_rq = timers.tick;
        }
    }
    let maps = &mut open.maps;
    maps.records
        .set_max_entries(whole_buffer(options.buffer_bytes))
        .map_err(BpfError::loading)?;
    let cpus = libbpf_rs::num_possible_cpus().map_err(BpfError::loading)?;
    maps.slots
        .set_max_entries(u32::try_from(cpus).unwrap_or(1))
        .map_err(BpfError::loading)?;
    // Those that have exited stay in the table until the kernel has freed them, too.
    maps.activities_raw
        .set_max_entries(options.most_tasks.saturating_mul(2).max(1))
        .map_err(BpfError::loading)?;
    let unused = if hooks == Hooks::Raw {
        &mut maps.activities
    } else {
        &mut maps.activities_raw
    };
    unused.set_autocreate(false).map_err(BpfError::loading)?;
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy();
        let kind = name.strip_suffix("_raw").unwrap_or(&name);
        let has_raw = !matches!(kind, "run" | "inherited" | "look");
        let is_of_hooks = !has_raw || (kind != name) == (hooks == Hooks::Raw);
        // A system call's way is longer for the whole machine while its tracepoint is used. And
        // each type of the kernel's that a program reads takes libbpf 1 ms to find.
        let is_wanted = match kind {
            "marked" => mark_hook == MarkHook::Tracepoint,
            "marked_by_fentry" => mark_hook == MarkHook::Fentry,
            "marked_by_kprobe" => mark_hook == MarkHook::Kprobe,
            "called" => !options.calls.is_empty(),
            "run" | "other_became" => options.tell_programs,
            _ => true,
        };
        program.set_autoload(is_wanted && is_of_hooks);
    }
    let mut skeleton = open.load().map_err(BpfError::loading)?;
    skeleton.attach().map_err(BpfError::loading)?;

    let chooser = (skeleton.links.choose.take()).or_else(|| skeleton.links.choose_raw.take());
    let chooser = chooser
        .ok_or_else(|| BpfError::loading(libbpf_rs::Error::from_raw_os_error(libc::EOPNOTSUPP)))?;
    let running = skeleton.links.run.take();
    let maps = &skeleton.maps;
    let handle = |map: &MapMut<'_>| MapHandle::try_from(map).map_err(BpfError::loading);
    Ok(Loaded {
        hooks,
        mark_hook,
        chooser,
        running,
        records: handle(&maps.records)?,
        partners: handle(&maps.partners)?,
        ends: handle(&maps.ends)?,
        meter: [
            handle(&maps.members)?,
            handle(&maps.spent)?,
            handle(&maps.slots)?,
            handle(&maps.lenders)?,
            handle(&maps.overdrawn)?,
        ],
        state: handle(&maps.bss)?,
        attached: Attached {
            programs: Programs::new(handle(&maps.programs)?),
            skeleton,
            hooks,
        },
    })
}

/// A ring buffer's size must be a power of two and a whole number of pages.
fn whole_buffer(bytes: u32) -> u32 {
    // SAFETY: sysconf has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    bytes
        .max(u32::try_from(page).unwrap_or(4096))
        .min(1 << 30)
        .next_power_of_two()
}
