//! The schemes: who gets which budget, and which speed.

/// What is allocated, and how fast it runs (GRACE-OS, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// The worst case; one speed, at which all budgets fit.
    WrsUni,
    /// The worst case; one speed for what is claimed: the budget until a job ends, then what it used.
    WrsRec,
    /// The worst case; a job speeds up as it goes on.
    WrsSto,
    /// What the share rho of jobs stays within; one speed.
    StoUni,
    /// What the share rho of jobs stays within; one speed for what is claimed.
    StoRec,
    /// What the share rho of jobs stays within; a job speeds up as it goes on.
    GraceOs,
    /// What the share rho of jobs stays within; always the highest speed: race to idle.
    Race,
    /// What the share rho of jobs stays within; the speed of the bandwidth that is in use, which a budget is from a release
    /// until its zero-lag time: GRUB-PA (Scordino and Lipari, IEEE TC 2006), what schedutil does for SCHED_DEADLINE.
    GrubPa,
    /// What the share rho of jobs stays within; a speed for all jobs that wait, from all distributions: beyond the
    /// paper ([`onbeat_decide::stochastic::joint`]).
    Joint,
    /// The same with the distribution of what each job demands beside a forecast
    /// ([`onbeat_decide::stochastic::forecast`]), not that of all jobs; also beyond the paper.
    JointForecast,
}

/// How a scheme sets speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speeds {
    Highest,
    Uniform,
    Reclaiming,
    Stochastic,
    InUse,
    Joint,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::WrsUni,
        Self::WrsRec,
        Self::WrsSto,
        Self::StoUni,
        Self::StoRec,
        Self::GraceOs,
        Self::Race,
        Self::GrubPa,
        Self::Joint,
        Self::JointForecast,
    ];

    /// Its name in a scenario.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WrsUni => "worst-uniform",
            Self::WrsRec => "worst-reclaim",
            Self::WrsSto => "worst-stochastic",
            Self::StoUni => "stochastic-uniform",
            Self::StoRec => "stochastic-reclaim",
            Self::GraceOs => "grace-os",
            Self::Race => "race-to-idle",
            Self::GrubPa => "grub-pa",
            Self::Joint => "joint",
            Self::JointForecast => "joint-forecast",
        }
    }

    pub(super) const fn allocates_worst(self) -> bool {
        matches!(self, Self::WrsUni | Self::WrsRec | Self::WrsSto)
    }

    pub(super) const fn speeds(self) -> Speeds {
        match self {
            Self::WrsUni | Self::StoUni => Speeds::Uniform,
            Self::WrsRec | Self::StoRec => Speeds::Reclaiming,
            Self::WrsSto | Self::GraceOs => Speeds::Stochastic,
            Self::Race => Speeds::Highest,
            Self::GrubPa => Speeds::InUse,
            Self::Joint | Self::JointForecast => Speeds::Joint,
        }
    }
}
