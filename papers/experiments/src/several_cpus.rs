//! Sets of periodic programs on several CPUs, on a kernel: what comes late, and what is refused,
//! with reservations set by hand under global EDF, and by onbeat.

use std::path::Path;

use anyhow::Context;

use crate::log::numbers;
use crate::machine::{Machine, OnbeatReport};
use crate::predictors::simulation::Noise;
use crate::results::{Table, percent};
use crate::statistics::mean;
use crate::vm::Guest;

const GUEST: &str = "several-cpus";
const NAME: &str = "several-cpus-on-a-kernel";

/// Of the guests.
const CPUS: [usize; 2] = [2, 4];
/// For how long a set runs in each way.
const SECONDS: u64 = 9;
/// Programs in a set, for each CPU.
const PROGRAMS: usize = 3;
/// The begin that is left out of all figures: time to find the periods, and to catch up.
const LEAVE_OUT: u64 = 4;
/// The share of one CPU that can be reserved: 95%, less the 5% of the kernel's fair server.
const ROOM: f64 = 0.90;
const LARGEST: f64 = 0.85;
/// The loads, as shares of what can be reserved; the last one is more than that, so that a program
/// has to be refused.
const LOADS: [f64; 6] = [0.6, 0.7, 0.8, 0.9, 1.0, 1.1];
/// Below that a program is mostly the kernel's own work for it.
const SMALLEST: f64 = 0.04;
/// The reservation by hand for each unit of demand: the spread that onbeat begins with.
const SPREAD: f64 = 1.1;
const ONBEAT: &str = "--cap 90% --config limits.per-task=\"90%\"";

/// Each way: the guest's folder, and its name.
const WAYS: [(&str, &str); 2] = [("by-hand", "by hand"), ("onbeat", "onbeat")];

#[derive(Clone)]
struct SetProgram {
    period_us: u64,
    run_us: u64,
    reserved_us: u64,
}

#[derive(Default)]
struct Figures {
    cpus: usize,
    load: f64,
    way: &'static str,
    programs: usize,
    /// Programs that got no reservation, or held it for less than half of the time that counts.
    refused: usize,
    /// Jobs of the others, after the time that was left out.
    jobs: usize,
    /// Those that ended after the next release, or were left out since it came before they began.
    late: usize,
    programs_late: usize,
    latest_periods: f64,
    reserved: f64,
    stretch: f64,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let (mut figures, mut ran) = (Vec::new(), None);
    for cpus in CPUS {
        let mut random = Noise(2);
        let sets: Vec<(f64, Vec<SetProgram>)> = LOADS
            .iter()
            .map(|&load| (load, drawn(cpus, load, &mut random)))
            .collect();
        let word = |(n, (_, programs)): (usize, &(f64, Vec<SetProgram>))| {
            let of = |p: &SetProgram| format!("{}:{}:{}", p.period_us, p.run_us, p.reserved_us);
            let programs: Vec<String> = programs.iter().map(of).collect();
            format!("{n}={}", programs.join(","))
        };
        let words: Vec<String> = sets.iter().enumerate().map(word).collect();
        let guest = Guest::new(GUEST)
            .cpus(cpus)
            .set("SETS", words.join(" "))
            .set("RUN_SECONDS", SECONDS)
            .set("ONBEAT", ONBEAT)
            .boot(machine)?;
        for (n, (load, programs)) in sets.iter().enumerate() {
            for (folder, way) in WAYS {
                let folder = guest.folder.join(n.to_string()).join(folder);
                let mut of_way = Figures::of(&folder, programs)?;
                of_way.reserved /= cpus as f64;
                figures.push(Figures {
                    cpus,
                    load: *load,
                    way,
                    ..of_way
                });
            }
        }
        ran = Some(guest.ran(machine));
    }
    let ran = ran.context("no number of CPUs was asked for")?;
    machine.publish(&ran, NAME, &table(&figures));
    Ok(())
}

/// A set of programs with this load in all, with periods between 10 and 100 ms.
fn drawn(cpus: usize, load: f64, random: &mut Noise) -> Vec<SetProgram> {
    let programs = shares(random, PROGRAMS * cpus, load * ROOM * cpus as f64).into_iter();
    let programs = programs.map(|share| {
        let period_us = (10_000.0 * 10_f64.powf(random.unit())).round();
        SetProgram {
            period_us: period_us as u64,
            run_us: (share * period_us / SPREAD) as u64,
            reserved_us: (share * period_us) as u64,
        }
    });
    programs.collect()
}

/// `count` shares with the sum `total`, evenly among all such sets (UUniFast of Bini and Buttazzo
/// 2005), drawn again as long as one is too large or too small (Davis and Burns 2009).
fn shares(random: &mut Noise, count: usize, total: f64) -> Vec<f64> {
    loop {
        let mut left = total;
        let mut shares = Vec::with_capacity(count);
        for others in (1..count).rev() {
            let rest = left * random.unit().powf(1.0 / others as f64);
            shares.push(left - rest);
            left = rest;
        }
        shares.push(left);
        if shares
            .iter()
            .all(|share| (SMALLEST..=LARGEST).contains(share))
        {
            return shares;
        }
    }
}

impl Figures {
    /// Of a set, of which the guest left `folder`.
    fn of(folder: &Path, programs: &[SetProgram]) -> anyhow::Result<Self> {
        let (mut this, mut stretches) = (Self::default(), Vec::new());
        let report = folder.join("report.json");
        let kept = report.exists().then(|| OnbeatReport::read(&report));
        let kept = kept.transpose()?;
        let enough_ns = (SECONDS - LEAVE_OUT) * 500_000_000;
        this.programs = programs.len();
        for (number, program) in (10..).zip(programs) {
            let name = format!("p{number}");
            let log = folder.join(&name);
            let jobs = if log.exists() {
                numbers(&log)?
            } else {
                Vec::new()
            };
            let by_hand = program.reserved_us as f64 / program.period_us as f64;
            let reserved = match &kept {
                None => (!jobs.is_empty()).then_some(by_hand),
                Some(threads) => threads
                    .iter()
                    .find(|thread| thread.comm == name && thread.held_ns >= enough_ns)
                    .map(|thread| thread.bandwidth_reserved),
            };
            let Some(reserved) = reserved else {
                this.refused += 1;
                continue;
            };
            this.reserved += reserved;
            let counted = jobs.iter().filter(|job| job[0] >= LEAVE_OUT as f64 * 1e6);
            let mut late = 0;
            // It ends before it begins if its whole period was over.
            for &[released, _, ended, used] in counted {
                this.jobs += 1;
                let over = (ended - released) / program.period_us as f64 - 1.0;
                late += usize::from(over > 0.0 || ended < 0.0);
                if ended >= 0.0 {
                    this.latest_periods = this.latest_periods.max(over);
                    stretches.push(used / program.run_us as f64);
                }
            }
            this.late += late;
            this.programs_late += usize::from(late > 0);
        }
        this.stretch = mean(&stretches);
        Ok(this)
    }

    fn late_per_mille(&self) -> f64 {
        self.late as f64 * 1000.0 / self.jobs.max(1) as f64
    }
}

fn table(figures: &[Figures]) -> Table {
    Table::of(figures, |f| {
        [
            ("CPUs", f.cpus.to_string()),
            ("load", percent(f.load, 0)),
            ("way", f.way.to_owned()),
            ("programs", f.programs.to_string()),
            ("refused", f.refused.to_string()),
            ("programs late", f.programs_late.to_string()),
            ("jobs", f.jobs.to_string()),
            ("late", format!("{:.1}‰", f.late_per_mille())),
            ("latest", format!("{:.2} periods", f.latest_periods)),
            ("reserved", percent(f.reserved, 1)),
            ("stretch", format!("{:.3}", f.stretch)),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_count_by_what_they_held_and_jobs_by_their_release() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        // The first job does not count, the third is half a period late, and the last was left out.
        let log = "0 0 20000 4500\n4000000 4000000 4004500 4500\n4010000 4010000 4025000 9000\n\
                   4020000 4031000 -1 0\n";
        std::fs::write(folder.path().join("p10"), log)?;
        let program = SetProgram {
            period_us: 10_000,
            run_us: 4500,
            reserved_us: 5000,
        };
        let figures = Figures::of(folder.path(), &[program.clone(), program])?;
        assert_eq!(
            (figures.programs, figures.refused, figures.programs_late),
            (2, 1, 1)
        );
        assert_eq!(
            (figures.jobs, figures.late, figures.latest_periods),
            (3, 2, 0.5)
        );
        assert_eq!(figures.stretch, 1.5);
        Ok(())
    }
}
