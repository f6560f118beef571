//! The schemes: the budget of each task, and the speed.

use crate::stochastic::schedule::Differences;

/// The allocation, and the speed (GRACE-OS, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum Scheme {
    /// The worst case; one speed, at which all budgets fit.
    WrsUni,
    /// The worst case; one speed for what is claimed: the budget until a job ends, then what it
    /// used.
    WrsRec,
    /// The worst case; a job speeds up as it goes on.
    WrsSto,
    /// The demand that the share rho of jobs stays within; one speed.
    StoUni,
    /// The demand that the share rho of jobs stays within; one speed for what is claimed.
    StoRec,
    /// The demand that the share rho of jobs stays within; a job speeds up as it goes on.
    GraceOs,
    /// [`Self::WrsSto`] with the paper's speed schedule as its text has it
    /// ([`Schedule::as_written`](crate::stochastic::Schedule::as_written)): a job within
    /// its budget may be late.
    WrsStoAsWritten,
    /// [`Self::GraceOs`] in the same way.
    GraceOsAsWritten,
    /// The same, but each group runs at its own speed.
    GraceOsOwnSpeeds,
    /// [`Self::GraceOsAsWritten`], but eq. 12 has the bounds of the CPU.
    GraceOsBounded,
    /// The demand that the share rho of jobs stays within; always the highest speed: race to idle.
    Race,
    /// The demand that the share rho of jobs stays within; the speed of the bandwidth that is in
    /// use, which a budget is from a release until its zero-lag time: GRUB-PA (Scordino and Lipari,
    /// IEEE TC 2006), what schedutil does for SCHED_DEADLINE.
    GrubPa,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemeSpeeds {
    Highest,
    Uniform,
    Reclaiming,
    Stochastic,
    AsWritten(Differences),
    InUse,
}

impl Scheme {
    pub const ALL: [Self; 12] = [
        Self::WrsUni,
        Self::WrsRec,
        Self::WrsSto,
        Self::StoUni,
        Self::StoRec,
        Self::GraceOs,
        Self::WrsStoAsWritten,
        Self::GraceOsAsWritten,
        Self::GraceOsOwnSpeeds,
        Self::GraceOsBounded,
        Self::Race,
        Self::GrubPa,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::WrsUni => "worst-uniform",
            Self::WrsRec => "worst-reclaim",
            Self::WrsSto => "worst-stochastic",
            Self::StoUni => "stochastic-uniform",
            Self::StoRec => "stochastic-reclaim",
            Self::GraceOs => "grace-os",
            Self::WrsStoAsWritten => "worst-stochastic-as-written",
            Self::GraceOsAsWritten => "grace-os-as-written",
            Self::GraceOsOwnSpeeds => "grace-os-own-speeds",
            Self::GraceOsBounded => "grace-os-bounded",
            Self::Race => "race-to-idle",
            Self::GrubPa => "grub-pa",
        }
    }

    pub(super) const fn allocates_worst(self) -> bool {
        matches!(
            self,
            Self::WrsUni | Self::WrsRec | Self::WrsSto | Self::WrsStoAsWritten
        )
    }

    pub(super) const fn speeds(self) -> SchemeSpeeds {
        match self {
            Self::WrsUni | Self::StoUni => SchemeSpeeds::Uniform,
            Self::WrsRec | Self::StoRec => SchemeSpeeds::Reclaiming,
            Self::WrsSto | Self::GraceOs => SchemeSpeeds::Stochastic,
            Self::WrsStoAsWritten | Self::GraceOsAsWritten => {
                SchemeSpeeds::AsWritten(Differences {
                    own_speeds: false,
                    bounded: false,
                })
            }
            Self::GraceOsOwnSpeeds => SchemeSpeeds::AsWritten(Differences {
                own_speeds: true,
                bounded: false,
            }),
            Self::GraceOsBounded => SchemeSpeeds::AsWritten(Differences {
                own_speeds: false,
                bounded: true,
            }),
            Self::Race => SchemeSpeeds::Highest,
            Self::GrubPa => SchemeSpeeds::InUse,
        }
    }
}

impl TryFrom<String> for Scheme {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scheme| scheme.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no scheme '{name}': write one of {names}")
        })
    }
}
