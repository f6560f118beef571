//! Loads the tracer's programs and attaches them; what remains are their links and maps.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapHandle};

use super::programs::Programs;
use super::skeleton::{TracerSkel, TracerSkelBuilder};
use super::{BpfError, BpfOptions, Hooks, MarkHook, interrupts};

/// The attached tracer. The kernel keeps programs and maps for as long as these are held.
pub(super) struct Loaded {
    pub(super) hooks: Hooks,
    pub(super) mark_hook: MarkHook,
    pub(super) attached: Attached,
    /// The task iterator.
    pub(super) chooser: Link,
    /// The iterator of programs.
    pub(super) running: Option<Link>,
    pub(super) records: MapHandle,
    /// The tasks that tracked tasks wake, without being tracked themselves.
    pub(super) partners: MapHandle,
    /// How tasks with reservations end.
    pub(super) ends: MapHandle,
    /// The meter's: members, sums, slots and lenders.
    pub(super) meter: [MapHandle; 4],
    /// The page shared with the programs.
    pub(super) state: MapHandle,
}

/// The programs, which hear for as long as this is held.
pub(super) struct Attached {
    _links: Vec<Link>,
    skeleton: TracerSkel<'static>,
    hooks: Hooks,
    /// The names of those whose executions are told.
    pub(super) programs: Programs,
}

impl Attached {
    /// The program that charges what runs on a CPU.
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
    let (maps, programs) = (&mut open.maps, &mut open.progs);
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
    let (unused_map, unused_programs) = if hooks == Hooks::Raw {
        (
            &mut maps.activities,
            [
                &mut programs.waking,
                &mut programs.wakeup_new,
                &mut programs.switched,
                &mut programs.forked,
                &mut programs.renamed,
                &mut programs.became,
                &mut programs.freed,
                &mut programs.choose,
            ],
        )
    } else {
        (
            &mut maps.activities_raw,
            [
                &mut programs.waking_raw,
                &mut programs.wakeup_new_raw,
                &mut programs.switched_raw,
                &mut programs.forked_raw,
                &mut programs.renamed_raw,
                &mut programs.became_raw,
                &mut programs.freed_raw,
                &mut programs.choose_raw,
            ],
        )
    };
    let tells_calls = !options.calls.is_empty();
    for (program, hook, of_raw) in [
        (&mut programs.marked, MarkHook::Tracepoint, false),
        (&mut programs.marked_raw, MarkHook::Tracepoint, true),
        (&mut programs.marked_by_fentry, MarkHook::Fentry, false),
        (&mut programs.marked_by_fentry_raw, MarkHook::Fentry, true),
        (&mut programs.marked_by_kprobe, MarkHook::Kprobe, false),
        (&mut programs.marked_by_kprobe_raw, MarkHook::Kprobe, true),
    ] {
        program.set_autoload(hook == mark_hook && of_raw == (hooks == Hooks::Raw));
    }
    // A system call's way is longer for the whole machine while its tracepoint is used. And each
    // type of the kernel's that a program reads takes libbpf 1 ms to find.
    programs
        .called
        .set_autoload(tells_calls && hooks != Hooks::Raw);
    programs
        .called_raw
        .set_autoload(tells_calls && hooks == Hooks::Raw);
    programs
        .other_became
        .set_autoload(options.tell_programs && hooks != Hooks::Raw);
    programs.run.set_autoload(options.tell_programs);
    programs
        .other_became_raw
        .set_autoload(options.tell_programs && hooks == Hooks::Raw);
    unused_map
        .set_autocreate(false)
        .map_err(BpfError::loading)?;
    for program in unused_programs {
        program.set_autoload(false);
    }
    let mut skeleton = open.load().map_err(BpfError::loading)?;
    skeleton.attach().map_err(BpfError::loading)?;

    let records = MapHandle::try_from(&skeleton.maps.records).map_err(BpfError::loading)?;
    let partners = MapHandle::try_from(&skeleton.maps.partners).map_err(BpfError::loading)?;
    let programs = MapHandle::try_from(&skeleton.maps.programs).map_err(BpfError::loading)?;
    let ends = MapHandle::try_from(&skeleton.maps.ends).map_err(BpfError::loading)?;
    let maps = &skeleton.maps;
    let meter = [
        MapHandle::try_from(&maps.members).map_err(BpfError::loading)?,
        MapHandle::try_from(&maps.spent).map_err(BpfError::loading)?,
        MapHandle::try_from(&maps.slots).map_err(BpfError::loading)?,
        MapHandle::try_from(&maps.lenders).map_err(BpfError::loading)?,
    ];
    let state = MapHandle::try_from(&skeleton.maps.bss).map_err(BpfError::loading)?;
    let links = std::mem::take(&mut skeleton.links);
    let running = links.run;
    let chooser = links
        .choose
        .or(links.choose_raw)
        .ok_or_else(|| BpfError::loading(libbpf_rs::Error::from_raw_os_error(libc::EOPNOTSUPP)))?;
    let links = [
        links.waking,
        links.wakeup_new,
        links.switched,
        links.inherited,
        links.called,
        links.called_raw,
        links.forked,
        links.renamed,
        links.became,
        links.other_became,
        links.freed,
        links.marked,
        links.marked_by_fentry,
        links.marked_by_kprobe,
        links.waking_raw,
        links.wakeup_new_raw,
        links.switched_raw,
        links.forked_raw,
        links.renamed_raw,
        links.became_raw,
        links.other_became_raw,
        links.freed_raw,
        links.marked_raw,
        links.marked_by_fentry_raw,
        links.marked_by_kprobe_raw,
    ];
    Ok(Loaded {
        hooks,
        mark_hook,
        attached: Attached {
            _links: links.into_iter().flatten().collect(),
            skeleton,
            hooks,
            programs: Programs::new(programs),
        },
        chooser,
        running,
        records,
        partners,
        ends,
        meter,
        state,
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
