//! A processor of one speed at a time: jobs take longer as it slows down, and how much of it is in
//! use follows a script.

use std::cell::{Cell, RefCell};

use onbeat_model::{Instant, Ladder, Refusal, Span, Speed, Speeds};

pub(crate) fn mhz(mhz: u64) -> Speed {
    Speed::from_khz(mhz * 1000).unwrap()
}

pub(crate) struct Processor {
    ladder: Ladder,
    present: Cell<Speed>,
    pub(crate) runtimes_follow_speed: bool,
    /// From when on it is in use for which share, at the highest speed.
    pub(crate) used: Vec<(Instant, f64)>,
    pub(crate) refusal: Option<Refusal>,
    set: RefCell<Vec<(Instant, Speed)>>,
    pub(crate) released: Cell<bool>,
}

impl Processor {
    pub(crate) fn new(speeds: &[u64]) -> Self {
        let ladder = Ladder::new(speeds.iter().map(|&speed| mhz(speed))).unwrap();
        Self {
            present: Cell::new(ladder.lowest()),
            ladder,
            runtimes_follow_speed: false,
            used: Vec::new(),
            refusal: None,
            set: RefCell::default(),
            released: Cell::new(false),
        }
    }

    pub(crate) fn slowness(&self) -> f64 {
        self.ladder.highest().ratio(self.present.get())
    }

    pub(crate) fn history(&self) -> Vec<(Instant, Speed)> {
        self.set.borrow().clone()
    }

    pub(crate) fn speeds(&self) -> Speeds {
        Speeds {
            ladder: self.ladder.clone(),
            present: self.present.get(),
            runtimes_follow_speed: self.runtimes_follow_speed,
        }
    }

    pub(crate) fn set(&self, speed: Speed, now: Instant) -> Result<(), Refusal> {
        if let Some(refusal) = self.refusal.clone().filter(|_| speed < self.present.get()) {
            return Err(refusal);
        }
        self.present.set(speed);
        self.set.borrow_mut().push((now, speed));
        Ok(())
    }

    /// All time it was idle from the clock's zero to `now`, as if it always had the present speed.
    pub(crate) fn idle(&self, now: Instant) -> Span {
        let mut idle = Span::ZERO;
        for (n, &(from, used)) in self.used.iter().enumerate() {
            let until = self.used.get(n + 1).map_or(now, |&(next, _)| next).min(now);
            let share = (1.0 - used * self.slowness()).max(0.0);
            idle += until.since(from).scale(share);
        }
        idle
    }
}
