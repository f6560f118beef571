//! Every experiment: its name, how long it takes, and how it is run. Live ones come first, as they
//! need a machine that has nothing else to do; then those in virtual time, then what is computed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::machine::Machine;
use crate::results::Ran;
use crate::{
    adaptive_reservations, av_desync, bandwidth, demands, frequency_switch, grace_os, lock_time,
    mdn, measure, notification_latency, period_accuracy, period_detection, player_deadlines,
    predictors, rate_changes, rate_monotonic, reservations_vs_rr, server_period, several_cpus,
    three_rt_apps, tracking_cost, wakeups_vs_syscalls,
};

/// The root of the checkout that this program was built from.
pub(crate) const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// What it takes on a machine of two CPUs.
    pub(crate) minutes: u64,
    about: &'static str,
    how: How,
}

enum How {
    Here(fn(&Machine) -> anyhow::Result<()>),
    /// A command below `papers/experiments`, whose output ends with a line that says what ran, and
    /// the table. It finds a file with COMMIT in its name, and goes on with what that has.
    Script(&'static str),
}

use How::{Here, Script};

const fn step(name: &'static str, minutes: u64, how: How, about: &'static str) -> Step {
    Step {
        name,
        minutes,
        about,
        how,
    }
}

#[rustfmt::skip]
pub(crate) const STEPS: &[Step] = &[
    step("av-desync", 4, Here(av_desync::run), "A film beside CPU hogs, without onbeat and with it (LFS++, Fig. 5)"),
    step("lock-time", 6, Here(lock_time::run), "From a program's start to its reservation, in jobs and seconds"),
    step("rate-changes", 2, Here(rate_changes::run), "Programs that change their rate: how soon the reservation follows, and which jobs are late meanwhile"),
    step("tracking-cost", 3, Here(tracking_cost::run), "onbeat's own CPU time and memory while it tracks up to 1,000 threads"),
    step("tracer-overhead-live", 1, Script("tracer-overhead/run.py"), "What onbeat's BPF programs take at each switch and wakeup"),
    step("mark-cost", 1, Script("mark-cost/run.sh"), "The cost of a call of mdn(), heard and unheard"),
    step("notification-latency", 26, Here(notification_latency::run), "How late libonbeat notifies a violation (timing exceptions, Fig. 3 to 6)"),
    step("grace-os-costs", 1, Here(grace_os::costs), "What estimation and scheduling cost (GRACE-OS, Fig. 8 and 9)"),
    step("strangers", 120, Script("strangers/strangers.py --held-back --resume --results papers/experiments/out/strangers-COMMIT.jsonl --ways nothing,nice,chrt,slice,weight --readme papers/experiments/strangers/README.md --summary README.md"),
         "Programs of every runtime, idle and beside hogs"),
    step("alternatives", 60, Script("alternatives/run.sh"), "Other means and schedulers of others beside onbeat; in virtual time"),
    step("alternatives-7.3", 10, Script("alternatives/run.sh --kernel 7.3 --images 1"), "The kernel's means beside onbeat on Linux 7.3, where a slice counts across control groups; in virtual time"),
    step("player-deadlines", 50, Here(player_deadlines::run), "A player that drops frames by two rules, beside two rt-apps (timing exceptions, Tables 3 and 4); in virtual time"),
    step("mdn-deadlines-guest", 35, Here(mdn::deadlines::run_on_a_kernel), "Missed deadlines with and without notifications, on a kernel in virtual time"),
    step("mdn-cheaters-guest", 15, Here(mdn::cheaters::run_on_a_kernel), "The gain of programs that notify without reason, also under onbeat, on a kernel in virtual time"),
    step("three-rt-apps", 20, Here(three_rt_apps::run), "The three tasks of LFS++'s Table I and Fig. 6, in virtual time"),
    step("several-cpus", 10, Here(several_cpus::run), "Sets of programs on 2 and 4 CPUs, by hand and under onbeat; in virtual time"),
    step("server-period", 6, Here(server_period::run), "The bandwidth that a server's period costs, in virtual time (LFS++, Fig. 1 and 2)"),
    step("frequency-switch", 5, Here(frequency_switch::run), "A fall of the CPU's frequency under a periodic task (LFS++, Fig. 10); in virtual time"),
    step("adaptive-reservations", 4, Here(adaptive_reservations::run), "An encoder's I and P frames: unmodified, marked, and as LFS++ had it (LFS++, Fig. 7); in virtual time"),
    step("reservations-vs-rr", 2, Here(reservations_vs_rr::run), "Two tasks under SCHED_RR, reserved, and under onbeat (AQuoSA, experiment 1); in virtual time"),
    step("wakeups-vs-syscalls", 2, Here(wakeups_vs_syscalls::run), "The best events for a period analyser (LFS++, Fig. 8 and 9); recordings, and virtual time"),
    step("tracer-overhead", 20, Script("tracer-overhead/guest.py"), "What each tracer costs a program, and what it hears of a player's period (LFS++, Table II); in virtual time"),
    step("misses-against-bandwidth", 2, Here(bandwidth::run), "Misses against bandwidth, of the papers' controllers as written and of onbeat (LFS++, Fig. 5, 6, 7 and 10); simulated"),
    step("mdn-deadlines", 2, Here(mdn::deadlines::run), "Missed deadlines with and without notifications (MDN, the tables of section 4); simulated"),
    step("mdn-progress", 1, Here(mdn::progress::run), "How far programs get with and without notifications (MDN, Fig. 5, 6, 8, 9 and 10); simulated"),
    step("mdn-cheaters", 1, Here(mdn::cheaters::run), "The gain of a program that notifies without reason (MDN, Fig. 7); simulated"),
    step("grace-os", 1, Here(grace_os::run), "GRACE-OS and the schemes beside it on measured demands (GRACE-OS, section 4); simulated"),
    step("rate-monotonic", 1, Here(rate_monotonic::run), "The tasks of reservations-vs-rr by rate-monotonic priorities, alone, and with a peak (AQuoSA, experiment 1); simulated"),
    step("predictors", 1, Here(predictors::run), "Which predictor gives which misses at which bandwidth, on recorded demands"),
    step("demands", 1, Here(demands::run), "How stable the recorded demands of five codecs are (GRACE-OS, Fig. 10 and 11)"),
    step("period-accuracy", 1, Here(period_accuracy::run), "The error of the period against the Cramer-Rao bound, over jitter, outliers and missing jobs"),
    step("period-scores", 2, Script("period-accuracy/score.sh"), "How often the analyser is right on recordings of real programs"),
    step("period-detection", 1, Here(period_detection::run), "How long a player must be watched until its rate is found (LFS++, Fig. 11 and 12)"),
];

pub(crate) fn list() {
    for step in STEPS {
        println!("{:24} {:>4} min  {}", step.name, step.minutes, step.about);
    }
}

pub(crate) fn named(name: &str) -> anyhow::Result<&'static Step> {
    let name = if name == "demo" { "av-desync" } else { name };
    let found = STEPS.iter().find(|step| step.name == name);
    found.with_context(|| format!("there is no experiment {name}: `list` names them"))
}

impl Step {
    pub(crate) fn command(&self) -> String {
        match self.how {
            Here(_) => format!("onbeat-experiments {}", self.name),
            Script(command) => format!("papers/experiments/{command}"),
        }
    }

    /// Runs it; its tables are with the machine then.
    pub(crate) fn run(&self, machine: &Machine) -> anyhow::Result<()> {
        match self.how {
            Here(run) => run(machine),
            Script(command) => {
                let text = output_of(machine, self.name, command)?;
                let lines: Vec<&str> = text.lines().collect();
                let Some(table) = lines.iter().position(|line| line.starts_with('|')) else {
                    bail!("{command} printed no table");
                };
                let (before, table) = lines.split_at(table);
                let how = before.iter().rfind(|line| !line.is_empty());
                let how = how.map_or("", |line| line.trim_end_matches('.'));
                let ran = Ran::computed(machine, how);
                machine.keep(self.name, table.join("\n") + "\n", &ran);
                Ok(())
            }
        }
    }
}

fn output_of(machine: &Machine, name: &str, command: &str) -> anyhow::Result<String> {
    let (printed, messages) = (
        machine.file(&format!("{name}.txt")),
        machine.file(&format!("{name}.stderr")),
    );
    let mut words = command.split(' ');
    let script = words.next().unwrap_or_default();
    let mut run = Command::new(Path::new(CHECKOUT).join("papers/experiments").join(script));
    for word in words {
        let word = match word.contains("COMMIT") {
            true => word.replace("COMMIT", &measure::commit()?.replace(' ', "-")),
            false => word.to_owned(),
        };
        if word.ends_with(".jsonl") {
            let file = Path::new(CHECKOUT).join(&word);
            fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(file)?;
        }
        run.arg(word);
    }
    run.current_dir(CHECKOUT)
        .stdout(fs::File::create(&printed)?);
    println!("{command}: its output goes to {}", printed.display());
    if !machine.run(run, &messages, Duration::from_secs(24 * 3600))? {
        bail!("{command} failed: see {}", messages.display());
    }
    Ok(fs::read_to_string(&printed)?)
}
