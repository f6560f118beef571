//! Global EDF against partitioned EDF: how many sets of periodic programs are admitted, and with
//! what promise, up to the admission bound.
//!
//! Computed, without a kernel: what it admits is a sum, what EDF guarantees is a theorem, and
//! `packing` gives each program a CPU, one after the other as they start. Then on a kernel
//! (`on_kernel`).

mod on_kernel;
mod packing;

use onbeat_model::Bandwidth;
use serde::Serialize;
use serde_json::json;

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::predictors::simulation::Noise;
use crate::results::{Ran, Table, percent};
use packing::Packing;

const NAME: &str = "several-cpus";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Sets of programs for each number of CPUs and each load
    #[arg(long, value_name = "N", default_value_t = SETS,
          value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    sets: u32,
    /// Programs in a set, for each CPU
    #[arg(long, value_name = "N", default_value_t = PROGRAMS,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    programs: u32,
    /// No guest: what can be computed alone
    #[arg(long)]
    only_computed: bool,
    /// The numbers of CPUs of the guests
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = CPUS)]
    cpus: Vec<usize>,
    /// Sets of programs that run in a guest, for each load
    #[arg(long, value_name = "N", default_value_t = 1)]
    guest_sets: usize,
    /// Programs in such a set, for each CPU
    #[arg(long, value_name = "N", default_value_t = 3)]
    guest_programs: usize,
    /// For how long a set runs in each way, in the guest's time
    #[arg(long, value_name = "RUN_SECONDS", default_value_t = 9,
          value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: u64,
    /// The begin that is left out of all figures: time to find the periods, and to catch up
    #[arg(long, value_name = "RUN_SECONDS", default_value_t = 4)]
    leave_out: u64,
}

const CPUS: [usize; 2] = [2, 4];
const SETS: u32 = 2000;
const PROGRAMS: u32 = 4;

/// The share of one CPU that can be reserved: 95%, less the 5% of the kernel's fair server.
const ROOM: f64 = 0.90;
const LARGEST: f64 = 0.85;

/// The loads looked at, as shares of what all CPUs have to hand out.
const LOADS: [f64; 11] = [
    0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95, 1.00,
];

/// The share of the sets, at one load, that each scheme takes.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figures {
    cpus: usize,
    load: f64,
    /// The kernel admits all reservations into one root domain.
    global_admitted: f64,
    /// And global EDF surely meets every deadline (Goossens, Funk and Baruah 2003, theorem 5).
    global_guaranteed: f64,
    /// Each program has a CPU on which EDF meets every deadline.
    partitioned: f64,
    /// How many programs had to move while a set started, in the mean of the sets that fitted.
    moves: f64,
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    let drawn = (args.sets, args.programs);
    let mut random = Noise(1);
    let mut figures = Vec::new();
    for cpus in CPUS {
        figures.extend(LOADS.map(|load| tried(cpus, load, drawn, &mut random)));
        draw(machine, cpus, &figures)?;
    }
    let paper = json!({ "none": "LFS++ leaves several CPUs to the future (section 8)" });
    let ran = Ran::Computed("admission tests and bin packing".to_owned());
    machine.publish(&ran, NAME, &table(&figures), &figures, paper)?;
    if args.only_computed {
        return Ok(());
    }
    on_kernel::run(machine, args)
}

fn tried(cpus: usize, load: f64, (sets, programs): (u32, u32), random: &mut Noise) -> Figures {
    let (mut admitted, mut guaranteed, mut packed, mut moves) = (0_u32, 0_u32, 0_u32, 0);
    let total = load * ROOM * cpus as f64;
    for _ in 0..sets {
        let shares = shares(random, programs as usize * cpus, total);
        admitted += u32::from(total <= ROOM * cpus as f64 + 1e-9);
        guaranteed += u32::from(is_guaranteed(&shares, cpus));
        if let Some(moved) = started_one_by_one(&shares, cpus) {
            packed += 1;
            moves += moved;
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(sets);
    Figures {
        cpus,
        load,
        global_admitted: share(admitted),
        global_guaranteed: share(guaranteed),
        partitioned: share(packed),
        moves: moves as f64 / f64::from(packed.max(1)),
    }
}

/// The sufficient test for implicit deadlines on `cpus` CPUs, each of which serves reservations
/// with what it has to hand out.
fn is_guaranteed(shares: &[f64], cpus: usize) -> bool {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let total: f64 = shares.iter().sum();
    total <= ROOM * cpus as f64 - largest * (cpus - 1) as f64
}

/// How many programs moved once they had a CPU; none if one of them got none.
fn started_one_by_one(shares: &[f64], cpus: usize) -> Option<usize> {
    let mut packing = Packing::new(vec![Bandwidth::from_cpus(ROOM); cpus]);
    let moves = (0..).zip(shares);
    let moves = moves.map(|(process, &share)| packing.start(process, Bandwidth::from_cpus(share)));
    moves.sum()
}

fn table(figures: &[Figures]) -> Table {
    Table::of(figures, |f| {
        [
            ("CPUs", f.cpus.to_string()),
            ("load", percent(f.load, 0)),
            ("admitted globally", percent(f.global_admitted, 1)),
            ("guaranteed globally", percent(f.global_guaranteed, 1)),
            ("partitioned", percent(f.partitioned, 1)),
            ("moves a set", format!("{:.2}", f.moves)),
        ]
    })
}

fn draw(machine: &Machine, cpus: usize, figures: &[Figures]) -> anyhow::Result<()> {
    let line = |name: &str, of: fn(&Figures) -> f64| {
        let ours = figures.iter().filter(|f| f.cpus == cpus);
        Line::new(name, Look::Marked, ours.map(|f| (f.load, of(f))).collect())
    };
    let figure = Figure {
        title: format!("Sets of programs that {cpus} CPUs serve"),
        x: Axis::linear("load, of what there is to hand out", 0.5..1.0),
        y: Axis::linear("share of the sets", 0.0..1.05),
        lines: vec![
            line("admitted globally", |f| f.global_admitted),
            line("guaranteed globally", |f| f.global_guaranteed),
            line("partitioned", |f| f.partitioned),
        ],
        names: Corner::LowerLeft,
    };
    figure.draw(machine.out(), &format!("{NAME}-{cpus}"))
}

/// `count` shares with the sum `total`, evenly among all such sets (UUniFast of Bini and Buttazzo
/// 2005), drawn again as long as one is too large (Davis and Burns 2009).
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
        if shares.iter().all(|&share| share <= LARGEST) {
            return shares;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_equal_shares_is_judged_as_by_hand() {
        // Three halves on two CPUs: no two of them fit on one, and 1.5 is more than 1.8 - 0.5.
        assert!(!is_guaranteed(&[0.5; 3], 2));
        assert_eq!(started_one_by_one(&[0.5; 3], 2), None);
        assert_eq!(started_one_by_one(&[0.45; 4], 2), Some(0));
        assert!(is_guaranteed(&[0.3; 5], 2));
    }
}
