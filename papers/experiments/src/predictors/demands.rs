//! How much CPU time each job of a real program took: cut out of recordings once, and kept as one
//! number of microseconds a line in `experiments/predictors/demands`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use onbeat_model::Span;

use super::simulation::Noise;
use crate::demands::Kept;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/predictors/demands");

pub(super) struct Demands {
    pub(super) name: &'static str,
    pub(super) period: Span,
    pub(super) jobs: Vec<Span>,
}

/// Those that were recorded: file, and period in ms.
const RECORDED: [(&str, u64); 3] = [("mpeg2", 40), ("h264", 40), ("mpeg4", 40)];

/// The codecs in `experiments/demands` whose jobs differ by more than noise.
const VIDEO: [&str; 3] = ["mpeg1-decode", "h263-encode", "h263-decode"];

impl Demands {
    pub(super) fn all() -> anyhow::Result<Vec<Self>> {
        let recorded = RECORDED.into_iter().map(|(name, period_ms)| {
            let file = Path::new(FOLDER).join(format!("{name}.txt"));
            let told = || format!("cannot read {}", file.display());
            let text = fs::read_to_string(&file).with_context(told)?;
            let jobs = text.lines().map(|line| Ok(Span::from_us(line.parse()?)));
            Ok(Self {
                name,
                period: Span::from_ms(period_ms),
                jobs: jobs.collect::<anyhow::Result<_>>().with_context(told)?,
            })
        });
        let codecs = Kept::all()?.into_iter();
        let videos = codecs.filter(|kept| VIDEO.contains(&kept.name));
        let videos = videos.map(|kept| {
            Ok(Self {
                name: kept.name,
                period: kept.period,
                jobs: kept.jobs,
            })
        });
        let made_up = std::iter::once(Ok(Self::groups_of_pictures()));
        recorded.chain(videos).chain(made_up).collect()
    }

    /// Frames of kinds I, P and B in groups of twelve, whose cost follows scenes of some seconds,
    /// as in the generator of the paper on missed deadline notification.
    fn groups_of_pictures() -> Self {
        const GROUP: &[u8] = b"IBBPBBPBBPBB";
        let mut noise = Noise(1);
        let mut scene_ms = 6.0;
        let jobs = (0..3000).map(|n| {
            if noise.unit() < 1.0 / 150.0 {
                scene_ms = 3.0 + 6.0 * noise.unit();
            }
            let kind = match GROUP.get(n % GROUP.len()) {
                Some(b'I') => 1.6,
                Some(b'P') => 1.1,
                _ => 0.8,
            };
            let ms = scene_ms * kind * (1.0 + 0.08 * noise.normal()).clamp(0.5, 2.0);
            Span::from_secs_f64(ms / 1000.0)
        });
        Self {
            name: "made up",
            period: Span::from_ms(40),
            jobs: jobs.collect(),
        }
    }
}
