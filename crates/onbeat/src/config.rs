//! The configuration of one run: what `--config` says. `manual.txt` lists each key.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use onbeat_control::{PowerSettings, Settings, SpeedRule, Treatment};
use onbeat_daemon::config::{
    Budgets, ConfigError, LimitsTable, Place, Prediction, Share, Time, tables_of,
};
use onbeat_decide::power::Band;
use onbeat_model::{Bandwidth, Task};
use serde::Deserialize;
use toml::Spanned;

use crate::cli::{MeansChoice, band};

#[derive(Clone, Debug, Default)]
pub(crate) struct RunConfig {
    pub(crate) budgets: Budgets,
    pub(crate) means: MeansChoice,
    pub(crate) power: Option<PowerSettings>,
    weights: BTreeMap<String, f64>,
}

impl RunConfig {
    pub(crate) fn settings(self) -> Settings {
        let rule = self.power.map(|power| power.rule);
        Settings {
            estimation: self
                .budgets
                .estimation(matches!(rule, Some(SpeedRule::Uniform { .. }))),
            allocation: self.budgets.allocation(),
            power: self.power,
            treat: Box::new(move |task| Treatment {
                weight: weight(&self.weights, task),
                ..Treatment::default()
            }),
            ..Settings::default()
        }
    }

    /// # Errors
    /// If the settings say what only a live machine has.
    pub(crate) fn without_a_machine(self, command: &str) -> anyhow::Result<Self> {
        if self.power.is_some() || self.means != MeansChoice::default() {
            bail!("[power] and [enforcement] have no effect with {command}: leave them out");
        }
        Ok(self)
    }
}

fn weight(weights: &BTreeMap<String, f64>, task: &Task) -> f64 {
    let (name, number) = (task.comm.to_text(), task.id.tid.to_string());
    let weight = weights.get(&number).or_else(|| weights.get(&name));
    weight.copied().unwrap_or(1.0)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnforcementTable {
    means: Option<MeansChoice>,
}

#[derive(Debug, Default)]
pub(crate) struct ReadSettings {
    config: RunConfig,
    power: PowerTable,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    limits: Option<LimitsTable>,
    prediction: Option<Prediction>,
    #[serde(default)]
    weights: BTreeMap<String, Spanned<f64>>,
    enforcement: Option<EnforcementTable>,
    power: Option<PowerTable>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PowerTable {
    rule: Option<PowerRule>,
    band: Option<BandText>,
    best_effort: Option<Share>,
    sampling: Option<Time>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PowerRule {
    Band,
    Grace,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct BandText(Band);

impl TryFrom<String> for BandText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        band(&text).map(Self)
    }
}

impl ReadSettings {
    pub(crate) fn read(&mut self, path: &Path) -> anyhow::Result<()> {
        let text = fs::read_to_string(path).with_context(|| {
            format!(
                "cannot read {} (--config takes a file, or KEY=VALUE)",
                path.display()
            )
        })?;
        Ok(self.parse(path, &text)?)
    }

    pub(crate) fn parse(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let at = |offset| Place::new(path, text, offset);
        let tables: Tables = tables_of(path, text)?;
        if let Some(limits) = tables.limits {
            limits.put_into(&mut self.config.budgets, at)?;
        }
        if let Some(prediction) = tables.prediction {
            prediction.put_into(&mut self.config.budgets, at)?;
        }
        for (name, weight) in tables.weights {
            let place = at(weight.span().start);
            let weight = weight.into_inner();
            if !(weight > 0.0 && weight <= 1e6) {
                return Err(place.wrong("write a weight above 0, as in 2.5".to_owned()));
            }
            self.config.weights.insert(name, weight);
        }
        if let Some(means) = tables.enforcement.and_then(|table| table.means) {
            self.config.means = means;
        }
        if let Some(power) = tables.power {
            self.power = PowerTable {
                rule: power.rule.or(self.power.rule),
                band: power.band.or(self.power.band),
                best_effort: power.best_effort.or(self.power.best_effort),
                sampling: power.sampling.or(self.power.sampling),
            };
        }
        Ok(())
    }

    pub(crate) fn config(self) -> anyhow::Result<RunConfig> {
        let power = self.power.settings()?;
        Ok(RunConfig {
            power,
            ..self.config
        })
    }
}

impl PowerTable {
    fn settings(&self) -> anyhow::Result<Option<PowerSettings>> {
        let default = PowerSettings::default();
        let best_effort = self.best_effort.map_or(Bandwidth::ZERO, |share| share.0);
        if best_effort > Bandwidth::ONE {
            bail!("power.best-effort: write at most \"100%\"");
        }
        let rule = match self.rule {
            Some(PowerRule::Band) => self
                .band
                .map_or(default.rule, |band| SpeedRule::Band(band.0)),
            Some(PowerRule::Grace) => SpeedRule::Uniform {
                best_effort: best_effort.as_cpus(),
            },
            None if self.band.is_some()
                || self.best_effort.is_some()
                || self.sampling.is_some() =>
            {
                bail!("[power] has no rule: write rule = \"band\" or rule = \"grace\"")
            }
            None => return Ok(None),
        };
        let sampling = self.sampling.map_or(default.sampling, |time| time.0);
        Ok(Some(PowerSettings { rule, sampling }))
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::Span;

    use super::*;

    fn read(texts: &[&str]) -> anyhow::Result<RunConfig> {
        let mut file = ReadSettings::default();
        for text in texts {
            file.parse(Path::new("--config"), text)?;
        }
        file.config()
    }

    #[test]
    fn settings_add_up_and_a_later_one_wins() {
        let config = read(&[
            "[prediction]\nsamples = 32\nspread = 0.3\n[weights]\nmplayer = 2\n",
            "prediction.spread=0.2",
            "power.rule=\"band\"",
            "power.band=\"30%-70%\"",
            "power.sampling=\"500ms\"",
            "enforcement.means=\"nice\"",
        ])
        .unwrap();
        let parameters = config.budgets.estimation(false).parameters;
        assert_eq!((parameters.window, parameters.spread), (32, 0.2));
        let power = config.power.unwrap();
        assert_eq!(power.sampling, Span::from_ms(500));
        let band = Band::new(Bandwidth::from_cpus(0.3), Bandwidth::from_cpus(0.7));
        assert_eq!(Some(power.rule), band.map(SpeedRule::Band));
        assert_eq!(config.means, MeansChoice::Nice);
        assert!(config.without_a_machine("replay").is_err());
    }

    #[test]
    fn every_setting_of_the_man_page_is_read() {
        let sections = crate::manual::sections("onbeat-run");
        let settings = sections.iter().find(|it| it.title == "SETTINGS").unwrap();
        for (setting, _) in settings.entries {
            let mut file = ReadSettings::default();
            let read = file.parse(Path::new("--config"), setting);
            assert!(read.is_ok(), "{setting}: {read:?}");
        }
    }

    #[test]
    fn the_speed_by_grace_goes_with_statistical_budgets_of_100_jobs() {
        let config = read(&["power.rule=\"grace\"", "prediction.rho=\"99%\""]).unwrap();
        let parameters = config.settings().estimation.parameters;
        assert_eq!(parameters.window, 100);
        assert!((parameters.overruns - 0.01).abs() < 1e-9);
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_what_to_write() {
        for (text, told) in [
            (
                "prediction.sprd=0.2",
                "--config:1: unknown field `sprd`, expected one of",
            ),
            ("\n[quota]\n", "--config:2: unknown field `quota`"),
            ("prediction.spread=-1.0", "write a spread from 0 to 10"),
            ("prediction.predictor=\"rate\"", "unknown field `predictor`"),
            ("weights.mplayer=0.0", "write a weight above 0"),
            ("power.band=\"80%-20%\"", "as in 20%-80%"),
            ("power.sampling=\"1s\"", "[power] has no rule"),
            (
                "power={rule=\"grace\",best-effort=\"200%\"}",
                "at most \"100%\"",
            ),
            ("enforcement.partition=true", "unknown field `partition`"),
            ("limits.total=\"120%\"", "at most \"100%\""),
        ] {
            let error = read(&[text]).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
