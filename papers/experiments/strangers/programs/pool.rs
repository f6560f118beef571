//! A frame of 60 Hz in eight tiles, done by a pool of four threads that yield
//! a hundred times before they park, as pools do.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const TILES: usize = 8;
static NEXT: AtomicUsize = AtomicUsize::new(TILES);
static DONE: AtomicUsize = AtomicUsize::new(0);

fn work(time: Duration) {
    let mut x = 1_u64;
    let began = Instant::now();
    while began.elapsed() < time {
        for _ in 0..300 {
            x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

fn tile() -> bool {
    let mine = NEXT.fetch_update(SeqCst, SeqCst, |n| (n < TILES).then_some(n + 1)).is_ok();
    if mine {
        work(Duration::from_micros(700));
        DONE.fetch_add(1, SeqCst);
    }
    mine
}

fn main() {
    let seconds: f64 = std::env::var("SECONDS_TO_RUN").unwrap().parse().unwrap();
    let pool: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                loop {
                    if !(0..100).any(|_| tile() || { std::thread::yield_now(); false }) {
                        std::thread::park();
                    }
                }
            })
        })
        .collect();
    let frame = Duration::from_secs_f64(1.0 / 60.0);
    let began = Instant::now();
    let mut due = began;
    let mut times = Vec::new();
    while began.elapsed().as_secs_f64() < seconds {
        due += frame;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        DONE.store(0, SeqCst);
        NEXT.store(0, SeqCst);
        pool.iter().for_each(|one| one.thread().unpark());
        while tile() {}
        while DONE.load(SeqCst) < TILES {
            std::thread::yield_now();
        }
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    for t in times {
        println!("{t}");
    }
    std::process::exit(0);
}
