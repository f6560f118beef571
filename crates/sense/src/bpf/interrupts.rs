//! Finds the kernel's count of nested interrupts, so that a wakeup by a timer is not put down to the
//! thread which the timer interrupted.
//!
//! Each CPU has its own `preempt_count`, at the same distance from its run queue; both places are in
//! the kernel's BTF. It is a variable of its own, or (6.2 to 6.14) a member of `pcpu_hot`.

use libbpf_rs::btf::types::{DataSec, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, TypeId};

/// How many bytes after a CPU's run queue its `preempt_count` lies; none if the kernel keeps it
/// elsewhere.
pub(super) fn preempt_count_from_rq() -> Option<i64> {
    let btf = Btf::from_vmlinux().ok()?;
    let rq = variable(&btf, "runqueues")?;
    let count = variable(&btf, "__preempt_count").or_else(|| {
        Some(variable(&btf, "pcpu_hot")? + member(&btf, "pcpu_hot", "preempt_count")?)
    })?;
    Some(count - rq)
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

/// The offset, in bytes, of a member of a struct.
fn member(btf: &Btf<'_>, of: &str, name: &str) -> Option<i64> {
    let found = btf.type_by_name::<Struct<'_>>(of)?;
    found.iter().find_map(|member| match member.attr {
        MemberAttr::Normal { offset } if member.name.is_some_and(|n| n == name) => {
            Some(i64::from(offset / 8))
        }
        _ => None,
    })
}
