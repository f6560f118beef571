//! The request of a pod's annotations for one of its containers.
//!
//! Annotations are hostile input: each value is of bounded length and form, or refused.

use std::collections::BTreeMap;

use onbeat_model::Bandwidth;

use crate::api::{Container, LinuxCpu};

pub const PREFIX: &str = "onbeat.dev/";

const LONGEST: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    #[error("the annotation {key} is '{value}': write {instead}")]
    Value {
        key: String,
        /// The value, shortened and without control characters.
        value: String,
        instead: &'static str,
    },
    #[error(
        "the container requests no CPU time, and its request is the most that it may reserve: \
         set resources.requests.cpu"
    )]
    NoRequest,
}

/// The most that the container's reservations may take together; none if it is not to be kept.
/// Annotations for this container alone (`onbeat.dev/cap.container.NAME`) come before those for all
/// (`onbeat.dev/cap`, or `onbeat.dev/cap.pod`).
pub fn entitlement(
    annotations: &BTreeMap<String, String>,
    container: &Container,
) -> Result<Option<Bandwidth>, Mistake> {
    let asked = |what: &str| {
        let keys = [
            format!("{PREFIX}{what}.container.{}", container.name),
            format!("{PREFIX}{what}.pod"),
            format!("{PREFIX}{what}"),
        ];
        let mut found = keys.into_iter().filter_map(|key| {
            let value = annotations.get(&key)?.clone();
            Some((key, value))
        });
        found.next()
    };
    let keep = read(asked("keep"), "\"true\" or \"false\"", |text| {
        text.parse::<bool>().ok()
    })?;
    if keep != Some(true) {
        return Ok(None);
    }
    let cap = read(
        asked("cap"),
        "CPUs, as in \"250m\" or \"0.5\", or per cent of one CPU, as in \"25%\"",
        share,
    )?;
    let resources = container
        .linux
        .as_ref()
        .and_then(|linux| linux.resources.as_ref());
    let request = resources.and_then(|resources| requested(resources.cpu.as_ref()?));
    let request = request.ok_or(Mistake::NoRequest)?;
    Ok(Some(cap.map_or(request, |cap| cap.min(request))))
}

fn read<T>(
    asked: Option<(String, String)>,
    instead: &'static str,
    of: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Mistake> {
    let Some((key, value)) = asked else {
        return Ok(None);
    };
    let read = (value.len() <= LONGEST).then(|| of(value.trim())).flatten();
    let shortened = || value.chars().filter(|c| !c.is_control()).take(LONGEST);
    read.map(Some).ok_or_else(|| Mistake::Value {
        key,
        value: shortened().collect(),
        instead,
    })
}

/// A share of CPUs as Kubernetes writes it, or in per cent of one CPU.
fn share(text: &str) -> Option<Bandwidth> {
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let (number, unit) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => text
            .strip_suffix('m')
            .map_or((text, 1.0), |milli| (milli, 1000.0)),
    };
    let number = number.parse::<f64>().ok().filter(|_| is_plain(number))? / unit;
    // The service reads shares down to this one, and so does Kubernetes.
    (0.001..=MOST_CPUS)
        .contains(&number)
        .then(|| Bandwidth::from_cpus(number))
}

/// The greatest share that the service reads.
const MOST_CPUS: f64 = 100.0;

/// The container's request of CPU time: Kubernetes makes the weight of its group from the request,
/// 1024 for each CPU, and 2 if there is none. A container that has a limit alone requests as much,
/// and its weight says so; other tools set the limit only.
fn requested(cpu: &LinuxCpu) -> Option<Bandwidth> {
    const NO_REQUEST: u64 = 2;
    const SHARES_OF_A_CPU: f64 = 1024.0;
    let shares = cpu.shares.map_or(0, |shares| shares.value);
    let quota = cpu.quota.map_or(0, |quota| quota.value);
    let period = cpu.period.map_or(0, |period| period.value);
    let cpus = if shares > NO_REQUEST {
        shares as f64 / SHARES_OF_A_CPU
    } else if quota > 0 && period > 0 {
        quota as f64 / period as f64
    } else {
        return None;
    };
    Some(Bandwidth::from_cpus(cpus.min(MOST_CPUS)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::{LinuxContainer, LinuxResources, OptionalInt64, OptionalUInt64};

    fn container(shares: u64, quota: i64) -> Container {
        let cpu = LinuxCpu {
            shares: (shares > 0).then_some(OptionalUInt64 { value: shares }),
            quota: Some(OptionalInt64 { value: quota }),
            period: Some(OptionalUInt64 { value: 100_000 }),
        };
        let resources = Some(LinuxResources { cpu: Some(cpu) });
        Container {
            name: "film".to_owned(),
            linux: Some(LinuxContainer { resources }),
            ..Container::default()
        }
    }

    fn of(
        annotations: &[(&str, &str)],
        container: &Container,
    ) -> Result<Option<Bandwidth>, Mistake> {
        let annotations = annotations.iter();
        let annotations = annotations.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        entitlement(&annotations.collect(), container)
    }

    fn cpus(annotations: &[(&str, &str)], container: &Container) -> f64 {
        of(annotations, container).unwrap().unwrap().as_cpus()
    }

    const KEEP: (&str, &str) = ("onbeat.dev/keep", "true");

    #[test]
    fn a_container_is_kept_only_if_its_pod_says_so() {
        let one = container(512, 0);
        assert_eq!(of(&[], &one), Ok(None));
        assert_eq!(of(&[("onbeat.dev/keep", "false")], &one), Ok(None));
        assert_eq!(of(&[("onbeat.dev/cap", "nonsense")], &one), Ok(None));
        assert_eq!(of(&[KEEP], &one), Ok(Some(Bandwidth::from_cpus(0.5))));
    }

    #[test]
    fn the_container_s_own_annotation_comes_before_the_pod_s() {
        let one = container(512, 0);
        for (own, is_kept) in [("true", true), ("false", false)] {
            let key = "onbeat.dev/keep.container.film";
            let entitlement = of(&[("onbeat.dev/keep", "false"), (key, own)], &one).unwrap();
            assert_eq!(entitlement.is_some(), is_kept);
        }
        let other = of(&[("onbeat.dev/keep.container.other", "true")], &one);
        assert_eq!(other, Ok(None));
        let pod = ("onbeat.dev/keep.pod", "true");
        assert!(of(&[pod], &one).unwrap().is_some());
    }

    #[test]
    fn a_cap_is_at_most_the_request_and_the_request_at_most_what_the_service_reads() {
        let cap = |text| [KEEP, ("onbeat.dev/cap", text)];
        for (text, expected) in [("250m", 0.25), ("25%", 0.25), ("0.25", 0.25), ("2", 0.5)] {
            let found = cpus(&cap(text), &container(512, 0));
            assert!((found - expected).abs() < 1e-6, "{text}: {found}");
        }
        assert!((cpus(&[KEEP], &container(0, 20_000)) - 0.2).abs() < 1e-6);
        assert!((cpus(&[KEEP], &container(262_144, 0)) - 100.0).abs() < 1e-6);
        for none in [container(2, 0), container(2, -1), Container::default()] {
            assert_eq!(of(&[KEEP], &none), Err(Mistake::NoRequest));
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_named_shortened_and_without_control_characters() {
        let one = container(512, 0);
        for (what, value) in [
            ("keep", "yes"),
            ("cap", "0"),
            ("cap", "-1"),
            ("cap", "inf"),
            ("cap", "1e1"),
            ("cap", "NaN%"),
            ("cap", "101"),
        ] {
            let key = format!("onbeat.dev/{what}");
            let error = of(&[KEEP, (&key, value)], &one).unwrap_err().to_string();
            let expected = format!("the annotation {key} is '{value}': write ");
            assert!(error.starts_with(&expected), "{error}");
        }
        let long = format!("20ms\n\u{1b}[2J{}", " ".repeat(5000));
        let error = of(&[KEEP, ("onbeat.dev/cap", &long)], &one);
        let error = error.unwrap_err().to_string();
        assert!(
            error.len() < 200 && !error.contains(char::is_control),
            "{error:?}"
        );
    }

    proptest! {
        #[test]
        fn whatever_the_values_are_an_entitlement_is_within_the_request(keep in ".{0,40}", cap in ".{0,40}") {
            let annotations = [KEEP, ("onbeat.dev/keep.pod", &keep), ("onbeat.dev/cap", &cap)];
            for annotations in [&annotations[..], &[annotations[0], annotations[2]]] {
                if let Ok(Some(bandwidth)) = of(annotations, &container(512, 0)) {
                    prop_assert!(bandwidth.as_cpus() <= 0.5);
                }
            }
        }
    }
}
