//! Compiles the tests' C programs that mark their jobs.

use std::path::Path;
use std::process::Command;

/// Compiles live/NAME.c to `program`.
pub(crate) fn compiled<'a>(name: &str, program: &'a Path) -> &'a Path {
    let here = env!("CARGO_MANIFEST_DIR");
    let compiled = Command::new("clang")
        .args(["-O1", "-Wall", "-Werror", "-I"])
        .arg(format!("{here}/../../libonbeat/include"))
        .arg(format!("{here}/tests/live/{name}.c"))
        .arg("-o")
        .arg(program)
        .status();
    assert!(compiled.is_ok_and(|status| status.success()), "{name}.c");
    program
}
