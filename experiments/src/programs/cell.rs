//! One run of a program, in a situation, by a way.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, SystemTimeError};

use anyhow::{Context, bail};

use super::browser::PageServer;
use super::damage::{Watch, server_time_ms};
use super::done::{Done, spread};
use super::program::{Around, Measure, TestedProgram};
use super::situation::{Load, Situation};
use super::way::{Plain, ProgramWay};
use crate::machine::{Display, Machine, Pipewire, Program as Running, find_program};
use crate::media::Clip;

/// How long a program that ends by itself may take for that beyond its time.
const GRACE: Duration = Duration::from_secs(4);

/// From then on, what a batch program leaves to the load has a figure of its own.
const LATER: Duration = Duration::from_secs(5);

/// Shared by all cells.
pub(super) struct CellSetup<'a> {
    machine: &'a Machine,
    film: &'a Clip,
    hogs: u32,
    time: Duration,
    display: Option<Display>,
    pipewire: Option<Pipewire>,
}

impl<'a> CellSetup<'a> {
    /// Nothing is started yet.
    pub(super) fn new(
        machine: &'a Machine,
        film: &'a Clip,
        hogs: u32,
        time: Duration,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            machine,
            film,
            hogs,
            time,
            display: None,
            pipewire: None,
        })
    }

    /// Runs the program, and tells what it did.
    pub(super) fn run(
        &mut self,
        program: TestedProgram,
        situation: Situation,
        way: &ProgramWay,
    ) -> anyhow::Result<Done> {
        for command in program.needs() {
            if find_program(command).is_none() {
                bail!("{command} is not installed");
            }
        }
        if self.display.is_none() {
            self.display = Some(Display::start(self.machine)?);
        }
        if program.measure() == Measure::Pipewire && self.pipewire.is_none() {
            self.pipewire = Some(Pipewire::start(self.machine)?);
        }
        let mover = (program == TestedProgram::Grab).then(|| self.film_to_grab());
        let _mover = mover.transpose()?;
        let load = situation.start(self.machine, self.hogs)?;
        let rival = (situation == Situation::Two).then(|| self.rival(way));
        let rival = rival.transpose()?;
        let done = self.measure(program, way, load);
        drop(rival);
        done
    }

    fn around<'b>(&'b self, told: &'b Path, folder: &'b Path, page: &'b str) -> Around<'b>
    where
        'a: 'b,
    {
        Around {
            display: self.display.as_ref().map_or("", |display| display.name()),
            film: self.film.path(),
            time: self.time,
            told,
            folder,
            page,
            realtime: false,
        }
    }

    /// A film to grab from the display: by real-time priority, so that there is as much to encode
    /// in each cell.
    fn film_to_grab(&self) -> anyhow::Result<Running> {
        let around = self.around(Path::new(""), Path::new(""), "");
        let command = TestedProgram::Mplayer.command(&around);
        let command = ProgramWay::Plain(Plain::Chrt).wrap(&command, None)?;
        Running::start(command, &self.machine.file("programs.moving.stderr"))
    }

    /// A transcode that is started by the same means.
    fn rival(&self, way: &ProgramWay) -> anyhow::Result<Running> {
        let told = self.machine.file("programs.rival");
        let around = self.around(&told, Path::new(""), "");
        let command = TestedProgram::Transcode.command(&around);
        let wrapped = way.wrap(&command, None);
        // The transcode runs plain where the way cannot be applied to it.
        let command = wrapped.unwrap_or(command);
        Running::start(command, &self.machine.file("programs.rival.stderr"))
    }

    /// Runs the program beside `load`. Both are counted until the end of its time: a program that
    /// is told to end may take seconds for that.
    fn measure(
        &mut self,
        program: TestedProgram,
        way: &ProgramWay,
        load: Load,
    ) -> anyhow::Result<Done> {
        let told = self.machine.file("programs.told");
        let _ = fs::remove_file(&told);
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let end = SystemTime::now() + self.time;
        let server = (program.measure() == Measure::Page).then(|| PageServer::start(end));
        let server = server.transpose()?;
        let page = server.as_ref().map(PageServer::address).unwrap_or_default();
        let mut around = self.around(&told, folder.path(), &page);
        around.realtime = way.name() == "RealtimeKit";
        let mut command = program.command(&around);
        if let (Some(pipewire), TestedProgram::PwCat) = (&self.pipewire, program) {
            let sound = sound(self.machine, self.time)?;
            command = pipewire.player(&sound);
        }
        let command = way.wrap(&command, program.by_hand())?;
        let display = around.display.to_owned();
        let watch = (program.measure() == Measure::Display).then(|| Watch::start(&display));
        let watch = watch.transpose()?;
        let profile = match (&self.pipewire, program.measure()) {
            (Some(pipewire), Measure::Pipewire) => Some(pipewire.profile(self.machine)?),
            _ => None,
        };
        let load_before = load.done();
        let messages = self.messages(program, command)?;
        let Messages {
            mut running,
            said,
            began,
            began_ms,
        } = messages;
        if way.name() == "RealtimeKit" {
            self.machine.wait(Duration::from_secs(1))?;
            way.grant(running.pid(), "data-loop");
        }
        let left = |of: Duration| Ok::<_, SystemTimeError>(of.saturating_sub(began.elapsed()?));
        let later = LATER.min(self.time);
        self.machine.wait(left(later)?)?;
        let load_then = load.done();
        self.machine.wait(left(self.time)?)?;
        let rate = |from: Option<f64>, over: Duration| {
            let done = load.done()? - from?;
            (!over.is_zero()).then(|| done / over.as_secs_f64())
        };
        let load_rate = rate(load_before, self.time);
        let load_later = rate(load_then, self.time - later).filter(|_| program.is_batch());
        let progress = read(&told);
        let ended = SystemTime::now();
        drop(load);
        let cycles = profile.map(|profile| profile.end(self.machine, began, ended));
        let cycles = cycles.transpose()?;
        let times = watch
            .map(|watch| watch.end(began_ms, program.frame_pixels()))
            .transpose()?;
        if program.ends_by_itself() {
            self.machine.wait_for(GRACE, || running.ended().is_some())?;
        } else if running.ended().is_some() && program.measure() != Measure::Nothing {
            let said = said.file_name().unwrap_or_default();
            bail!("it has ended: its messages are in {}", said.display());
        }
        let posted = server.map(|server| server.times(began, GRACE));
        running.end();
        let mut done = match program.measure() {
            Measure::Display => Done::of_times(&times.unwrap_or_default(), self.time),
            Measure::Page => {
                let times = posted.flatten().context("the page told no frames")?;
                Done::of_times(&times, self.time)
            }
            Measure::Progress => Done::of_count(encoded(&progress).unwrap_or(0.0)),
            Measure::Pipewire => {
                let cycles = cycles.context("no profile")?;
                let in_time = cycles.iter().filter(|cycle| cycle.finished);
                let times: Vec<f64> = in_time.map(|cycle| cycle.at_s).collect();
                Done {
                    // The profiler does not say when a cycle was over, and a few from before the
                    // program's first may be among them.
                    first_s: None,
                    apart_ms: None,
                    ..Done::of_times(&times, self.time)
                }
            }
            Measure::Xruns => {
                let all = program.rate().unwrap_or(0.0) * self.time.as_secs_f64();
                let xruns = read(&said).matches("XRun").count();
                Done::of_count((all - xruns as f64).max(0.0))
            }
            Measure::Histogram => histogram(&read(&told))?,
            Measure::Jobs => jobs(&read(&told))?,
            Measure::Nothing => Done::default(),
        };
        (done.load, done.load_later) = (load_rate, load_later);
        Ok(done)
    }

    fn messages(
        &self,
        program: TestedProgram,
        mut command: std::process::Command,
    ) -> anyhow::Result<Messages> {
        let said = self.machine.file("programs.stderr");
        if program.measure() == Measure::Xruns {
            let file = fs::File::create(self.machine.file("programs.xruns"))?;
            command.stdout(file);
        }
        let (began, began_ms) = (SystemTime::now(), server_time_ms());
        let running = Running::start(command, &said)?;
        let said = if program.measure() == Measure::Xruns {
            self.machine.file("programs.xruns")
        } else {
            said
        };
        Ok(Messages {
            running,
            said,
            began,
            began_ms,
        })
    }
}

/// A program that was started, and where its messages are.
struct Messages {
    running: Running,
    said: PathBuf,
    began: SystemTime,
    began_ms: u32,
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A sound that lasts longer than a run.
fn sound(machine: &Machine, time: Duration) -> anyhow::Result<PathBuf> {
    let seconds = (time.as_secs() + 30).to_string();
    let source = format!("sine=frequency=440:duration={seconds}:sample_rate=48000");
    let options = ["-f", "lavfi", "-i", &source, "-ac", "2"];
    crate::media::made(machine, &format!("sine-440-{seconds}s.wav"), &options)
}

/// The last number of frames that ffmpeg told.
fn encoded(progress: &str) -> Option<f64> {
    let line = progress
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("frame="))?;
    line.trim().parse().ok()
}

/// The cycles that were late by less than their period, and by how much cycles were late.
fn histogram(told: &str) -> anyhow::Result<Done> {
    let mut late_ms = Vec::new();
    for line in told.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let Some(us) = words.next().and_then(|word| word.parse::<f64>().ok()) else {
            continue;
        };
        let count: usize = words.filter_map(|word| word.parse::<usize>().ok()).sum();
        late_ms.extend(std::iter::repeat_n(us / 1000.0, count));
    }
    if late_ms.is_empty() {
        bail!("cyclictest wrote no histogram");
    }
    Ok(Done {
        count: late_ms.len() as f64,
        apart_ms: Some(spread(&late_ms)),
        ..Done::default()
    })
}

/// The jobs that were done before the next was due, half a period late at most, and how long each
/// took.
fn jobs(told: &str) -> anyhow::Result<Done> {
    let seconds = told.split_whitespace().filter_map(|word| word.parse().ok());
    let ms: Vec<f64> = seconds.map(|job: f64| job * 1000.0).collect();
    if ms.is_empty() {
        bail!("the loop wrote down no job");
    }
    Ok(Done {
        count: ms.iter().filter(|job| **job <= 15.0).count() as f64,
        apart_ms: Some(spread(&ms)),
        ..Done::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ffmpegs_last_number_of_frames_counts() {
        let progress = "frame=12\nfps=25\nprogress=continue\nframe=31\nprogress=end\n";
        assert_eq!(encoded(progress), Some(31.0));
        assert_eq!(encoded(""), None);
    }

    #[test]
    fn cycles_within_the_histogram_are_in_time() {
        let told =
            "# Histogram\n000000 000000\t000001\n000050 000003\t000002\n003999 1 0\n# Total\n";
        let done = histogram(told).unwrap();
        assert_eq!(done.count, 7.0);
        assert_eq!(done.apart_ms.unwrap()[3], 3.999);
        assert!(histogram("").is_err());
    }

    #[test]
    fn a_job_that_took_longer_than_a_period_and_a_half_is_late() {
        let done = jobs("0.010000 0.0149 0.016 0.011").unwrap();
        assert_eq!(done.count, 3.0);
        assert!(jobs("").is_err());
    }
}
