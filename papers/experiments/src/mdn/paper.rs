//! The paper's programs, side by side as in its section 4, and what became of them there.

use onbeat_model::Span;

use super::Scheduler;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Program {
    /// The soft real-time one: frames a second, and the permille of a CPU that they need.
    Srt(u64, u64),
    CpuBound,
}

impl Program {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Srt(rate, permille) => format!("srt ({rate} f/s, {}%)", permille as f64 / 10.0),
            Self::CpuBound => "CPU-bound".to_owned(),
        }
    }

    pub(crate) const fn is_srt(self) -> bool {
        matches!(self, Self::Srt(..))
    }

    /// Its period; for a program without one, the piece of work after which its progress is noted.
    pub(crate) const fn period(self) -> Span {
        match self {
            Self::Srt(rate, _) => Span::from_ns(1_000_000_000 / rate),
            Self::CpuBound => Span::from_ms(10),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) name: &'static str,
    pub(crate) programs: &'static [Program],
}

use Program::{CpuBound, Srt};

pub(crate) const HALF: Mix = Mix {
    name: "50",
    programs: &[Srt(25, 500), CpuBound],
};
pub(crate) const THIRDS: Mix = Mix {
    name: "33-33",
    programs: &[Srt(25, 333), Srt(33, 333), CpuBound],
};
pub(crate) const MORE_THAN_HALF: Mix = Mix {
    name: "60",
    programs: &[Srt(25, 600), CpuBound],
};
pub(crate) const MORE_THAN_QUARTERS: Mix = Mix {
    name: "33-33-of-4",
    programs: &[Srt(25, 333), Srt(33, 333), CpuBound, CpuBound],
};
pub(crate) const OVERLOAD: Mix = Mix {
    name: "62-62",
    programs: &[Srt(25, 625), Srt(33, 625), CpuBound],
};

pub(crate) const MIXES: [Mix; 5] = [HALF, THIRDS, MORE_THAN_HALF, MORE_THAN_QUARTERS, OVERLOAD];

/// A line of the paper's tables, in percent: missed deadlines without and with MDN (none for a
/// program that has no deadlines), and the CPU time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) missed: Option<(&'static str, &'static str)>,
    pub(crate) cpu: (f64, f64),
}

const fn srt(without: &'static str, with: &'static str, cpu: (f64, f64)) -> Line {
    Line {
        missed: Some((without, with)),
        cpu,
    }
}

const fn bound(cpu: (f64, f64)) -> Line {
    Line { missed: None, cpu }
}

pub(crate) const TABLES: [(Scheduler, Mix, &[Line]); 5] = [
    (
        Scheduler::Linux24,
        HALF,
        &[srt("7.9", "<0.1", (46.9, 50.3)), bound((52.3, 48.8))],
    ),
    (
        Scheduler::Linux24,
        THIRDS,
        &[
            srt("3.1", "<0.1", (32.4, 32.7)),
            srt("2.3", "<0.1", (33.1, 33.4)),
            bound((33.6, 32.8)),
        ],
    ),
    (
        Scheduler::Linux24,
        MORE_THAN_HALF,
        &[srt("41.2", "1.5", (50.1, 60.0)), bound((49.4, 39.1))],
    ),
    (
        Scheduler::Berate,
        MORE_THAN_HALF,
        &[srt("10.9", "5.5", (60.4, 61.7)), bound((33.6, 32.8))],
    ),
    (
        Scheduler::Berate,
        MORE_THAN_QUARTERS,
        &[
            srt("14.9", "9.9", (30.7, 31.7)),
            srt("10.5", "9.5", (31.6, 31.8)),
            bound((18.6, 18.0)),
            bound((18.9, 18.2)),
        ],
    ),
];
