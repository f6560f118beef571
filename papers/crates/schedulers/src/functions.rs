//! Whether the kernel's types say how the functions that a scheduler calls are called.
//!
//! Since 7.1 the kernel adds an argument of its own to many of them: which program calls. Building
//! a kernel takes that argument out of the function's description, and adds a second description
//! that has it, under the name with `_impl` behind it. Debian's builds of 7.1 and 7.2 for trixie do
//! so with some of the functions only, with others from build to build. The verifier misses the
//! second description of the rest there, and refuses callers of one, whatever they declare.

use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, ReferencesType};

/// The kernel's own argument.
const PROGRAM: &str = "bpf_prog_aux";
/// The suffix in a declaration, where there is more than one of a function.
const OURS: &str = "___onbeat";

/// A function of the kernel that one of these schedulers' objects calls and that cannot be called.
/// A kernel that says nothing of its types has none.
pub(crate) fn misdescribed<'a>(objects: impl IntoIterator<Item = &'a [u8]>) -> Option<String> {
    let kernel = Btf::from_vmlinux().ok()?;
    objects.into_iter().find_map(|object| {
        let own = Btf::from_raw("scheduler", object).ok()??;
        called(&own).find(|function| asks_for_the_program(&kernel, function))
    })
}

/// The functions that are the kernel's, as it calls them. libbpf does not keep which ones a file
/// only declares.
fn called(own: &Btf<'_>) -> impl Iterator<Item = String> {
    own.type_by_kind::<Func<'_>>()
        .filter_map(|function| function.name()?.to_str())
        .filter(|name| name.contains("bpf_"))
        .map(|name| name.strip_suffix(OURS).unwrap_or(name).to_owned())
}

/// Whether the function's description has the kernel's own argument.
fn asks_for_the_program(types: &Btf<'_>, function: &str) -> bool {
    let Some(function) = types.type_by_name::<Func<'_>>(function) else {
        return false;
    };
    let Ok(prototype) = FuncProto::try_from(function.referenced_type()) else {
        return false;
    };
    let Some(last) = prototype.iter().last() else {
        return false;
    };
    let Some(pointer) = types.type_by_id::<Ptr<'_>>(last.ty) else {
        return false;
    };
    let pointed_at = pointer.referenced_type().skip_mods_and_typedefs();
    Struct::try_from(pointed_at).is_ok_and(|own| own.name().is_some_and(|name| name == PROGRAM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scheduler_calls_is_known_by_the_kernels_names() {
        for scheduler in &crate::ALL {
            let own = Btf::from_raw("scheduler", scheduler.object)
                .unwrap()
                .unwrap();
            let called: Vec<_> = called(&own).collect();
            for function in [
                "scx_bpf_create_dsq",
                "scx_bpf_dsq_insert___v2",
                "scx_bpf_dsq_insert",
            ] {
                assert!(called.iter().any(|name| name == function), "{called:?}");
            }
            assert!(!called.iter().any(|name| name == "enqueue"), "{called:?}");
        }
    }
}
