//! The flags for BPF programs, such that the same sources give the same object wherever they are:
//! the object keeps the paths of its sources, for the verifier's messages.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::API_HEADERS;

/// The arguments for clang, for a package from which `checkout` leads to the whole. Libbpf's
/// headers are unpacked below `out`, as the builder itself would unpack them into a folder with a
/// name of chance.
pub(crate) fn arguments(out: &Path, checkout: &str) -> Vec<OsString> {
    let headers = out.join("bpf");
    fs::create_dir_all(&headers).expect("a folder can be made in OUT_DIR");
    for (name, text) in API_HEADERS {
        fs::write(headers.join(name), text).expect("a file can be written in OUT_DIR");
    }
    let package = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let checkout = PathBuf::from(package)
        .join(checkout)
        .canonicalize()
        .expect("the package is in the checkout");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let mut arguments = Vec::from(
        [
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            // Debian keeps the kernel's <asm/errno.h> in a folder of the architecture's own, where
            // clang does not look when it compiles for BPF.
            "-idirafter",
            &format!("/usr/include/{arch}-linux-gnu"),
            "-I",
        ]
        .map(OsString::from),
    );
    arguments.push(out.into());
    // Out of both that match, some versions of clang take the longer one and some the later one.
    arguments.push(stands_for(&checkout, "."));
    arguments.push(stands_for(out, "out"));
    arguments
}

fn stands_for(folder: &Path, name: &str) -> OsString {
    let mut argument = OsString::from("-ffile-prefix-map=");
    argument.push(folder);
    argument.push("=");
    argument.push(name);
    argument
}
