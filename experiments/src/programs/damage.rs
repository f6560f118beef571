//! When frames appear on a display, for any program: the server tells a client that asks (DAMAGE)
//! what was drawn, with its own time, so a late listener loses nothing. The program is not touched.
//! The client never waits for the server: a thread that the server wakes at each frame would look
//! like a stage of the program's pipeline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::damage::{ConnectionExt, ReportLevel};

/// A frame is complete when so much of its area is drawn, in per cent: Xlib sends a large picture
/// in bands, and the last one may be left out where nothing changed.
const COMPLETE: u64 = 90;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Listens to a display.
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(u32, u64)>>,
}

impl Watch {
    /// Listens to what is drawn on the display of this name from now on.
    pub(super) fn start(display: &str) -> anyhow::Result<Self> {
        let (connection, screen) = x11rb::connect(Some(display))
            .with_context(|| format!("cannot listen to display {display}"))?;
        let screen = &connection.setup().roots[screen];
        let root = screen.root;
        connection.damage_query_version(1, 1)?.reply()?;
        let damage = connection.generate_id()?;
        connection.damage_create(damage, root, ReportLevel::RAW_RECTANGLES)?;
        connection.flush()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut times = Vec::new();
            let mut looked_ms = server_time_ms();
            loop {
                let now_ms = server_time_ms();
                // Looked at before the last look for events, so that none is missed.
                let last = stopped.load(Ordering::Relaxed);
                while let Ok(Some(event)) = connection.poll_for_event() {
                    if let Event::DamageNotify(drawn) = event {
                        let pixels = u64::from(drawn.area.width) * u64::from(drawn.area.height);
                        // A server that was idle looks at its clock again a little late.
                        times.push((later(drawn.timestamp, looked_ms), pixels));
                    }
                }
                looked_ms = now_ms;
                if last {
                    return times;
                }
                std::thread::sleep(LOOK_EVERY);
            }
        });
        Ok(Self { stop, thread })
    }

    /// The times at which frames of `pixels` appeared, in seconds since `began_ms` of the server's
    /// clock.
    pub(super) fn end(self, began_ms: u32, pixels: u64) -> anyhow::Result<Vec<f64>> {
        self.stop.store(true, Ordering::Relaxed);
        let times = self.thread.join();
        let times = times.map_err(|_| anyhow!("listening to the display broke off"))?;
        Ok(frames(&times, began_ms, pixels))
    }
}

/// The server's clock: milliseconds of CLOCK_MONOTONIC, cut to 32 bits.
pub(super) fn server_time_ms() -> u32 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000) as u32
}

/// The later of two times of the server's clock, which begins anew each 50 days.
fn later(a_ms: u32, b_ms: u32) -> u32 {
    if a_ms.wrapping_sub(b_ms).cast_signed() < 0 {
        b_ms
    } else {
        a_ms
    }
}

fn frames(drawn: &[(u32, u64)], began_ms: u32, pixels: u64) -> Vec<f64> {
    let mut frames = Vec::new();
    let mut so_far = 0;
    for (at_ms, drawn) in drawn {
        so_far += drawn;
        if so_far * 100 >= pixels * COMPLETE {
            frames.push(f64::from(at_ms.wrapping_sub(began_ms).cast_signed()) / 1000.0);
            so_far = 0;
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_times_the_later_one_counts_also_when_the_clock_begins_anew() {
        assert_eq!(later(5, 9), 9);
        assert_eq!(later(3, u32::MAX), 3);
    }

    #[test]
    fn a_frame_is_complete_when_nearly_all_of_it_is_drawn_in_however_many_bands() {
        assert_eq!(
            frames(&[(1100, 1000), (1140, 1000)], 1000, 1000),
            [0.1, 0.14]
        );
        let bands = [
            (1100, 400),
            (1101, 400),
            (1102, 150),
            (1140, 400),
            (1141, 550),
        ];
        assert_eq!(frames(&bands, 1000, 1000), [0.102, 0.141]);
        let earlier = [(u32::MAX, 1000), (4, 1000)];
        assert_eq!(frames(&earlier, 1, 1000), [-0.002, 0.003]);
    }
}
