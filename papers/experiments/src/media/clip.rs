//! A film made of ffmpeg's own sources: 1920x1080, 25 frames a second, H.264 with AAC sound, as in
//! LFS++, section 7.1; with film grain, so that decoding it takes as long as a real film's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::machine::Machine;

/// The name tells what is inside, so that a clip made otherwise is never taken for it.
const NAME: &str = "film-1080p25-h264-16M-grain20";

pub(crate) struct Clip {
    path: PathBuf,
}

impl Clip {
    pub(crate) fn of(machine: &Machine, seconds: u64) -> anyhow::Result<Self> {
        let picture = "testsrc2=size=1920x1080:rate=25,noise=alls=20:allf=t";
        let sound = "sine=frequency=440:sample_rate=48000";
        let made_of = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound];
        let length = seconds.to_string();
        let options = [
            made_of.as_slice(),
            &["-t", length.as_str(), "-pix_fmt", "yuv420p"],
            &["-c:v", "libx264", "-preset", "superfast", "-b:v", "16M"],
            &["-c:a", "aac"],
        ];
        Self::made(machine, &format!("{NAME}-{seconds}s"), &options.concat())
    }

    /// A film that ffmpeg makes with these options, from the cache if one of that name was made
    /// before.
    pub(crate) fn made(machine: &Machine, name: &str, options: &[&str]) -> anyhow::Result<Self> {
        let path = made(machine, &format!("{name}.mkv"), options)?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The file that ffmpeg makes with these options, from the cache if one of that name was made
/// before.
pub(crate) fn made(machine: &Machine, name: &str, options: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = cache();
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(name);
    if !path.is_file() {
        println!("making {name}, once; it is kept in {}", folder.display());
        let unfinished = folder.join(format!("unfinished-{name}"));
        make(machine, &unfinished, options)?;
        fs::rename(&unfinished, &path).with_context(|| format!("cannot name {name}"))?;
    }
    Ok(path)
}

fn cache() -> PathBuf {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    of("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(of("HOME")?).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("onbeat")
}

fn make(machine: &Machine, path: &Path, options: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("ffmpeg");
    command
        .args(["-hide_banner", "-loglevel", "error", "-nostdin", "-y"])
        .args(options)
        .arg(path)
        .stdout(Stdio::null());
    let messages = machine.file("film.stderr");
    if !machine.run(command, &messages, Duration::from_secs(3600))? {
        bail!(
            "ffmpeg made no {}: its messages are in {}",
            path.display(),
            messages.display()
        );
    }
    Ok(())
}
