//! Finds the kernel's count of nested interrupts, so that a wakeup by a timer is not put down to
//! the thread which the timer interrupted; and the timers themselves.
//!
//! Each CPU has its own `preempt_count`, at the same distance from its run queue; both places are
//! in the kernel's BTF, or in its list of symbols where that leaves out the variables of CPUs (5.10
//! of Debian). It is a variable of its own, or (6.2 to 6.14) a member of `pcpu_hot`.

use std::fs;

use libbpf_rs::btf::types::{Composite, DataSec, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, TypeId};

const RUN_QUEUE: &str = "runqueues";
const COUNT: &str = "__preempt_count";

/// How many bytes after a CPU's run queue its `preempt_count` lies; none if the kernel keeps it
/// elsewhere.
pub(super) fn preempt_count_from_rq() -> Option<i64> {
    let by_types = || {
        let btf = Btf::from_vmlinux().ok()?;
        from_rq(&btf, COUNT).or_else(|| {
            let hot = btf.type_by_name::<Struct<'_>>("pcpu_hot")?;
            Some(from_rq(&btf, "pcpu_hot")? + member(&btf, hot.into(), "preempt_count")?)
        })
    };
    by_types().or_else(|| by_symbols(&symbols()?, COUNT))
}

/// How many bytes after a CPU's run queue its timers lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timers {
    /// All of them.
    pub(super) all: i64,
    /// That of its tick, which other work is done in, too.
    pub(super) tick: i64,
}

/// See [`Timers`]; none if the kernel keeps them elsewhere.
pub(super) fn timers_from_rq() -> Option<Timers> {
    let btf = Btf::from_vmlinux().ok()?;
    let ticks = btf.type_by_name::<Struct<'_>>("tick_sched")?;
    let in_tick = member(&btf, ticks.into(), "sched_timer")?;
    let timers = |place: &dyn Fn(&str) -> Option<i64>| {
        Some(Timers {
            all: place("hrtimer_bases")?,
            tick: place("tick_cpu_sched")? + in_tick,
        })
    };
    timers(&|name| from_rq(&btf, name)).or_else(|| {
        let symbols = symbols()?;
        timers(&|name| by_symbols(&symbols, name))
    })
}

fn symbols() -> Option<String> {
    fs::read_to_string("/proc/kallsyms").ok()
}

/// How many bytes after a CPU's run queue its variable of this name lies, by the kernel's types.
fn from_rq(btf: &Btf<'_>, name: &str) -> Option<i64> {
    Some(variable(btf, name)? - variable(btf, RUN_QUEUE)?)
}

/// The same by the lines of `/proc/kallsyms`, where all are at 0 for who may not know.
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

/// The offset of a variable of each CPU.
fn variable(btf: &Btf<'_>, name: &str) -> Option<i64> {
    let is_named = |ty: TypeId| {
        btf.type_by_id::<Var<'_>>(ty)
            .is_some_and(|var| var.name().is_some_and(|n| n == name))
    };
    btf.type_by_kind::<DataSec<'_>>()
        .filter(|section| section.name().is_some_and(|n| n == ".data..percpu"))
        .find_map(|section| section.iter().find(|var| is_named(var.ty)))
        .map(|var| i64::from(var.offset))
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
