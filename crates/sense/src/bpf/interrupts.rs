//! Finds the kernel's count of nested interrupts, so that a wakeup by a timer is not put down to
//! the thread which the timer interrupted; and the timers themselves.
//!
//! Each CPU has its own `preempt_count`, at the same distance from its run queue; both places are
//! in the kernel's BTF, or in its list of symbols where that leaves out the variables of CPUs (5.10
//! of Debian). It is a variable of its own, or (6.2 to 6.14) a member of `pcpu_hot`.

use std::collections::HashMap;
use std::fs;
use std::sync::OnceLock;

use libbpf_rs::btf::types::{Composite, DataSec, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, TypeId};

const RUN_QUEUE: &str = "runqueues";
const COUNT: &str = "__preempt_count";
/// On the kernels that keep the count in one of its members.
const HOT: &str = "pcpu_hot";
const TIMERS: &str = "hrtimer_bases";
const TICK: &str = "tick_cpu_sched";

/// The offsets that the running kernel keeps for each CPU, in bytes after the CPU's run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunQueueOffsets {
    /// The `preempt_count`; none if the kernel keeps it elsewhere.
    pub(super) preempt_count: Option<i64>,
    /// The timers; none if the kernel keeps them elsewhere.
    pub(super) timers: Option<Timers>,
}

/// How many bytes after a CPU's run queue its timers lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timers {
    /// All of them.
    pub(super) all: i64,
    /// That of its tick, which other work is done in, too.
    pub(super) tick: i64,
}

/// The places, looked up once: reading the kernel's types takes 10 ms, in which a program that
/// `run` is to start waits.
pub(super) fn places() -> RunQueueOffsets {
    static PLACES: OnceLock<RunQueueOffsets> = OnceLock::new();
    *PLACES.get_or_init(|| {
        let Ok(btf) = Btf::from_vmlinux() else {
            return RunQueueOffsets::default();
        };
        let found = by_types(&btf);
        if found.preempt_count.is_some() && found.timers.is_some() {
            return found;
        }
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        RunQueueOffsets {
            preempt_count: found.preempt_count.or_else(|| by_symbols(&symbols, COUNT)),
            timers: found
                .timers
                .or_else(|| timers(&btf, |name| by_symbols(&symbols, name))),
        }
    })
}

/// The places by the kernel's types.
fn by_types(btf: &Btf<'_>) -> RunQueueOffsets {
    let variables = variables(btf, &[RUN_QUEUE, COUNT, HOT, TIMERS, TICK]);
    let from_rq = |name: &str| Some(variables.get(name)? - variables.get(RUN_QUEUE)?);
    let in_hot = || {
        let hot = btf.type_by_name::<Struct<'_>>(HOT)?;
        Some(from_rq(HOT)? + member(btf, hot.into(), "preempt_count")?)
    };
    RunQueueOffsets {
        preempt_count: from_rq(COUNT).or_else(in_hot),
        timers: timers(btf, from_rq),
    }
}

/// The timers, where `from_rq` tells the place of a CPU's variable.
fn timers(btf: &Btf<'_>, from_rq: impl Fn(&str) -> Option<i64>) -> Option<Timers> {
    let ticks = btf.type_by_name::<Struct<'_>>("tick_sched")?;
    Some(Timers {
        all: from_rq(TIMERS)?,
        tick: from_rq(TICK)? + member(btf, ticks.into(), "sched_timer")?,
    })
}

/// How many bytes after a CPU's run queue its variable of this name lies, by the lines of
/// `/proc/kallsyms`, where all are at 0 for a reader without the privilege.
fn by_symbols(symbols: &str, name: &str) -> Option<i64> {
    let place = |name: &str| {
        let mut lines = symbols.lines().map(str::split_ascii_whitespace);
        lines.find_map(|mut words| {
            let (place, _, found) = (words.next()?, words.next()?, words.next()?);
            (found == name).then(|| u64::from_str_radix(place, 16).ok())?
        })
    };
    let from_rq = place(name)?.wrapping_sub(place(RUN_QUEUE)?).cast_signed();
    (from_rq != 0).then_some(from_rq)
}

/// The offsets of those of these variables of each CPU that the kernel has.
fn variables<'a>(btf: &Btf<'_>, names: &[&'a str]) -> HashMap<&'a str, i64> {
    let is_of_cpus = |section: &DataSec<'_>| section.name().is_some_and(|n| n == ".data..percpu");
    let named = |ty: TypeId| {
        let var = btf.type_by_id::<Var<'_>>(ty)?;
        let name = var.name()?;
        names.iter().copied().find(|&wanted| name == wanted)
    };
    btf.type_by_kind::<DataSec<'_>>()
        .find(is_of_cpus)
        .iter()
        .flat_map(|section| section.iter())
        .filter_map(|var| Some((named(var.ty)?, i64::from(var.offset))))
        .collect()
}

/// The offset, in bytes, of a member, which may be one of a member without a name.
fn member(btf: &Btf<'_>, of: Composite<'_>, name: &str) -> Option<i64> {
    of.iter().find_map(|member| {
        let MemberAttr::Normal { offset } = member.attr else {
            return None;
        };
        let within = match member.name {
            Some(found) => (found == name).then_some(0),
            None => self::member(btf, btf.type_by_id(member.ty)?, name),
        };
        Some(i64::from(offset / 8) + within?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_by_the_symbols_of_who_may_see_them() {
        let seen = "000000000001fb40 A __preempt_count\n0000000000031980 A runqueues\nffffffff81000000 T _text\n";
        assert_eq!(by_symbols(seen, COUNT), Some(0x1fb40 - 0x31980));
        let hidden = "0000000000000000 A __preempt_count\n0000000000000000 A runqueues\n";
        assert_eq!(by_symbols(hidden, COUNT), None);
        assert_eq!(by_symbols("0 A runqueues\ngarbage\n", COUNT), None);
    }

    #[test]
    fn a_member_is_found_in_members_without_names() {
        let Ok(btf) = Btf::from_vmlinux() else {
            assert!(std::env::var_os("CI").is_none(), "a kernel without BTF");
            return;
        };
        let page = btf.type_by_name::<Struct<'_>>("page").unwrap();
        // The flags, a word, and in a union in one what begins with two words.
        assert_eq!(member(&btf, page.into(), "mapping"), Some(24));
        assert_eq!(member(&btf, page.into(), "nothing"), None);
    }
}
