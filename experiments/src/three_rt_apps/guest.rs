//! The tasks on one CPU in virtual time, in all ways within one boot.

use super::{Args, Figures, NAME, Responses, responses_ms, tasks};
use crate::machine::{LFSPP, Machine, OnbeatReport};
use crate::results::Ran;
use crate::rt_app::Log;
use crate::vm::Guest;

/// Each way: the guest's folder, and its name.
const WAYS: [(&str, &str); 6] = [
    ("default", "default scheduler"),
    ("by-hand", "set by hand"),
    ("lfspp", "LFS++"),
    ("lfspp-alone", "LFS++, no fair server"),
    ("onbeat", "onbeat"),
    ("onbeat-alone", "onbeat, no fair server"),
];

/// The tasks take 79% of the only CPU: the cap is what the kernel admits beside its fair server.
const CAP: &str = "--cap=90%";

/// Boots the guest, and reads what it left.
pub(super) fn run(
    machine: &Machine,
    args: &Args,
) -> anyhow::Result<(Ran, Vec<Figures>, Vec<Responses>)> {
    let words: Vec<String> = tasks(args, true)
        .iter()
        .map(|task| {
            let reserved_us = task.reserved_us.unwrap_or(task.run_us);
            format!(
                "{}:{}:{}:{reserved_us}",
                task.name, task.period_us, task.run_us
            )
        })
        .collect();
    let options = |first: &[&str]| {
        let words = first.iter().copied().chain([CAP]);
        let words = words.chain(args.options.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    };
    let guest = Guest::new(NAME)
        .kernel(args.kernel)
        .set("TASKS", words.join(" "))
        .set("RUN_SECONDS", args.seconds)
        .set("HOGS", args.hogs.unwrap_or(0))
        .set("LFSPP", options(&LFSPP))
        .set("ONBEAT", options(&[]))
        .boot(machine)?;

    let leave_out_s = args.leave_out as f64;
    let (mut figures, mut responses) = (Vec::new(), Vec::new());
    for (folder, run) in WAYS {
        let by_hand = folder == "by-hand";
        let folder = guest.folder.join(folder);
        let report = folder.join("report.json");
        let threads = if report.exists() {
            OnbeatReport::read(&report)?
        } else {
            Vec::new()
        };
        for (n, task) in tasks(args, by_hand).iter().enumerate() {
            let log = Log::read(&folder, task.name)?;
            if n == 0 {
                responses.push((run, responses_ms(&log, leave_out_s)));
            }
            let seen = threads.iter().find(|t| t.comm.starts_with(task.name));
            let jobs = log.jobs(leave_out_s);
            figures.push(Figures::new(run, task, jobs, seen, None));
        }
    }
    Ok((guest.ran(), figures, responses))
}
