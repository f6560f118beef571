//! A codec at its pace, and the sensor that watches it: `onbeat record` starts it, and a pipe that
//! is served once in each period holds it to its pace. The program is not changed, and not told.

use std::fs;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write, pipe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use onbeat_model::{Burst, Event, Instant, Span};
use onbeat_sense::recording;
use rustix::time::{ClockId, clock_gettime};

use super::codec::{Codec, Pace};
use super::material::Source;
use crate::machine::{Machine, Program, binary};

/// The first jobs are not counted: the program fills its buffers, and caches are cold.
const WARM_UP: usize = 20;

/// So that a busy machine does not make jobs run into each other.
const REAL_TIME: [&str; 3] = ["chrt", "-f", "10"];

/// How long a program may take to start or to end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Plays `material` with `codec`, and returns the execution time of each job; nothing of those that
/// ran into each other.
pub(super) fn play(
    machine: &Machine,
    codec: &Codec,
    material: &Path,
) -> anyhow::Result<Vec<Option<Span>>> {
    let recording = machine.file(&format!("demands-{}.jsonl", codec.name));
    let messages = machine.file(&format!("demands-{}.stderr", codec.name));
    let (from, to) = pipe().context("cannot make a pipe")?;
    let bytes = match codec.pace {
        Pace::Input(bytes) | Pace::Output(bytes) => bytes,
    };
    rustix::pipe::fcntl_setpipe_size(&to, room(bytes)).context("cannot size a pipe")?;
    let mut command = Command::new(binary()?);
    command
        .args(["record", "--quiet", "-o"])
        .arg(&recording)
        .arg("--")
        .args(REAL_TIME)
        .args(codec.command(material));
    let mut pacer = Pacer {
        machine,
        period: Span::from_ms(codec.period_ms),
        end: match codec.pace {
            Pace::Input(_) => {
                command.stdin(from).stdout(Stdio::null());
                End::Writer(to, codec.material.open(machine, material)?)
            }
            Pace::Output(_) => {
                command.stdin(Stdio::null()).stdout(to);
                End::Reader(from)
            }
        },
        bytes,
    };
    let mut program = Program::start_reading(command, &messages)?;
    let told = || format!("{}'s messages are in {}", codec.name, messages.display());
    let releases = pacer.serve(codec.jobs + WARM_UP).with_context(told)?;
    drop(pacer);
    machine.wait_for(PATIENCE, || program.ended().is_some())?;
    drop(program);
    let jobs = cut(&bursts_in(&recording)?, &releases);
    fs::remove_file(&recording).context("cannot remove the recording that was cut into jobs")?;
    Ok(jobs.into_iter().skip(WARM_UP).collect())
}

/// The size of a pipe that holds less than two jobs, as the kernel allows: a power of two from a
/// page on.
fn room(bytes: usize) -> usize {
    const PAGE: usize = 4096;
    const MOST: usize = 1 << 20;
    let whole = bytes.clamp(PAGE, MOST);
    1 << whole.ilog2()
}

enum End {
    Writer(PipeWriter, Source),
    Reader(PipeReader),
}

/// Serves a pipe once in each period.
struct Pacer<'a> {
    machine: &'a Machine,
    period: Span,
    end: End,
    bytes: usize,
}

impl Pacer<'_> {
    /// Serves `count` jobs; when each was released, and the end of the last one's period.
    fn serve(&mut self, count: usize) -> anyhow::Result<Vec<Instant>> {
        let mut job = self.prepare()?;
        self.hand_over(&mut job)?;
        self.wait_until_taken()?;
        let mut next = now() + self.period;
        let mut releases = Vec::with_capacity(count + 1);
        for _ in 0..count {
            let mut job = self.prepare()?;
            self.wait_until(next)?;
            let release = now();
            releases.push(release);
            // The next one is a whole period after a late one, too.
            next = release + self.period;
            self.hand_over(&mut job)?;
        }
        self.wait_until(next)?;
        releases.push(now());
        Ok(releases)
    }

    /// The bytes of the next job, or room for them.
    fn prepare(&mut self) -> anyhow::Result<Vec<u8>> {
        match &mut self.end {
            End::Writer(_, source) => source.next(self.bytes),
            End::Reader(_) => Ok(vec![0; self.bytes]),
        }
    }

    fn hand_over(&mut self, job: &mut [u8]) -> anyhow::Result<()> {
        let mut done = 0;
        while let Some(rest) = job.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let moved = match &mut self.end {
                End::Writer(pipe, _) => pipe.write(rest),
                End::Reader(pipe) => pipe.read(rest),
            };
            match moved {
                Ok(0) => bail!("it ended too early"),
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => self.machine.go_on()?,
                Err(error) => return Err(error).context("it ended too early"),
            }
        }
        Ok(())
    }

    /// Waits until a program that reads has taken what was written: it has started.
    fn wait_until_taken(&self) -> anyhow::Result<()> {
        let End::Writer(pipe, _) = &self.end else {
            return Ok(());
        };
        let taken = || rustix::io::ioctl_fionread(pipe).is_ok_and(|left| left == 0);
        if !self.machine.wait_for(PATIENCE, taken)? {
            bail!("it does not read");
        }
        Ok(())
    }

    fn wait_until(&self, at: Instant) -> anyhow::Result<()> {
        self.machine.go_on()?;
        std::thread::sleep(Duration::from_nanos(at.since(now()).as_ns()));
        Ok(())
    }
}

fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = Span::from_secs(time.tv_sec.unsigned_abs());
    Instant::ZERO + seconds + Span::from_ns(time.tv_nsec.unsigned_abs())
}

/// The bursts of the program's first thread, which does the work of all five.
fn bursts_in(recording: &Path) -> anyhow::Result<Vec<Burst>> {
    let recording = recording::read(recording)?;
    if recording.lost > 0 {
        bail!("the sensor lost {} events: record it again", recording.lost);
    }
    let Some(first) = recording.tasks.iter().find(|task| task.id.tid == task.pid) else {
        bail!("the recording has no thread of the program");
    };
    let own = recording.events.iter().filter_map(|event| match event {
        Event::Burst(burst) if burst.task == first.id => Some(*burst),
        _ => None,
    });
    Ok(own.collect())
}

/// Adds up the bursts between each release and the next. A job that had not ended when the next one
/// was released has a part of that one's work in its last burst: nothing is known of either.
fn cut(bursts: &[Burst], releases: &[Instant]) -> Vec<Option<Span>> {
    let mut jobs = Vec::with_capacity(releases.len());
    let mut bursts = bursts.iter().peekable();
    let mut before_ran_over = false;
    for window in releases.windows(2) {
        let &[release, next] = window else { continue };
        while bursts.next_if(|burst| burst.woke < release).is_some() {}
        let mut executed = Span::ZERO;
        let mut ended = release;
        while let Some(burst) = bursts.next_if(|burst| burst.woke < next) {
            executed += burst.executed;
            ended = burst.blocked;
        }
        let runs_over = ended > next;
        let is_whole = !runs_over && !before_ran_over && !executed.is_zero();
        jobs.push(is_whole.then_some(executed));
        before_ran_over = runs_over;
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::TaskId;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    fn burst(woke_ms: u64, blocked_ms: u64) -> Burst {
        Burst::alone(
            TaskId::recorded(1),
            at(woke_ms),
            Span::from_ms(blocked_ms - woke_ms),
        )
    }

    fn executed_ms(bursts: &[Burst], releases: &[Instant]) -> Vec<Option<u64>> {
        let whole = |span: Span| span.as_ns() / 1_000_000;
        let jobs = cut(bursts, releases).into_iter();
        jobs.map(|job| job.map(whole)).collect()
    }

    #[test]
    fn a_job_is_all_that_was_done_between_two_releases() {
        let releases = [at(10), at(40), at(70), at(100)];
        let bursts = [
            burst(1, 9),
            burst(11, 13),
            burst(14, 19),
            burst(40, 44),
            burst(71, 72),
        ];
        assert_eq!(executed_ms(&bursts, &releases), [Some(7), Some(4), Some(1)]);
    }

    #[test]
    fn of_jobs_that_run_into_each_other_nothing_is_known() {
        let releases = [at(0), at(30), at(60), at(90), at(120)];
        let bursts = [burst(0, 5), burst(31, 65), burst(66, 68), burst(90, 91)];
        assert_eq!(
            executed_ms(&bursts, &releases),
            [Some(5), None, None, Some(1)]
        );
    }
}
