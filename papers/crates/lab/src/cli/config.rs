//! `--config`: the predictor of onbeat's loop.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::Args;
use onbeat_daemon::config::{Budgets, Place, Prediction, tables_of};
use serde::Deserialize;

#[derive(Debug, Args)]
pub(crate) struct ConfigOption {
    /// File with a table `prediction` as in onbeat.toml(5), or one setting, such as
    /// prediction.spread=0.2; may be given several times (`onbeat`)
    #[arg(
        long = "config",
        value_name = "FILE|KEY=VALUE",
        help_heading = "What if"
    )]
    sources: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    prediction: Option<Prediction>,
}

impl ConfigOption {
    /// All settings together; a later one wins.
    pub(crate) fn read(&self) -> anyhow::Result<Budgets> {
        let mut budgets = Budgets::default();
        for source in &self.sources {
            let is_setting = source.contains('=') && !Path::new(source).exists();
            let (path, text) = if is_setting {
                (Path::new("--config"), source.clone())
            } else {
                let text = fs::read_to_string(source).with_context(|| {
                    format!("cannot read {source} (--config takes a file, or KEY=VALUE)")
                })?;
                (Path::new(source), text)
            };
            let tables: Tables = tables_of(path, &text)?;
            if let Some(prediction) = tables.prediction {
                prediction.put_into(&mut budgets, |offset| Place::new(path, &text, offset))?;
            }
        }
        Ok(budgets)
    }
}
