//! The cpufreq features of this machine: the actuator's line about speeds of `onbeat doctor`.

use onbeat_model::{Feature, Support};

use super::{Domain, Tree};

#[must_use]
pub fn probe(tree: &Tree) -> Feature {
    let name = "CPU frequencies";
    let domains = tree.domains();
    let Some(first) = domains.first() else {
        let detail = "no cpufreq: this kernel does not change the CPUs' speed, so no budget has to follow it";
        let advice = "nothing to do: only the speed of the CPUs cannot be set here";
        return Feature::new(name, Support::Partial, detail, advice);
    };
    let odd = domains.iter().find_map(|domain| domain.ladder().err());
    if let Some(error) = odd {
        let advice = "leave power.rule out, and report this";
        return Feature::new(name, Support::Partial, &error.to_string(), advice);
    }
    let count = match domains.len() {
        1 => "1 domain".to_owned(),
        n => format!("{n} domains"),
    };
    let detail = format!(
        "{} ({count}): {}",
        first.driver(),
        describe(first).unwrap_or_default()
    );
    if domains.iter().all(Domain::may_be_set) {
        Feature::new(name, Support::Full, &detail, "")
    } else {
        let advice = "to set the speed, run onbeat as root";
        Feature::new(name, Support::Partial, &detail, advice)
    }
}

fn describe(domain: &Domain) -> Option<String> {
    let (ladder, settings) = (domain.ladder().ok()?, domain.settings().ok()?);
    let way = if settings.setspeed.is_some() {
        "scaling_setspeed"
    } else {
        "its limits"
    };
    Some(format!(
        "{} speeds from {} to {}; governor {}, asked through {way}",
        ladder.speeds().count(),
        ladder.lowest(),
        ladder.highest(),
        settings.governor,
    ))
}
