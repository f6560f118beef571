//! Compiles the tracer's BPF programs and makes their skeleton, with which they become part of the
//! library.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // Debian keeps the kernel's <asm/errno.h> in a folder of the architecture's own, where clang does
    // not look when it compiles for BPF.
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let asm = format!("/usr/include/{arch}-linux-gnu");
    SkeletonBuilder::new()
        .source("src/bpf/tracer.bpf.c")
        .clang_args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            "-idirafter",
            &asm,
        ])
        .build_and_generate(out.join("tracer.skel.rs"))
        .expect("compiling src/bpf/tracer.bpf.c needs clang, 10 or newer (Debian: clang)");
    println!("cargo::rerun-if-changed=src/bpf");
}
