//! The best events for a period analyser: system calls, wakeups or bursts (LFS++, section 7.4, Fig.
//! 8 and 9): how far off the frequency is that it finds, over the time it listens, and over the
//! real-time load beside the player.

use onbeat_model::Span;

use crate::machine::Machine;
use crate::plot::{Axis, Corner, Figure, Line, Look};
use crate::recorded::{Analyser, EventSource, Player, in_checkout};
use crate::results::{Ran, Table, percent};
use crate::statistics::Spread;
use crate::vm::Guest;

const NAME: &str = "wakeups-vs-syscalls";
const OVER_TIME: &str = "wakeups-vs-syscalls-over-time";
const OVER_LOAD: &str = "wakeups-vs-syscalls-over-load";

/// Stretches of each recording that are analysed.
const STRETCHES: u64 = 50;

/// For how long each load is recorded, in the guest's time.
const SECONDS: u64 = 8;

/// The analyser, the events that it hears, and its name.
const WAYS: [(Analyser, EventSource, &str); 4] = [
    (Analyser::Lfspp, EventSource::Calls, "LFS++, system calls"),
    (Analyser::Lfspp, EventSource::Wakeups, "LFS++, wakeups"),
    (Analyser::Default, EventSource::Wakeups, "onbeat, wakeups"),
    (Analyser::Default, EventSource::Bursts, "onbeat, bursts"),
];

const TIMES_MS: [u64; 7] = [200, 400, 600, 800, 1000, 1500, 2000];
/// The observation time of the runs with load (Fig. 9), in ms.
const LOADED_MS: u64 = 600;
/// The real-time loads beside the player, in per cent of the CPU.
const LOADS: [u64; 10] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 85];

struct Found {
    recording: &'static str,
    way: &'static str,
    observed_ms: u64,
    load_percent: u64,
    /// The mean number of events in a stretch.
    events: f64,
    /// Stretches within 1% of the true frequency.
    right: f64,
    /// Stretches in which none was found.
    none: f64,
    mean_hz: f64,
    deviation_hz: f64,
}

/// The recordings of which the accuracy over time is asked: file, thread, true frequency.
const RECORDINGS: [(&str, &str, f64); 3] = [
    ("mplayer25.l0", "mplayer", 25.0),
    ("mplayer25.l3", "mplayer", 25.0),
    ("ffmpegre30.l3", "ffmpeg", 30.0),
];

/// The one that is hard enough for a plot.
const PLOTTED: &str = "ffmpegre30.l3";

pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let out = machine.out();
    let mut over_time = Vec::new();
    for (recording, thread, true_hz) in RECORDINGS {
        let player = Player::read(&in_checkout(recording), thread)?;
        for observed_ms in TIMES_MS {
            let many = Many {
                recording,
                true_hz,
                observed_ms,
                load_percent: 0,
            };
            over_time.extend(many.heard_every_way(&player));
        }
    }
    let plotted = |f: &&Found| f.recording == PLOTTED;
    let of_one: Vec<&Found> = over_time.iter().filter(plotted).collect();
    right_over_time(&of_one).draw(out, OVER_TIME)?;
    deviation_over_events(&of_one).draw(out, &format!("{NAME}-events"))?;
    let ran = Ran::computed(machine, "recordings of real players");
    machine.publish(&ran, OVER_TIME, &table(&over_time));
    let loads = LOADS.map(|load| load.to_string()).join(" ");
    let ended = Guest::new(NAME)
        .set("LOADS", loads)
        .set("RUN_SECONDS", SECONDS)
        .boot(machine)?;
    let mut over_load = Vec::new();
    for load_percent in LOADS {
        let file = ended.folder.join(format!("load-{load_percent}.txt"));
        let player = Player::read(&file, "mplayer")?;
        let many = Many {
            recording: "mplayer in the guest",
            true_hz: 25.0,
            observed_ms: LOADED_MS,
            load_percent,
        };
        over_load.extend(many.heard_every_way(&player));
    }
    right_over_load(&over_load).draw(out, OVER_LOAD)?;
    machine.publish(&ended.ran(machine), OVER_LOAD, &table(&over_load));
    Ok(())
}

struct Many {
    recording: &'static str,
    true_hz: f64,
    observed_ms: u64,
    load_percent: u64,
}

impl Many {
    fn heard_every_way(&self, player: &Player) -> [Found; 4] {
        WAYS.map(|way| self.heard(player, way))
    }

    fn heard(
        &self,
        player: &Player,
        (analyser, heard, way): (Analyser, EventSource, &'static str),
    ) -> Found {
        let stretches = player.stretches(Span::from_ms(self.observed_ms), STRETCHES);
        let all: Vec<(Option<f64>, usize)> = stretches
            .into_iter()
            .map(|stretch| player.frequency(analyser, heard, stretch))
            .collect();
        let hz: Vec<f64> = all.iter().filter_map(|(hz, _)| *hz).collect();
        let share = |count: usize| count as f64 / all.len().max(1) as f64;
        let right = hz
            .iter()
            .filter(|hz| (**hz / self.true_hz - 1.0).abs() <= 0.01);
        let events: usize = all.iter().map(|(_, events)| events).sum();
        let found = Spread::of_all(&hz);
        Found {
            recording: self.recording,
            way,
            observed_ms: self.observed_ms,
            load_percent: self.load_percent,
            events: share(events),
            right: share(right.count()),
            none: share(all.len() - hz.len()),
            mean_hz: found.mean,
            deviation_hz: found.deviation,
        }
    }
}

/// One row for each recording, load and observation time: what was right, for each way of
/// listening, and mean and deviation of what the paper's analyser found (Fig. 8a and 9).
fn table(all: &[Found]) -> Table {
    let (groups, _) = all.as_chunks::<{ WAYS.len() }>();
    Table::of(groups, |[calls, wakeups, ours, bursts]| {
        let right = |f: &Found| percent(f.right, 0);
        let hz = |f: &Found| match f.none {
            1.0 => "-".to_owned(),
            _ => format!("{:.1} +- {:.1}", f.mean_hz, f.deviation_hz),
        };
        [
            ("recording", calls.recording.to_owned()),
            ("load", format!("{}%", calls.load_percent)),
            (
                "observed",
                format!("{} s", calls.observed_ms as f64 / 1000.0),
            ),
            ("system calls heard", format!("{:.0}", calls.events)),
            ("wakeups heard", format!("{:.0}", wakeups.events)),
            ("right: LFS++, system calls", right(calls)),
            ("LFS++, wakeups", right(wakeups)),
            ("onbeat, wakeups", right(ours)),
            ("onbeat, bursts", right(bursts)),
            ("found in Hz: LFS++, system calls", hz(calls)),
            ("LFS++, wakeups", hz(wakeups)),
            ("onbeat, bursts", hz(bursts)),
        ]
    })
}

/// One line for each way, through those of `all` in which something was found.
fn lines(all: &[&Found], point: impl Fn(&Found) -> (f64, f64)) -> Vec<Line> {
    let line = |(_, _, way): (_, _, &str)| {
        let found = all.iter().filter(|f| f.way == way && f.none < 1.0);
        Line::new(way, Look::Marked, found.map(|f| point(f)).collect())
    };
    WAYS.map(line).into()
}

/// Fig. 8a, as the share of observations that are right; the deviations are in Fig. 8b.
fn right_over_time(all: &[&Found]) -> Figure {
    Figure {
        title: "ffmpeg at 30 Hz beside 3 hogs".to_owned(),
        x: Axis::linear("observed for (s)", 0.0..2.1),
        y: Axis::linear("frequency right within 1% (% of observations)", 0.0..105.0),
        lines: lines(all, |f| (f.observed_ms as f64 / 1000.0, f.right * 100.0)),
        names: Corner::LowerRight,
    }
}

/// A deviation of zero has no place on a logarithmic axis: this is where it is drawn.
const NO_DEVIATION_HZ: f64 = 0.1;

/// Fig. 8b: the events there are to be processed against the deviation.
fn deviation_over_events(all: &[&Found]) -> Figure {
    Figure {
        title: "What accuracy costs: ffmpeg at 30 Hz beside 3 hogs".to_owned(),
        x: Axis::logarithmic("deviation of the frequency (Hz)", NO_DEVIATION_HZ..200.0),
        y: Axis::logarithmic("events in the observation", 10.0..10_000.0),
        lines: lines(all, |f| (f.deviation_hz.max(NO_DEVIATION_HZ), f.events)),
        names: Corner::UpperRight,
    }
}

/// Fig. 9: how often the frequency is right over the real-time load.
fn right_over_load(all: &[Found]) -> Figure {
    let all: Vec<&Found> = all.iter().collect();
    Figure {
        title: format!("mplayer at 25 Hz beside real-time load, observed for {LOADED_MS} ms"),
        x: Axis::linear("real-time load (% of the CPU)", 0.0..90.0),
        y: Axis::linear("frequency right within 1% (% of observations)", 0.0..105.0),
        lines: lines(&all, |f| (f.load_percent as f64, f.right * 100.0)),
        names: Corner::LowerLeft,
    }
}
