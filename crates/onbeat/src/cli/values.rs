//! The values that flags take, and the errors about wrong ones.

use clap::ValueEnum;
use onbeat_decide::power::Band;
use onbeat_model::Bandwidth;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MeansChoice {
    /// A real-time priority within its account for all; with --always or --hard, reservations for
    /// those with a period
    #[default]
    Auto,
    /// Reservations for those with a period, and nothing for the rest
    Reservations,
    /// A real-time priority within its account for all
    Priority,
    /// A nice value and a slice for all
    Nice,
}

/// Whether threads of other programs on the pipeline are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pipelines {
    /// Reserve for the threads that work for each job of a periodic one
    #[default]
    Auto,
    /// Leave other programs alone
    Off,
}

pub(super) fn process(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not the number of a process: write $(pidof {text})"))
}

/// Two shares with a dash between them, the lower one first; that one may be 0.
pub(crate) fn band(text: &str) -> Result<Band, String> {
    let advice =
        || format!("'{text}' is not a band: write two shares, the lower one first, as in 20%-80%");
    let share = |text: &str| match text.trim().trim_end_matches('%').parse::<f64>() {
        Ok(number) if (0.0..=100.0).contains(&number) => Some(Bandwidth::from_cpus(number / 100.0)),
        _ => None,
    };
    let (low, high) = text.split_once('-').ok_or_else(advice)?;
    let (low, high) = share(low).zip(share(high)).ok_or_else(advice)?;
    Band::new(low, high).ok_or_else(advice)
}
