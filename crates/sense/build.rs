//! Compiles what runs in other places than this library: the tracer's BPF programs, and what
//! programs are preloaded with.

#[path = "build/bpf.rs"]
mod bpf;

use std::env;
use std::path::{Path, PathBuf};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    SkeletonBuilder::new()
        .source("src/bpf/tracer.bpf.c")
        .clang_args(bpf::arguments(&out, "../.."))
        // No program reads it; and what rustup's minimal profile calls rustfmt only fails.
        .rustfmt(out.join("none"))
        .build_and_generate(out.join("tracer.skel.rs"))
        .expect("compiling src/bpf/tracer.bpf.c needs clang, 10 or newer (Debian: clang)");
    println!("cargo::rerun-if-changed=src/bpf");
    preloaded_library(&out);
}

/// The library that is preloaded becomes part of this one, so that there is nothing to be installed
/// or found. The system's programs load it: a static onbeat, which is built with musl, brings one
/// for glibc.
fn preloaded_library(out: &Path) {
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let compiler = cc::Build::new()
        .target(&target.replace("-musl", "-gnu"))
        .opt_level(2)
        .pic(true)
        .std("gnu11")
        .define("_GNU_SOURCE", None)
        .flags(["-Wall", "-Wextra", "-Wshadow", "-Werror"])
        .get_compiler();
    let status = compiler
        .to_command()
        .args(["-shared", "-Wl,-z,nodelete", "src/preload/listener.c", "-o"])
        .arg(out.join("listener.so"))
        .status()
        .expect("compiling src/preload/listener.c needs a C compiler (Debian: gcc)");
    assert!(status.success(), "src/preload/listener.c does not compile");
    println!("cargo::rerun-if-changed=src/preload");
}
