//! The film that is played: scenes of two seconds that differ in how hard they are to decode, one
//! in three frames a reference, eight slices to a picture, as on a disc.
//!
//! On the guest's CPU, its easy scenes need less than the share that the paper reserves for its
//! player, and its hard ones more.

use std::path::PathBuf;

use crate::machine::Machine;
use crate::media::made;

pub(crate) const SIZE: (usize, usize) = (592, 336);

pub(crate) const SECONDS: u64 = 10;

pub(crate) const FRAMES: usize = 250;

/// The name tells what is inside, so that a film made otherwise is never taken for it.
const NAME: &str = "film-336p25-h264-1200k-5-scenes.mkv";

const SCENES: &str = "testsrc2=s=592x336:r=25:d=2,noise=alls=12:allf=t[a];\
    mandelbrot=s=592x336:r=25,trim=duration=2[b];\
    testsrc2=s=592x336:r=25:d=4,trim=2:4,setpts=PTS-STARTPTS,noise=alls=12:allf=t[c];\
    gradients=s=592x336:r=25:d=2:seed=1,noise=alls=4:allf=t,setsar=1[d];\
    mandelbrot=s=592x336:r=25:start_scale=0.01,trim=duration=2[e];\
    [a][b][c][d][e]concat=n=5,format=yuv420p[v]";

pub(crate) fn film(machine: &Machine) -> anyhow::Result<PathBuf> {
    let sound = "sine=frequency=440:sample_rate=48000:duration=10";
    let pictures = "slices=8:bframes=2:b-adapt=0:b-pyramid=none:keyint=50:scenecut=0:threads=1";
    let made_of = ["-filter_complex", SCENES, "-f", "lavfi", "-i", sound];
    let options = [
        made_of.as_slice(),
        &["-map", "[v]", "-map", "0:a", "-c:v", "libx264"],
        &["-preset", "fast", "-x264-params", pictures],
        &["-b:v", "1200k", "-maxrate", "1200k", "-bufsize", "350k"],
        &["-c:a", "aac", "-b:a", "96k"],
    ];
    made(machine, NAME, &options.concat())
}
