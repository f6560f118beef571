//! Experiments: the figures of the papers, and those of the requirements.
//!
//! Each prints a Markdown table and writes the same as JSON; each cleans up after itself, on Ctrl-C
//! too. Those on a live machine or in a guest start real programs (mplayer, rt-app, stress-ng) and
//! the `onbeat` binary as a user would. Those that compute, from formulas or recordings, link
//! against onbeat's own crates, as what they compute with is what is judged.

mod adaptive_reservations;
mod av_desync;
mod bandwidth;
mod clock;
mod demands;
mod frequency_switch;
mod grace_os;
mod lfspp;
mod lock_time;
mod machine;
mod mdn;
mod mdn_main_loop;
mod media;
mod notification_latency;
mod period_accuracy;
mod period_detection;
mod player_deadlines;
mod plot;
mod predictors;
mod rate_changes;
mod rate_monotonic;
mod readme;
mod recorded;
mod reservations_vs_rr;
mod results;
mod rt_app;
mod server_period;
mod several_cpus;
mod simulated;
mod spread;
mod srtgen;
mod three_rt_apps;
mod tracking_cost;
mod vm;
mod wakeups_vs_syscalls;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Parser, Subcommand};

use machine::Machine;

/// Experiments, with the papers' figures beside ours.
///
/// Those on a live machine need root, the release binary of onbeat (beside this one, or where
/// ONBEAT says), and a machine that has nothing else to do: say what else was running when you
/// quote their figures. Those that compute give the same at every run; those in virtual time do for
/// one image of the guest.
#[derive(Debug, Parser)]
#[command(name = "onbeat-experiments", version, max_term_width = 100)]
struct Cli {
    /// Where the figures go, as NAME.json and further files
    #[arg(
        long,
        value_name = "DIR",
        default_value = "papers/experiments/out",
        global = true
    )]
    out: PathBuf,
    /// Write the tables into the READMEs that have a place for them, and the figures beside
    #[arg(long, global = true)]
    readme: bool,
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// The experiments by name
    List,
    /// An encoder with I and P frames: unmodified, marked, and as LFS++ had it (LFS++, Fig. 7)
    AdaptiveReservations(adaptive_reservations::Args),
    /// A film beside CPU hogs, without onbeat and with it (LFS++, Fig. 5); also called demo
    #[command(alias = "demo")]
    AvDesync(av_desync::Args),
    /// Two tasks under SCHED_RR, reserved, and under onbeat (AQuoSA, experiment 1); in virtual time
    ReservationsVsRr(reservations_vs_rr::Args),
    /// The same two tasks by rate-monotonic priorities, alone, and with a peak of the short one
    /// (AQuoSA, experiment 1); simulated
    RateMonotonic(rate_monotonic::Args),
    /// The CPU time that onbeat's main loop gives to programs that notify of missed deadlines, and
    /// to cheaters; in virtual time
    MdnMainLoop(mdn_main_loop::Args),
    /// A player that drops frames by two rules, beside two rt-apps (timing exceptions, Tables 3 and
    /// 4); in virtual time
    PlayerDeadlines(player_deadlines::Args),
    /// The three tasks of LFS++'s Table I beside 4 hogs
    ThreeRtApps(three_rt_apps::Args),
    /// onbeat's own CPU time and memory while it tracks 200 periodic threads, or more
    TrackingCost(tracking_cost::Args),
    /// No experiment: the program that tracking-cost tracks
    #[command(hide = true)]
    Beats(tracking_cost::beats::Args),
    /// No experiment: a program under LFS++ as written, on this kernel
    #[command(hide = true)]
    Lfspp(lfspp::Args),
    /// From a program's start to its reservation, in jobs and seconds
    LockTime(lock_time::Args),
    /// The bandwidth that a server's period costs, by analysis and in virtual time (LFS++, Fig. 1
    /// and 2)
    ServerPeriod(server_period::Args),
    /// Sets of programs on 2 and 4 CPUs, by hand and under onbeat; in virtual time
    SeveralCpus(several_cpus::Args),
    /// The error of the period against the Cramer-Rao bound, over jitter, outliers and missing jobs
    PeriodAccuracy,
    /// How long a player must be watched until its rate is found (LFS++, Fig. 11 and 12)
    PeriodDetection,
    /// Programs that change their rate: how soon the reservation follows, and which jobs are late
    /// meanwhile; simulated, or live with --live
    RateChanges(rate_changes::Args),
    /// Which predictor gives which misses at which bandwidth, on recorded demands
    Predictors(predictors::Args),
    /// Misses against bandwidth, of the papers' controllers as written and of onbeat (LFS++, Fig.
    /// 5, 6, 7 and 10); simulated
    MissesAgainstBandwidth(bandwidth::Args),
    /// How stable the recorded demands of five codecs are (GRACE-OS, Fig. 10 and 11)
    Demands,
    /// The best events for a period analyser (LFS++, Fig. 8 and 9); recordings, and virtual time
    WakeupsVsSyscalls(wakeups_vs_syscalls::Args),
    /// A fall of the CPU's frequency under a periodic task (LFS++, Fig. 10); in virtual time
    FrequencySwitch(frequency_switch::Args),
    /// Missed deadlines with and without notifications of them (MDN, the tables of section 4)
    MdnDeadlines(mdn::DeadlinesArgs),
    /// How far programs get with and without notifications (MDN, Fig. 5, 6, 8, 9 and 10)
    MdnProgress(mdn::ProgressArgs),
    /// The gain of a program that notifies without reason (MDN, Fig. 7)
    MdnCheaters(mdn::CheatersArgs),
    /// GRACE-OS, its schemes and one beyond, on measured demands (GRACE-OS, section 4); computed
    GraceOs(grace_os::Args),
    /// How late libonbeat notifies a violation (timing exceptions, Fig. 3 to 6)
    NotificationLatency(notification_latency::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if machine::was_interrupted(&error) => {
            eprintln!("interrupted: everything started has been ended");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("onbeat-experiments: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    if let Experiment::List = cli.experiment {
        list();
        return Ok(());
    }
    if let Experiment::Beats(args) = cli.experiment {
        return tracking_cost::beats::run(&args);
    }
    if let Experiment::Lfspp(args) = cli.experiment {
        return lfspp::run(&args);
    }
    let machine = Machine::new(cli.out)?;
    let began = SystemTime::now();
    let taken = cli.readme.then(|| readme::taken(&machine.facts()));
    start(&machine, cli.experiment)?;
    if let Some(taken) = taken {
        readme::write(machine.out(), began, &taken)?;
    }
    Ok(())
}

fn start(machine: &Machine, experiment: Experiment) -> anyhow::Result<()> {
    match experiment {
        Experiment::List | Experiment::Beats(_) | Experiment::Lfspp(_) => Ok(()),
        Experiment::AdaptiveReservations(args) => adaptive_reservations::run(machine, &args),
        Experiment::AvDesync(args) => av_desync::run(machine, &args),
        Experiment::ReservationsVsRr(args) => reservations_vs_rr::run(machine, &args),
        Experiment::RateMonotonic(args) => rate_monotonic::run(machine, &args),
        Experiment::MdnMainLoop(args) => mdn_main_loop::run(machine, &args),
        Experiment::PlayerDeadlines(args) => player_deadlines::run(machine, &args),
        Experiment::ThreeRtApps(args) => three_rt_apps::run(machine, &args),
        Experiment::TrackingCost(args) => tracking_cost::run(machine, &args),
        Experiment::LockTime(args) => lock_time::run(machine, &args),
        Experiment::ServerPeriod(args) => server_period::run(machine, &args),
        Experiment::SeveralCpus(args) => several_cpus::run(machine, &args),
        Experiment::RateChanges(args) => rate_changes::run(machine, &args),
        Experiment::Predictors(args) => predictors::run(machine, &args),
        Experiment::MissesAgainstBandwidth(args) => bandwidth::run(machine, &args),
        Experiment::Demands => demands::run(machine),
        Experiment::PeriodAccuracy => period_accuracy::run(machine),
        Experiment::PeriodDetection => period_detection::run(machine),
        Experiment::WakeupsVsSyscalls(args) => wakeups_vs_syscalls::run(machine, &args),
        Experiment::FrequencySwitch(args) => frequency_switch::run(machine, &args),
        Experiment::MdnDeadlines(args) => mdn::run_deadlines(machine, &args),
        Experiment::MdnProgress(args) => mdn::run_progress(machine, &args),
        Experiment::MdnCheaters(args) => mdn::run_cheaters(machine, &args),
        Experiment::GraceOs(args) => grace_os::run(machine, &args),
        Experiment::NotificationLatency(args) => notification_latency::run(machine, &args),
    }
}

fn list() {
    use clap::CommandFactory;
    for command in Cli::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let about = command.get_about().map(ToString::to_string);
        println!("{:22} {}", command.get_name(), about.unwrap_or_default());
    }
}
