//! Settings for what the paper leaves open of the rules of Linux 2.4 and BeRate, and for what
//! interrupts the programs: how much a figure depends on that is part of the figure.

use std::fmt;

use onbeat_model::Span;
use onbeat_policies::boost::{BoostParams, ONE};
use onbeat_policies::{Berate, Linux24, Rules};
use onbeat_sim::policy::ruled::Ruled;

/// Those that are set.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Knobs {
    /// The quantum of Linux 2.4 and BeRate, in place of their 60
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) quantum_ms: Option<u64>,
    /// The most that notifications add to the quantum of a task that sleeps all the time, in quanta
    #[arg(long, value_name = "QUANTA", value_parser = clap::value_parser!(u64).range(0..=16))]
    pub(super) boost_most: Option<u64>,
    /// Quanta that one notification adds to the quantum of such a task
    #[arg(long, value_name = "QUANTA", value_parser = clap::value_parser!(u64).range(0..=16))]
    pub(super) boost_step: Option<u64>,
    /// How long the boost of a quantum lasts where the task sleeps all the time
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=240_000))]
    pub(super) boost_decay_ms: Option<u64>,
    /// The time over which the block ratio is averaged
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) block_average_ms: Option<u64>,
    /// How often something else takes the CPU for 0.1 ms, as threads of a kernel and daemons do;
    /// never, if not given
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) interrupt_ms: Option<u64>,
    /// BeRate postpones a deadline by a whole period at each preemption, without a bound
    #[arg(long)]
    pub(super) postpone_freely: bool,
}

const INTERRUPTION: Span = Span::from_us(100);

const NS_PER_MS: u64 = 1_000_000;

impl Knobs {
    pub(crate) fn interrupt<R: Rules>(self, policy: Ruled<R>) -> Ruled<R> {
        match self.interrupt_ms {
            Some(ms) => policy.interrupted(Span::from_ms(ms), INTERRUPTION),
            None => policy,
        }
    }

    pub(crate) fn linux24(self) -> Linux24 {
        let mut rules = Linux24::default();
        self.set(&mut rules.params.quantum_ns, &mut rules.params.boost);
        rules
    }

    pub(crate) fn berate(self) -> Berate {
        let mut rules = Berate::default();
        rules.params.postpone_freely = self.postpone_freely.into();
        self.set(&mut rules.params.quantum_ns, &mut rules.params.boost);
        rules
    }

    fn set(self, quantum_ns: &mut u64, boost: &mut BoostParams) {
        let ms = |told: Option<u64>, ns: &mut u64| *ns = told.map_or(*ns, |ms| ms * NS_PER_MS);
        ms(self.quantum_ms, quantum_ns);
        ms(self.boost_decay_ms, &mut boost.decay_ns);
        ms(self.block_average_ms, &mut boost.average_ns);
        if let Some(quanta) = self.boost_most {
            boost.most = quanta * ONE;
            boost.step = boost.step.min(boost.most);
        }
        if let Some(quanta) = self.boost_step {
            boost.step = quanta * ONE;
        }
    }
}

/// Each that is set, with a comma before.
impl fmt::Display for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let knobs = [
            ("quanta of", self.quantum_ms, "ms"),
            ("boosts of at most", self.boost_most, "quanta"),
            ("boosts in steps of", self.boost_step, "quanta"),
            ("boosts that last", self.boost_decay_ms, "ms a quantum"),
            ("block ratios over", self.block_average_ms, "ms"),
            ("interrupted each", self.interrupt_ms, "ms"),
        ];
        for (what, set, unit) in knobs {
            if let Some(set) = set {
                write!(f, ", {what} {set} {unit}")?;
            }
        }
        if self.postpone_freely {
            f.write_str(", deadlines postponed freely")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_as_the_rules_have_it() {
        let own = Linux24::default();
        assert_eq!(Knobs::default().linux24().params, own.params);
        let knobs = Knobs {
            boost_most: Some(2),
            ..Knobs::default()
        };
        let set = knobs.linux24();
        assert_eq!(set.params.boost.most, 2 * ONE);
        assert_eq!(set.params.quantum_ns, own.params.quantum_ns);
        assert_eq!(knobs.to_string(), ", boosts of at most 2 quanta");
    }
}
