//! A path through several programs beside CPU hogs: with only the program itself on the beat, and
//! with all that work for it. A film on a display server, and two players of sound on PipeWire.

mod film;
mod pipewire;
mod sound;

use serde::Serialize;
use serde_json::json;

pub(crate) use pipewire::Pipewire;

use crate::machine::{Machine, ThreadFigures};
use crate::results::{Ran, Table, publish};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how long the film is watched in each run
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(5..=600))]
    film_seconds: u64,
    /// For how long PipeWire's cycles are counted in each run
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(5..=600))]
    sound_seconds: u64,
    /// CPU hogs for each CPU
    #[arg(long, value_name = "N", default_value_t = 4)]
    hogs: usize,
    /// Only this half
    #[arg(long, value_enum, value_name = "HALF")]
    only: Option<PipelineHalf>,
}

/// The material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PipelineHalf {
    /// A film on a display server
    Film,
    /// Two players of sound on PipeWire
    Sound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum PipelineWay {
    Nobody,
    PlayersAlone,
    WholePath,
}

impl PipelineWay {
    const ALL: [Self; 3] = [Self::Nobody, Self::PlayersAlone, Self::WholePath];

    const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "without onbeat",
            Self::PlayersAlone => "only the players tracked",
            Self::WholePath => "the whole path",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::PlayersAlone => "players-alone",
            Self::WholePath => "whole-path",
        }
    }

    /// onbeat's option; none if it is not there at all.
    const fn option(self) -> Option<&'static str> {
        match self {
            Self::Nobody => None,
            Self::PlayersAlone => Some("--pipelines=off"),
            Self::WholePath => Some("--pipelines=auto"),
        }
    }
}

#[derive(Debug, Default, Serialize)]
struct Figures {
    film: Vec<film::FilmRun>,
    sound: Vec<sound::SoundRun>,
}

pub(crate) fn run(machine: &Machine, args: &Args) -> anyhow::Result<()> {
    machine.need_root()?;
    let facts = machine.facts();
    let mut figures = Figures::default();
    let mut table = Table::new(["run", "beside the hogs", "figure", "value", "served"]);
    if args.only != Some(PipelineHalf::Sound) {
        film::run(machine, args, &mut figures.film, &mut table)?;
    }
    if args.only != Some(PipelineHalf::Film) {
        sound::run(machine, args, &mut figures.sound, &mut table)?;
    }
    publish(
        machine.out(),
        &Ran::Live(facts),
        "pipelines",
        &table,
        &figures,
        json!({ "none": "no paper serves the other programs on a path" }),
    )
}

fn served(threads: &[ThreadFigures]) -> String {
    let held = threads.iter().filter(|thread| thread.held_ns > 0);
    let names: Vec<&str> = held.map(|thread| thread.comm.as_str()).collect();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(", ")
    }
}
