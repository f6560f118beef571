//! `onbeat doctor`: what this kernel and this user give, and what to do about the rest.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use onbeat_model::{Feature, Support};
use onbeat_sense::{energy, tracer};
use serde::Serialize;

use crate::cli::DoctorArgs;
use onbeat_command::table::TextTable;
use onbeat_top::Align;

/// The output of `doctor --json`; `docs/formats.md` describes it.
#[derive(Serialize)]
struct Examination<'a> {
    onbeat: &'static str,
    kernel: &'a str,
    ready: bool,
    features: &'a [Feature],
    tracers: &'a [Feature],
}

impl Examination<'_> {
    fn all(&self) -> impl Iterator<Item = &Feature> {
        self.features.iter().chain(self.tracers)
    }
}

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut features = onbeat_sense::bpf::probe();
    features.extend(onbeat_act::kernel::probe());
    features.push(energy::probe(Path::new(energy::POWERCAP)));
    let tracers = tracer::probe();
    let works = |feature: &Feature| feature.standing != Support::None;
    let ready = features.iter().all(works) && tracers.iter().any(works);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let examination = Examination {
        onbeat: env!("CARGO_PKG_VERSION"),
        kernel: release.trim(),
        ready,
        features: &features,
        tracers: &tracers,
    };
    let mut output = io::stdout().lock();
    if args.json {
        writeln!(output, "{}", serde_json::to_string(&examination)?)?;
    } else {
        write_for_people(&mut output, &examination)?;
    }
    Ok(ExitCode::from(u8::from(!ready)))
}

fn write_for_people(output: &mut impl Write, examination: &Examination<'_>) -> io::Result<()> {
    writeln!(
        output,
        "onbeat {} on Linux {}\n",
        examination.onbeat, examination.kernel
    )?;
    let columns = ["feature", "here", "found"].map(|heading| (heading, Align::Left));
    let mut table = TextTable::new(&columns);
    for feature in examination.all() {
        let here = match feature.standing {
            Support::Full => "full",
            Support::Partial => "partial",
            Support::None => "none",
        };
        table.row([
            feature.name.clone(),
            here.to_owned(),
            feature.detail.clone(),
        ]);
    }
    writeln!(output, "{table}")?;
    for feature in examination.all() {
        if !feature.advice.is_empty() {
            writeln!(output, "{}: {}", feature.name, feature.advice)?;
        }
    }
    if examination.ready {
        return writeln!(output, "onbeat can do its work here.");
    }
    writeln!(output, "onbeat itself cannot work here; its service may.")?;
    let works = |tracer: &&Feature| tracer.standing != Support::None;
    match examination.tracers.iter().find(works) {
        Some(tracer) => writeln!(
            output,
            "`onbeat watch -- CMD` works as it is, with the {}: it finds periods, and changes nothing.",
            tracer.name
        ),
        None => Ok(()),
    }
}
