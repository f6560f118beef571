//! A planned reservation as a line for chrt, and as a task of rt-app.

use onbeat_model::{Name, Reservation, Span};
use serde_json::{Map, Value, json};

use super::PlanLine;

/// Without `--reset-on-fork` the kernel lets a thread with a reservation start no other one.
fn chrt(reservation: &Reservation) -> String {
    format!(
        "chrt --reset-on-fork --deadline --sched-runtime {} --sched-deadline {} --sched-period {}",
        reservation.runtime().as_ns(),
        reservation.deadline().as_ns(),
        reservation.period().as_ns()
    )
}

pub(super) fn chrt_for_thread(tid: u32, reservation: &Reservation) -> String {
    format!("{} --pid 0 {tid}", chrt(reservation))
}

/// For the program that was recorded, if this is its first thread.
pub(super) fn chrt_for_command(planned: &PlanLine) -> Option<String> {
    let words: Vec<String> = planned.command.iter().map(|word| quoted(word)).collect();
    (!words.is_empty()).then(|| format!("{} 0 {}", chrt(&planned.reservation), words.join(" ")))
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The name under which rt-app runs a stand-in: the thread's own, as much of it as leaves room for
/// its number.
fn name(planned: &PlanLine) -> String {
    let number = format!("-{}", planned.tid);
    let own = Name::from(planned.comm.as_str()).to_text();
    let room = LONGEST_NAME.saturating_sub(number.len());
    let ends = own.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|&end| end <= room).last().unwrap_or(0);
    own[..end].to_owned() + &number
}

/// In bytes, of a thread.
const LONGEST_NAME: usize = 15;

fn properties(planned: &PlanLine) -> Value {
    // rt-app counts microseconds: a budget is rounded up, a period down.
    let up = |span: Span| span.as_ns().div_ceil(1000).max(1);
    let period = (planned.reservation.period().as_ns() / 1000).max(1);
    let runtime = up(planned.reservation.runtime()).clamp(2, period.max(2));
    json!({
        "policy": "SCHED_DEADLINE",
        "dl-runtime": runtime,
        "dl-deadline": period,
        "dl-period": period,
        "loop": -1,
        "run": up(planned.median).min(runtime),
        "timer": { "ref": "unique", "period": period, "mode": "absolute" },
    })
}

/// A task with the thread's reservation and period, and its median demand.
pub(super) fn rt_app_task(planned: &PlanLine) -> String {
    format!("{}: {}", Value::String(name(planned)), properties(planned))
}

/// All of them, as a file that rt-app runs for ten seconds.
pub(super) fn rt_app(planned: &[PlanLine]) -> serde_json::Result<String> {
    let tasks: Map<String, Value> = planned
        .iter()
        .map(|planned| (name(planned), properties(planned)))
        .collect();
    serde_json::to_string_pretty(&json!({
        "global": {
            "duration": 10,
            "calibration": "CPU0",
            "default_policy": "SCHED_OTHER",
            "lock_pages": false,
            "logdir": "./",
            "log_basename": "rt-app",
            "gnuplot": false,
        },
        "tasks": tasks,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_where_a_shell_would_read_it_otherwise() {
        let mut planned = super::super::tests::line(7, "mplayer", 5, 40);
        planned.command = ["mplayer", "-vo", "null", "it's a film.mkv", ""]
            .map(str::to_owned)
            .into();
        let line = chrt_for_command(&planned).unwrap();
        assert!(
            line.ends_with(" 0 mplayer -vo null 'it'\\''s a film.mkv' ''"),
            "{line}"
        );
        planned.command.clear();
        assert_eq!(chrt_for_command(&planned), None);
    }
}
