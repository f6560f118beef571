//! Compiles each scheduler's BPF programs; they become part of the library as the bytes of their
//! object.

#[path = "../../../crates/sense/build/bpf.rs"]
mod bpf;

use std::env;
use std::path::{Path, PathBuf};

use libbpf_cargo::SkeletonBuilder;

/// The folders below `schedulers/`, but for `common`.
const SCHEDULERS: [&str; 5] = ["linux24", "best", "berate", "reserve", "grace"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let sources = Path::new("../../schedulers");
    for name in SCHEDULERS {
        let source = sources.join(name).join(format!("{name}.bpf.c"));
        SkeletonBuilder::new()
            .source(&source)
            .obj(out.join(format!("{name}.bpf.o")))
            .clang_args(bpf::arguments(&out, "../../.."))
            .build()
            .unwrap_or_else(|error| {
                panic!(
                    "compiling {} needs clang, 14 or newer (Debian: clang): {error:?}",
                    source.display()
                )
            });
    }
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-changed=../../../crates/sense/src/bpf/mark.h");
}
