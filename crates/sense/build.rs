//! Compiles the tracer's BPF programs and makes their skeleton, with which they become part of the
//! library.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    SkeletonBuilder::new()
        .source("src/bpf/tracer.bpf.c")
        .clang_args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .build_and_generate(out.join("tracer.skel.rs"))
        .expect("compiling src/bpf/tracer.bpf.c needs clang, 10 or newer (Debian: clang)");
    println!("cargo::rerun-if-changed=src/bpf");
}
