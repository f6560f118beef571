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
    use std::io::Write;

    use super::*;

    /// The numbers of the kinds in include/uapi/linux/btf.h.
    const INT: u32 = 1 << 24;
    const PTR: u32 = 2 << 24;
    const STRUCT: u32 = 4 << 24;
    const CONST: u32 = 10 << 24;
    const FUNC: u32 = 12 << 24;
    const FUNC_PROTO: u32 = 13 << 24;

    /// Types as a kernel tells them, with an `insert(u64, LAST)`, where LAST is the type of that
    /// number.
    fn types(last: u32) -> Btf<'static> {
        let strings = b"\0u64\0bpf_prog_aux\0other\0insert\0";
        let [number, program, other, insert] = [1, 5, 18, 24];
        #[rustfmt::skip]
        let words = [
            number, INT, 8, 64,                      // 1
            program, STRUCT, 0,                      // 2
            0, CONST, 2,                             // 3
            0, PTR, 3,                               // 4: const struct bpf_prog_aux *
            other, STRUCT, 0,                        // 5
            0, PTR, 5,                               // 6: struct other *
            0, FUNC_PROTO | 2, 0, number, 1, 0, last, // 7
            insert, FUNC, 7,                         // 8
        ];
        let words_size = u32::try_from(4 * words.len()).unwrap();
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, words_size, words_size, 31].iter().chain(&words) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(strings);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        Btf::from_path(file.path()).unwrap()
    }

    #[test]
    fn a_function_is_misdescribed_if_it_asks_for_the_kernels_own_argument() {
        assert!(asks_for_the_program(&types(4), "insert"));
        for last in [1, 6] {
            assert!(!asks_for_the_program(&types(last), "insert"), "{last}");
        }
        assert!(!asks_for_the_program(&types(4), "remove"));
    }

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
