//! The recordings in `experiments/demands`: what other experiments play.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use onbeat_model::Span;

use super::codec::{CODECS, Codec};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/demands");

pub(crate) struct Kept {
    pub(crate) codec: &'static Codec,
    pub(crate) period: Span,
    /// Execution times in order, at the recording machine's one speed.
    pub(crate) jobs: Vec<Span>,
}

impl Kept {
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        CODECS
            .iter()
            .map(|codec| Self::read(codec, &file(Path::new(FOLDER), codec)))
            .collect()
    }

    pub(super) fn read(codec: &'static Codec, path: &Path) -> anyhow::Result<Self> {
        let told = || format!("cannot use {}", path.display());
        let text = fs::read_to_string(path).with_context(told)?;
        Self::parse(codec, &text).with_context(told)
    }

    fn parse(codec: &'static Codec, text: &str) -> anyhow::Result<Self> {
        let said = |name: &str| -> anyhow::Result<u64> {
            let value = text.lines().find_map(|line| {
                line.strip_prefix("# ")?
                    .strip_prefix(name)?
                    .strip_prefix(": ")
            });
            Ok(value
                .with_context(|| format!("it has no {name}"))?
                .parse()?)
        };
        let mut rows = text.lines().filter(|line| !line.starts_with('#'));
        if rows.next() != Some(HEADING) {
            bail!("its heading is not {HEADING}");
        }
        let jobs: Vec<Span> = rows
            .map(|row| Ok(Span::from_ns(row.parse()?)))
            .collect::<anyhow::Result<_>>()?;
        if said("jobs")? != jobs.len() as u64 {
            bail!(
                "it says that it holds {} jobs, and holds {}",
                said("jobs")?,
                jobs.len()
            );
        }
        Ok(Self {
            codec,
            period: Span::from_ns(said("period_ns")?),
            jobs,
        })
    }
}

/// The heading of the only column, as `onbeat-lab sim` wants it.
const HEADING: &str = "demand_ns";

/// Where the jobs of `codec` are kept.
pub(super) fn file(folder: &Path, codec: &Codec) -> PathBuf {
    folder.join(format!("{}.csv", codec.name))
}

pub(super) fn folder() -> &'static Path {
    Path::new(FOLDER)
}

/// The text of a recording: facts, of which each has a name and a value, and the jobs.
pub(super) fn text(codec: &Codec, jobs: &[Span], facts: &[(&str, String)]) -> String {
    let period = Span::from_ms(codec.period_ms);
    let mut text = format!("# period_ns: {}\n# jobs: {}\n", period.as_ns(), jobs.len());
    for (name, value) in facts {
        text += &format!("# {name}: {value}\n");
    }
    text += HEADING;
    text.push('\n');
    for job in jobs {
        text += &format!("{}\n", job.as_ns());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let codec = &CODECS[0];
        let jobs = [5, 7].map(Span::from_ns);
        let written = text(codec, &jobs, &[("cpu", "fast".to_owned())]);
        let read = Kept::parse(codec, &written).unwrap();
        assert_eq!((read.jobs, read.period), (jobs.to_vec(), Span::from_ms(30)));
        let cut_off = written.trim_end().rsplit_once('\n').unwrap().0;
        assert!(Kept::parse(codec, cut_off).is_err());
    }

    #[test]
    fn every_kept_recording_has_the_jobs_that_it_says_and_small_files() {
        for kept in Kept::all().unwrap() {
            let path = file(folder(), kept.codec);
            assert_eq!(kept.period, Span::from_ms(kept.codec.period_ms));
            // A few may have run into each other.
            assert!(
                kept.jobs.len() > kept.codec.jobs * 95 / 100,
                "{}",
                path.display()
            );
            assert!(
                kept.jobs
                    .iter()
                    .all(|job| *job > Span::ZERO && *job < kept.period)
            );
            assert!(
                fs::metadata(&path).unwrap().len() < 100_000,
                "{}",
                path.display()
            );
        }
    }
}
