//! How often somebody is answered: a bucket of tokens for each user, so that one who floods waits
//! for nobody but himself.
//!
//! Pure: time arrives as data.

use std::collections::HashMap;

use onbeat_model::{Instant, Span};

/// How many calls of a user are answered at once, when he was quiet before.
const BURST: u32 = 200;
/// How long it takes until one more is.
const REFILL: Span = Span::from_ms(10);

/// One user's bucket: full until calls take from it.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u32,
    since: Instant,
}

/// Every user's bucket.
#[derive(Clone, Debug, Default)]
pub struct CallLimit {
    buckets: HashMap<u32, Bucket>,
}

impl CallLimit {
    /// Whether one more call of the user `uid` is answered at `now`. Root is always answered.
    pub fn admits(&mut self, uid: u32, now: Instant) -> bool {
        if uid == 0 {
            return true;
        }
        let bucket = self.buckets.entry(uid).or_insert(Bucket {
            tokens: BURST,
            since: now,
        });
        let fresh = now.since(bucket.since).as_ns() / REFILL.as_ns();
        bucket.since = bucket.since + REFILL * fresh;
        let fresh = u32::try_from(fresh).unwrap_or(u32::MAX);
        bucket.tokens = bucket.tokens.saturating_add(fresh).min(BURST);
        let admitted = bucket.tokens > 0;
        bucket.tokens = bucket.tokens.saturating_sub(1);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn who_floods_is_answered_a_hundred_times_a_second_and_others_are_as_ever() {
        let mut calls = CallLimit::default();
        let answered = |calls: &mut CallLimit, from: u64| {
            (0..10_000)
                .filter(|&call| calls.admits(1000, at(from + call / 10)))
                .count()
        };
        assert_eq!(answered(&mut calls, 0), 200 + 99);
        assert!(calls.admits(1001, at(999)));
        assert!(calls.admits(0, at(999)));
        assert!(!calls.admits(1000, at(999)));
        assert_eq!(answered(&mut calls, 60_000), 200 + 99);
    }
}
