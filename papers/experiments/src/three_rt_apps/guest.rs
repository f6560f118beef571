//! The tasks on one CPU in virtual time, in all ways within one boot of each image.

use std::path::Path;

use anyhow::Context;

use super::{Args, Figures, NAME, Responses, responses_ms, tasks};
use crate::machine::{Machine, OnbeatReport, ThreadFigures};
use crate::results::Ran;
use crate::rt_app::{Log, RtAppTask};
use crate::vm::{Ended, Guest};

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

/// Boots the images, and reads what they left. A figure is of the jobs of all images together.
pub(super) fn run(
    machine: &Machine,
    args: &Args,
) -> anyhow::Result<(Ran, Vec<Figures>, Vec<Responses>)> {
    let booted: Vec<Ended> = (0..args.images)
        .map(|image| boot(machine, args, image))
        .collect::<anyhow::Result<_>>()?;
    let ran = booted.first().context("no image")?.ran();
    let leave_out_s = args.leave_out as f64;
    let (mut figures, mut responses) = (Vec::new(), Vec::new());
    for (way, run) in WAYS {
        let by_hand = way == "by-hand";
        for (n, task) in tasks(by_hand).iter().enumerate() {
            let folders = booted.iter().map(|ended| ended.folder.join(way));
            let of_images: Vec<(Log, Option<ThreadFigures>)> = folders
                .map(|folder| Ok((Log::read(&folder, task.name)?, seen(&folder, task)?)))
                .collect::<anyhow::Result<_>>()?;
            let (logs, seen): (Vec<Log>, Vec<_>) = of_images.into_iter().unzip();
            let log = Log::joined(&logs);
            if n == 0 {
                responses.push((run, responses_ms(&log, leave_out_s)));
            }
            let shares = logs.iter().map(|log| log.jobs(leave_out_s).miss_ratio());
            let seen = mean(&seen.into_iter().flatten().collect::<Vec<_>>());
            figures.push(Figures {
                missed_share_of_images: shares.collect(),
                ..Figures::new(run, task, log.jobs(leave_out_s), seen.as_ref(), None)
            });
        }
    }
    Ok((ran, figures, responses))
}

fn boot(machine: &Machine, args: &Args, image: u64) -> anyhow::Result<Ended> {
    let words: Vec<String> = tasks(true)
        .iter()
        .map(|task| {
            let reserved_us = task.reserved_us.unwrap_or(task.run_us);
            format!(
                "{}:{}:{}:{reserved_us}",
                task.name, task.period_us, task.run_us
            )
        })
        .collect();
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    Guest::new(NAME)
        .image(image)
        .need(own)
        .set("TASKS", words.join(" "))
        .set("RUN_SECONDS", args.seconds)
        .set("HOGS", args.hogs.unwrap_or(0))
        .set("ONBEAT", CAP)
        .boot(machine)
}

fn seen(folder: &Path, task: &RtAppTask) -> anyhow::Result<Option<ThreadFigures>> {
    let report = folder.join("report.json");
    if !report.exists() {
        return Ok(None);
    }
    let threads = OnbeatReport::read(&report)?;
    Ok(threads.into_iter().find(|t| t.comm.starts_with(task.name)))
}

/// The means of a task's figures in the images' reports.
fn mean(seen: &[ThreadFigures]) -> Option<ThreadFigures> {
    let count = seen.len() as f64;
    let mean = |of: fn(&ThreadFigures) -> f64| seen.iter().map(of).sum::<f64>() / count;
    Some(ThreadFigures {
        bandwidth_used: mean(|thread| thread.bandwidth_used),
        bandwidth_reserved: mean(|thread| thread.bandwidth_reserved),
        changes: mean(|thread| thread.changes as f64).round() as u64,
        exhaustions: seen
            .first()?
            .exhaustions
            .map(|_| mean(|thread| thread.exhaustions.unwrap_or_default() as f64).round() as u64),
        ..seen.first()?.clone()
    })
}
