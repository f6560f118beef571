//! The keys of a configuration file: one structure for each table.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::error::{ConfigError, Place};
use super::settings::Config;
use super::tables::{LimitsTable, Prediction, within};
use super::values::{Share, Time};
use crate::quota::Quota;
use crate::rules::Rule;

/// The whole file. Keys that are left out leave the value as it was.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    limits: Option<LimitsTable>,
    prediction: Option<Prediction>,
    quota: Option<AllQuotas>,
    realtimekit: Option<Realtimekit>,
    scan: Option<Time>,
    pipelines: Option<bool>,
    always: Option<bool>,
    shipped_rules: Option<bool>,
    #[serde(default)]
    rule: Vec<Spanned<RuleTable>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RulesFile {
    #[serde(default)]
    rule: Vec<Spanned<RuleTable>>,
}

impl RulesFile {
    pub(super) fn read(self, path: &Path, text: &str) -> Result<Vec<Rule>, ConfigError> {
        read_rules(self.rule, path, text)
    }
}

/// The rules of a file. One without a name is called by its place.
fn read_rules(
    rules: Vec<Spanned<RuleTable>>,
    path: &Path,
    text: &str,
) -> Result<Vec<Rule>, ConfigError> {
    let read = |rule: Spanned<RuleTable>| {
        let place = Place::new(path, text, rule.span().start);
        rule.into_inner().read(place.to_string(), &place)
    };
    rules.into_iter().map(read).collect()
}

/// `[quota]`, `[quota.user.NAME]` and `[quota.group.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct AllQuotas {
    bandwidth: Option<Share>,
    tasks: Option<u32>,
    shortest_period: Option<Time>,
    shortest_deadline: Option<Time>,
    shortest_runtime: Option<Time>,
    longest_runtime: Option<Time>,
    seat: Option<Share>,
    #[serde(default)]
    user: BTreeMap<Spanned<String>, OneQuota>,
    #[serde(default)]
    group: BTreeMap<Spanned<String>, OneQuota>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct OneQuota {
    bandwidth: Option<Share>,
    tasks: Option<u32>,
    shortest_period: Option<Time>,
    shortest_deadline: Option<Time>,
    shortest_runtime: Option<Time>,
    longest_runtime: Option<Time>,
}

impl OneQuota {
    fn over(&self, rest: Quota) -> Quota {
        let time = |own: Option<Time>, rest| own.map_or(rest, |time| time.0);
        Quota {
            bandwidth: self.bandwidth.map_or(rest.bandwidth, |share| share.0),
            tasks: self.tasks.unwrap_or(rest.tasks),
            shortest_period: time(self.shortest_period, rest.shortest_period),
            shortest_deadline: time(self.shortest_deadline, rest.shortest_deadline),
            shortest_runtime: time(self.shortest_runtime, rest.shortest_runtime),
            longest_runtime: time(self.longest_runtime, rest.longest_runtime),
        }
    }
}

/// `[realtimekit]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Realtimekit {
    serve: Option<bool>,
    priority: Option<Spanned<u32>>,
    nice: Option<Spanned<i32>>,
    rttime: Option<Time>,
    without_polkit: Option<bool>,
}

/// `[[rule]]`, not yet looked at as a whole.
#[derive(Clone, Debug)]
pub(super) struct RuleTable(Rule);

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(field_identifier, rename_all = "kebab-case")]
enum RuleKey {
    Name,
    Program,
    Unit,
    Cgroup,
    Container,
    User,
    Threads,
    Children,
    Adopt,
    Weight,
    Cap,
    Bandwidth,
}

/// By hand, because `serde(flatten)` knows neither unknown keys nor the lines of wrong values.
impl<'de> Deserialize<'de> for RuleTable {
    fn deserialize<D: Deserializer<'de>>(table: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = RuleTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rule")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<RuleTable, A::Error> {
                let mut rule = Rule::default();
                while let Some(key) = keys.next_key()? {
                    match key {
                        RuleKey::Name => rule.name = keys.next_value::<String>()?.into(),
                        RuleKey::Program => rule.program = Some(keys.next_value()?),
                        RuleKey::Unit => rule.unit = Some(keys.next_value()?),
                        RuleKey::Cgroup => rule.cgroup = Some(keys.next_value()?),
                        RuleKey::Container => rule.container = Some(keys.next_value()?),
                        RuleKey::User => rule.user = Some(keys.next_value()?),
                        RuleKey::Threads => rule.threads = keys.next_value()?,
                        RuleKey::Children => rule.children = keys.next_value()?,
                        RuleKey::Adopt => rule.adopt = keys.next_value()?,
                        RuleKey::Weight => rule.treatment.weight = keys.next_value()?,
                        RuleKey::Cap => {
                            rule.treatment.cap = Some(keys.next_value::<Share>()?.0);
                        }
                        RuleKey::Bandwidth => {
                            rule.bandwidth = Some(keys.next_value::<Share>()?.0);
                        }
                    }
                }
                Ok(RuleTable(rule))
            }
        }

        table.deserialize_map(Keys)
    }
}

impl File {
    pub(super) fn put_into(
        self,
        config: &mut Config,
        path: &Path,
        text: &str,
    ) -> Result<(), ConfigError> {
        let at = |offset| Place::new(path, text, offset);
        if let Some(limits) = self.limits {
            limits.put_into(&mut config.budgets, at)?;
        }
        if let Some(prediction) = self.prediction {
            prediction.put_into(&mut config.budgets, at)?;
        }
        if let Some(quota) = self.quota {
            quota.put_into(config, at);
        }
        if let Some(realtimekit) = self.realtimekit {
            realtimekit.put_into(config, at)?;
        }
        if let Some(scan) = self.scan {
            config.rules.scan = scan.0;
        }
        if let Some(pipelines) = self.pipelines {
            config.pipelines = pipelines;
        }
        config.always = self.always.unwrap_or(config.always);
        config.rules.shipped = self.shipped_rules.unwrap_or(config.rules.shipped);
        let rules = read_rules(self.rule, path, text)?;
        config.rules.list.extend(rules);
        Ok(())
    }
}

impl AllQuotas {
    fn put_into(self, config: &mut Config, at: impl Fn(usize) -> Place) {
        let default = OneQuota {
            bandwidth: self.bandwidth,
            tasks: self.tasks,
            shortest_period: self.shortest_period,
            shortest_deadline: self.shortest_deadline,
            shortest_runtime: self.shortest_runtime,
            longest_runtime: self.longest_runtime,
        };
        config.quota = default.over(config.quota);
        config.seat = self.seat.map_or(config.seat, |share| share.0);
        let whole = config.quota;
        let read = |(name, quota): (Spanned<String>, OneQuota)| {
            (at(name.span().start), name.into_inner(), quota.over(whole))
        };
        config.users.extend(self.user.into_iter().map(read));
        config.groups.extend(self.group.into_iter().map(read));
    }
}

impl Realtimekit {
    fn put_into(self, config: &mut Config, at: impl Fn(usize) -> Place) -> Result<(), ConfigError> {
        let mut limits = config.realtimekit.unwrap_or_default();
        if let Some(priority) = self.priority {
            let remedy = "write a real-time priority from 1 to 98";
            limits.priority = within(priority, 1..=98, &at, remedy)?;
        }
        if let Some(nice) = self.nice {
            limits.nice = within(nice, -20..=19, &at, "write a nice level from -20 to 19")?;
        }
        if let Some(rttime) = self.rttime {
            limits.rttime = rttime.0;
        }
        limits.without_polkit = self.without_polkit.unwrap_or(limits.without_polkit);
        let serve = self.serve.unwrap_or(config.realtimekit.is_some());
        config.realtimekit = serve.then_some(limits);
        Ok(())
    }
}

impl RuleTable {
    /// The rule; one without a name is called `name`.
    pub(super) fn read(self, name: String, place: &Place) -> Result<Rule, ConfigError> {
        let mut rule = self.0;
        let named = [&rule.program, &rule.unit, &rule.cgroup, &rule.container];
        if named.iter().all(|name| name.is_none()) {
            return Err(place.wrong(
                "a rule that names nothing would hold for everything: write program, unit, cgroup or container"
                    .to_owned(),
            ));
        }
        if rule.children && !rule.threads.is_empty() {
            return Err(place.wrong(
                "the processes that a thread starts are not known: write threads or children, not both".to_owned(),
            ));
        }
        if !(rule.treatment.weight > 0.0 && rule.treatment.weight <= 1e6) {
            return Err(place.wrong("write a weight above 0, as in 2.5".to_owned()));
        }
        if rule.name.is_empty() {
            rule.name = name.into();
        }
        Ok(rule)
    }
}
