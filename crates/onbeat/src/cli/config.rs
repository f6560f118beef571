//! `--config`: the settings that only few runs need, in a file or one by one.

use std::path::Path;

use clap::Args;

use crate::config::{ReadSettings, RunConfig};

#[derive(Debug, Args)]
pub(crate) struct ConfigOption {
    /// File with further settings, or one of them, such as prediction.spread=0.2; may be given
    /// several times
    ///
    /// The tables `limits` and `prediction` are as in onbeat.toml(5); `weights`, `enforcement` and
    /// `power` are for this command alone. The man page lists all keys. A later value wins, and a
    /// flag wins over all.
    #[arg(long = "config", value_name = "FILE|KEY=VALUE")]
    sources: Vec<String>,
}

/// The setting, where a shell took the quotation marks of a text, too.
fn with_quotes(setting: &str) -> String {
    match setting.split_once('=') {
        Some((key, value)) if toml::from_str::<toml::Table>(setting).is_err() => {
            format!("{key}={}", toml::Value::from(value))
        }
        _ => setting.to_owned(),
    }
}

impl ConfigOption {
    pub(crate) fn read(&self) -> anyhow::Result<RunConfig> {
        let mut file = ReadSettings::default();
        for source in &self.sources {
            let path = Path::new(source);
            if source.contains('=') && !path.exists() {
                file.parse(Path::new("--config"), &with_quotes(source))?;
            } else {
                file.read(path)?;
            }
        }
        file.config()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_needs_no_quotation_marks() {
        assert_eq!(with_quotes("power.rule=band"), "power.rule=\"band\"");
        for setting in ["a.b=0.2", "a.b=\"c\"", "a.b=true"] {
            assert_eq!(with_quotes(setting), setting);
        }
    }
}
