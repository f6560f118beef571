//! Section 4 of the paper on missed deadline notification: its programs under its three schedulers,
//! and under what a kernel has today, on the simulated machine.

pub(crate) mod cheaters;
pub(crate) mod deadlines;
mod paper;
pub(crate) mod progress;
mod run;
mod simulated;

use onbeat_model::{Instant, Span};

/// A scheduler, with or without onbeat's main loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduler {
    /// Linux 2.2 to 2.4
    Linux24,
    /// BEST
    Best,
    /// BEST with onbeat's addition: the next period is measured from a notification that comes too
    /// late, which the paper discards.
    BestMeasuring,
    /// BeRate
    Berate,
    /// Linux 2.4 with timers that fire with its clock's tick, each 10 ms, as on the paper's
    /// machines.
    Linux24Hz100,
    /// BeRate on such a machine: its quanta end at ticks, too.
    BerateHz100,
    /// The kernel's own, with its slice of 0.7 ms on one CPU.
    Eevdf,
    /// The same where each task asks for a slice of 0.1 ms, the shortest that the kernel gives.
    EevdfShort,
    /// EEVDF, and onbeat's main loop on top.
    Onbeat,
    /// The same, whose reservations are ceilings as well.
    OnbeatHard,
}

impl Scheduler {
    /// Those that a kernel can run, too.
    pub(crate) const ALL: [Self; 7] = [
        Self::Linux24,
        Self::Best,
        Self::Berate,
        Self::Eevdf,
        Self::EevdfShort,
        Self::Onbeat,
        Self::OnbeatHard,
    ];

    /// With [`Self::ALL`] what the simulated machine can run.
    pub(crate) const VARIANTS: [Self; 3] =
        [Self::Linux24Hz100, Self::BestMeasuring, Self::BerateHz100];

    /// The same with the constants of the paper's time, if that differs.
    pub(crate) const fn of_its_time(self) -> Option<Self> {
        match self {
            Self::Linux24 => Some(Self::Linux24Hz100),
            Self::Berate => Some(Self::BerateHz100),
            _ => None,
        }
    }

    /// How often the clock ticks at which timers fire; zero: they fire exactly.
    pub(crate) const fn tick(self) -> Span {
        match self {
            Self::Linux24Hz100 | Self::BerateHz100 => Span::from_ms(10),
            _ => Span::ZERO,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Linux24 => "Linux 2.4",
            Self::Best => "BEST",
            Self::BestMeasuring => "BEST, late ones measured",
            Self::Berate => "BeRate",
            Self::Linux24Hz100 => "Linux 2.4, HZ=100",
            Self::BerateHz100 => "BeRate, HZ=100",
            Self::Eevdf => "EEVDF",
            Self::EevdfShort => "EEVDF, 0.1 ms",
            Self::Onbeat => "onbeat",
            Self::OnbeatHard => "onbeat --hard",
        }
    }

    /// Its name in `guest.sh`, if it runs there.
    const fn word(self) -> &'static str {
        match self {
            Self::Linux24 => "linux24",
            Self::Best => "best",
            Self::Berate => "berate",
            Self::Onbeat => "onbeat",
            _ => "none",
        }
    }

    /// The kernel's own does not.
    const fn listens(self) -> bool {
        !matches!(self, Self::Eevdf | Self::EevdfShort)
    }
}

/// How often the CPU time of each program is noted.
const SAMPLE: Span = Span::from_ms(100);

#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// When each job was due, and when it was done.
    pub(crate) jobs: Vec<(Instant, Instant)>,
    pub(crate) cpu: Vec<Span>,
}

impl Outcome {
    pub(crate) fn missed_percent(&self) -> f64 {
        let missed = self.jobs.iter().filter(|(due, done)| done > due).count();
        100.0 * missed as f64 / self.jobs.len().max(1) as f64
    }

    pub(crate) fn cpu_percent(&self, from_s: usize, to_s: usize) -> f64 {
        let samples = |seconds: usize| seconds * 10;
        let (from, to) = (samples(from_s), samples(to_s).min(self.cpu.len()));
        let had: Span = self.cpu.get(from..to).into_iter().flatten().copied().sum();
        let all = SAMPLE * (to.saturating_sub(from).max(1) as u64);
        100.0 * had.as_ns() as f64 / all.as_ns() as f64
    }
}
