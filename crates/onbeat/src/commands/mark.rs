//! `onbeat mark`: a mark of the process that started this one.

use std::process::ExitCode;

use crate::cli::MarkArgs;

/// `ONBEAT_MARK` of `<onbeat/mark.h>`, and what makes a mark the parent's.
const MARK: libc::c_int = 0x4f4e_4254;
const OF_PARENT: libc::c_ulong = 0x100;

/// The kernel knows no such option, so there is no answer to look at.
pub(crate) fn run(args: &MarkArgs) -> anyhow::Result<ExitCode> {
    let kind = OF_PARENT | args.what as libc::c_ulong;
    // SAFETY: it takes numbers, and does nothing.
    unsafe { libc::prctl(MARK, kind, 0_u64, 0_u64, 0_u64) };
    Ok(ExitCode::SUCCESS)
}
