//! Compiles live/marker.c, a program that marks its jobs.

use std::path::Path;
use std::process::Command;

/// Compiles it to `program`.
pub(crate) fn compiled_marker(program: &Path) -> &Path {
    let here = env!("CARGO_MANIFEST_DIR");
    let compiled = Command::new("clang")
        .args(["-O1", "-Wall", "-Werror", "-I"])
        .arg(format!("{here}/../../libonbeat/include"))
        .arg(format!("{here}/tests/live/marker.c"))
        .arg("-o")
        .arg(program)
        .status();
    assert!(compiled.is_ok_and(|status| status.success()), "marker.c");
    program
}
