//! The execution time of each job of real codecs (G6): five programs like those of GRACE-OS's Table
//! 2, at its periods, watched by `onbeat record`.

mod codec;
pub(crate) mod kept;
mod material;
mod paced;
mod stability;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use onbeat_model::Span;
use serde::Serialize;
use serde_json::json;

use crate::machine::Machine;
use crate::results::{Ran, Table, mean, percent, quantile};
use codec::{CODECS, Codec};

const NAME: &str = "demands";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this one: mpeg1-decode, mp3-decode, h263-encode, h263-decode, gsm-encode
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Instead: how stable the distributions of what was recorded are (Fig. 10 and 11); computed
    #[arg(long, conflicts_with_all = ["only", "keep"])]
    stability: bool,
    /// How often each is played; of a job, the shortest counts
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Put the recordings where the other experiments take them from
    #[arg(long)]
    keep: bool,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    paper: &'static str,
    period_ms: u64,
    jobs: usize,
    left_out: usize,
    mean_ms: f64,
    p50_ms: f64,
    p95_ms: f64,
    max_ms: f64,
    share: f64,
    /// The share of the machine's time that its hypervisor took meanwhile.
    steal: f64,
}

/// Records one or all, writes the files, and publishes what the jobs took.
pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    if args.stability {
        return stability::run(machine);
    }
    machine.need_root()?;
    let facts = machine.facts();
    let wanted = |codec: &&Codec| args.only.as_deref().is_none_or(|only| only == codec.name);
    let mut rows = Vec::new();
    for codec in CODECS.iter().filter(wanted) {
        rows.push(record(machine, codec, args)?);
    }
    if rows.is_empty() {
        let names: Vec<_> = CODECS.iter().map(|codec| codec.name).collect();
        let names = names.join(", ");
        bail!("there is no codec of that name: there are {names}");
    }
    let paper = json!({
        "source": "GRACE-OS, Table 2 and Figures 10 and 11; cycles at 1 GHz",
        "mpgplay": { "ms": [4.5, 9.9] },
        "madplay": { "p95_ms": 0.86 },
        "tmn": { "p50_ms": 250 },
        "toast": { "p95_ms": 0.23 },
    });
    let table = Table::of(&rows, |row| {
        let ms = |ms: f64| format!("{ms:.3}");
        [
            ("codec", row.name.to_owned()),
            ("in the paper", row.paper.to_owned()),
            ("period ms", row.period_ms.to_string()),
            ("jobs", row.jobs.to_string()),
            ("mean ms", ms(row.mean_ms)),
            ("p50", ms(row.p50_ms)),
            ("p95", ms(row.p95_ms)),
            ("max", ms(row.max_ms)),
            ("share", percent(row.share, 1)),
            ("steal", percent(row.steal, 2)),
        ]
    });
    machine.publish(&Ran::Live(facts), NAME, &table, &rows, paper)
}

fn record(machine: &Machine, codec: &Codec, args: &Args) -> anyhow::Result<Row> {
    let material = codec.material.file(machine)?;
    let time = Span::from_ms(codec.period_ms) * codec.jobs as u64;
    println!(
        "{}: {} jobs, {} times {:.0} s",
        codec.name,
        codec.jobs,
        args.runs,
        time.as_secs_f64()
    );
    let load = read("/proc/loadavg")?;
    let before = ticks()?;
    let mut shortest = vec![None; codec.jobs];
    for _ in 0..args.runs {
        let jobs = paced::play(machine, codec, &material)?;
        shortest = shorter_of(&shortest, &jobs);
    }
    let jobs: Vec<Span> = shortest.iter().copied().flatten().collect();
    let left_out = shortest.len() - jobs.len();
    let steal = before.steal_until(&ticks()?);
    let facts = [
        ("left_out", left_out.to_string()),
        ("runs", args.runs.to_string()),
        ("cpu", cpuinfo("model name")?),
        ("cpu_mhz", cpuinfo("cpu MHz")?),
        ("kernel", read("/proc/sys/kernel/osrelease")?),
        ("load_before", load),
        ("steal", format!("{steal:.4}")),
        ("date", output("date", &["-u", "+%F"])?),
        ("ffmpeg", output("ffmpeg", &["-version"])?),
    ];
    let text = kept::text(codec, &jobs, &facts);
    let folder = if args.keep {
        kept::folder()
    } else {
        machine.out()
    };
    let file = kept::file(folder, codec);
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let ms: Vec<f64> = jobs.iter().map(|job| job.as_ms_f64()).collect();
    let mean_ms = mean(&ms);
    Ok(Row {
        name: codec.name,
        paper: codec.paper,
        period_ms: codec.period_ms,
        jobs: ms.len(),
        left_out,
        mean_ms,
        p50_ms: quantile(&ms, 0.5),
        p95_ms: quantile(&ms, 0.95),
        max_ms: quantile(&ms, 1.0),
        share: mean_ms / codec.period_ms as f64,
        steal,
    })
}

/// The shorter of two runs of each job: they do the same, and whatever disturbs one only makes it
/// longer.
fn shorter_of(a: &[Option<Span>], b: &[Option<Span>]) -> Vec<Option<Span>> {
    let shorter = |(&a, &b): (&Option<Span>, &Option<Span>)| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => a.or(b),
    };
    a.iter().zip(b).map(shorter).collect()
}

fn read(path: impl AsRef<Path>) -> anyhow::Result<String> {
    let path = path.as_ref();
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim().to_owned())
}

fn cpuinfo(name: &str) -> anyhow::Result<String> {
    let text = read("/proc/cpuinfo")?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_once(':'));
    Ok(value
        .map_or("unknown", |(_, value)| value.trim())
        .to_owned())
}

fn output(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("cannot start {program}: is it installed?"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// The machine's time so far, in ticks.
struct Ticks {
    all: u64,
    stolen: u64,
}

fn ticks() -> anyhow::Result<Ticks> {
    let text = read("/proc/stat")?;
    let first = text.lines().next().unwrap_or_default();
    let of = first.split_whitespace().skip(1).take(8);
    let columns: Vec<u64> = of.map(|column| column.parse().unwrap_or(0)).collect();
    Ok(Ticks {
        all: columns.iter().sum(),
        stolen: columns.get(7).copied().unwrap_or(0),
    })
}

impl Ticks {
    fn steal_until(&self, later: &Self) -> f64 {
        let all = later.all.saturating_sub(self.all).max(1);
        later.stolen.saturating_sub(self.stolen) as f64 / all as f64
    }
}
