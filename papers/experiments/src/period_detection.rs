//! How long a player must be watched until its rate is found (LFS++, section 7.6, Fig. 11 and 12):
//! spectra after several tracing times, and how the frequencies are distributed that either
//! analyser finds in a hundred stretches of a recording.

use onbeat_model::Span;

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::recorded::{Analyser, EventSource, Player, in_checkout};
use crate::results::{Ran, Table};

const NAME: &str = "period-detection";

/// Stretches of each recording that are analysed, for each tracing time.
const STRETCHES: u64 = 100;

/// The recordings: file, thread, and frequency in Hz.
const RECORDINGS: [(&str, &str, f64); 4] = [
    ("mplayer25.l0", "mplayer", 25.0),
    ("mplayer25.l3", "mplayer", 25.0),
    ("ffmpegre30.l0", "ffmpeg", 30.0),
    ("ffmpegre30.l3", "ffmpeg", 30.0),
];

const TIMES_MS: [u64; 5] = [200, 500, 1000, 2000, 4000];

const ANALYSERS: [(Analyser, &str); 2] =
    [(Analyser::Lfspp, "LFS++"), (Analyser::Default, "onbeat")];

/// The frequencies that one analyser found in the stretches of one recording.
struct Found {
    recording: &'static str,
    analyser: &'static str,
    tracing_ms: u64,
    stretches: usize,
    /// Within 1% of the true one.
    right: usize,
    /// Within 1% of a multiple of it, or of a whole part.
    harmonic: usize,
    wrong: usize,
    /// All that were found, in Hz.
    hz: Vec<f64>,
}

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let out = machine.out();
    let mut all = Vec::new();
    for (recording, thread, true_hz) in RECORDINGS {
        let player = Player::read(&in_checkout(recording), thread)?;
        if recording.ends_with(".l0") {
            let name = format!("{NAME}-spectra-{thread}");
            spectra(&player, thread).draw(out, &name)?;
        }
        for (analyser, name) in ANALYSERS {
            for tracing_ms in TIMES_MS {
                let length = Span::from_ms(tracing_ms);
                let stretches = player.stretches(length, STRETCHES);
                let found = stretches.into_iter().map(|stretch| {
                    let heard = match analyser {
                        Analyser::Lfspp => EventSource::Wakeups,
                        Analyser::Default => EventSource::Bursts,
                    };
                    player.frequency(analyser, heard, stretch).0
                });
                let found: Vec<Option<f64>> = found.collect();
                all.push(judge(&found, (recording, true_hz), name, tracing_ms));
            }
        }
    }
    for (_, analyser) in ANALYSERS {
        for (recording, player) in [("mplayer25.l0", "mplayer"), ("ffmpegre30.l3", "ffmpeg")] {
            let of = |f: &&Found| f.analyser == analyser && f.recording == recording;
            let found: Vec<&Found> = all.iter().filter(of).collect();
            let analyser_name = analyser.to_lowercase().replace('+', "p");
            let name = format!("{NAME}-pmf-{analyser_name}-{player}");
            probabilities(&found, analyser, player).draw(out, &name)?;
        }
    }
    let ran = Ran::computed(machine, "recordings of real players");
    machine.publish(&ran, NAME, &table(&all));
    Ok(())
}

fn judge(
    found: &[Option<f64>],
    (recording, true_hz): (&'static str, f64),
    analyser: &'static str,
    tracing_ms: u64,
) -> Found {
    let hz: Vec<f64> = found.iter().copied().flatten().collect();
    let is = |hz: f64, of: f64| (hz / of - 1.0).abs() <= 0.01;
    let right = hz.iter().filter(|hz| is(**hz, true_hz)).count();
    let harmonics = |hz: &&f64| {
        let mut factors = (2..=16).map(f64::from);
        factors.any(|n| is(**hz, true_hz * n) || is(**hz, true_hz / n))
    };
    let harmonic = hz.iter().filter(harmonics).count();
    Found {
        recording,
        analyser,
        tracing_ms,
        stretches: found.len(),
        right,
        harmonic,
        wrong: hz.len() - right - harmonic,
        hz,
    }
}

/// The shares of stretches that are right and wrong; in the others nothing was found.
fn table(all: &[Found]) -> Table {
    let times = TIMES_MS.map(|ms| format!("{} s", ms as f64 / 1000.0));
    let headings = ["recording", "analyser"].map(str::to_owned);
    let mut table = Table::of_columns(headings.into_iter().chain(times).collect());
    for of_one in all.chunks(TIMES_MS.len()) {
        let names = [of_one[0].recording, of_one[0].analyser].map(str::to_owned);
        let cells = of_one.iter().map(|f| {
            let of = |count: usize| count as f64 / f.stretches.max(1) as f64 * 100.0;
            format!("{:.0}% {:.0}%", of(f.right), of(f.harmonic + f.wrong))
        });
        table.cells(names.into_iter().chain(cells).collect());
    }
    table
}

/// The spectrum after each tracing time, up to 100 Hz (Fig. 11).
fn spectra(player: &Player, thread: &str) -> Figure {
    let line = |ms: u64| {
        let spectrum = player.spectrum((Span::from_secs(1), Span::from_ms(ms)));
        let shown = spectrum.into_iter().filter(|(hz, _)| *hz <= 100.0);
        let name = format!("{} s", ms as f64 / 1000.0);
        Line::new(&name, Look::Straight, shown.collect())
    };
    Figure {
        title: format!("Spectrum of {thread}'s wakeups, by tracing time"),
        x: Axis::linear("frequency (Hz)", 0.0..100.0),
        y: Axis::linear("amplitude / greatest", 0.0..1.05),
        lines: [200, 500, 2000].map(line).into(),
        names: Corner::UpperRight,
    }
}

/// How often each frequency was found, after each tracing time (Fig. 12).
fn probabilities(found: &[&Found], analyser: &str, player: &str) -> Figure {
    const BIN_HZ: f64 = 0.25;
    let line = |f: &&Found| {
        let bins = (96..=144).map(|bin| f64::from(bin) * BIN_HZ);
        let share = |at: f64| {
            let inside = f.hz.iter().filter(|hz| (**hz - at).abs() <= BIN_HZ / 2.0);
            inside.count() as f64 / f.stretches.max(1) as f64
        };
        let name = format!("{} s", f.tracing_ms as f64 / 1000.0);
        Line::new(
            &name,
            Look::Marked,
            bins.map(|at| (at, share(at))).collect(),
        )
    };
    Figure {
        title: format!("Frequency found by {analyser} in stretches of {player}"),
        x: Axis::linear("frequency (Hz)", 24.0..36.0),
        y: Axis::linear("share of stretches", 0.0..1.05),
        lines: found.iter().map(line).collect(),
        names: Corner::UpperRight,
    }
}
