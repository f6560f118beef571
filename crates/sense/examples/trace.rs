//! Traces running threads and prints each event as one line of JSON: `trace SECONDS TID...`.
//!
//! The program that the overhead experiment runs beside the transcode, and the shortest use of the
//! tracer.

use std::io::{BufWriter, Write};

use onbeat_model::{Flow, Follow, Sensor, Span};
use onbeat_sense::bpf::{BpfOptions, BpfSensor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1);
    let seconds: f64 = numbers
        .next()
        .ok_or("usage: trace SECONDS TID...")?
        .parse()?;
    let mut sensor = BpfSensor::new(BpfOptions::default())?;
    for tid in numbers {
        sensor.track(tid.parse()?, Follow::Children)?;
    }
    let until = sensor.now() + Span::from_secs_f64(seconds);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut events = Vec::new();
    while sensor.now() < until && sensor.poll(Span::from_ms(10), &mut events)? == Flow::Open {
        for event in events.drain(..) {
            serde_json::to_writer(&mut out, &event)?;
            writeln!(out)?;
        }
    }
    for event in &events {
        serde_json::to_writer(&mut out, event)?;
        writeln!(out)?;
    }
    Ok(())
}
