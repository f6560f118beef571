//! The most answers that a user gets: a bucket of tokens for each, so that one who floods makes no
//! other user wait.
//!
//! Pure: time arrives as data.

use std::collections::HashMap;

use onbeat_model::Instant;

/// The number of calls of a user that are answered at once after a quiet time.
const BURST: i64 = 200;
/// The time in which one more is.
const REFILL: onbeat_model::Span = onbeat_model::Span::from_ms(10);
/// A pass of the tracer over this number of tasks costs as much as another call. It takes some 0.3
/// ms, so at 100 calls a second a user has 3% of a CPU, however many tasks there are.
const TASKS_PER_CALL: u64 = 2000;
/// The passes that tracking a task costs. Two when it is tracked, the second of which finds nothing
/// new, and one when it is no longer.
const PASSES: u64 = 3;

/// The cost of tracking, beside the call, on a machine with this number of tasks.
pub const fn cost_of_tracking(tasks: u64) -> u64 {
    PASSES * tasks / TASKS_PER_CALL
}

/// One user's bucket: full until calls take from it.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Below 0: a call cost more than there was.
    tokens: i64,
    since: Instant,
}

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
        let fresh = i64::try_from(fresh).unwrap_or(i64::MAX);
        bucket.tokens = bucket.tokens.saturating_add(fresh).min(BURST);
        let admitted = bucket.tokens > 0;
        if admitted {
            bucket.tokens -= 1;
        }
        admitted
    }

    pub fn charge(&mut self, uid: u32, more: u64) {
        if let Some(bucket) = self.buckets.get_mut(&uid) {
            let more = i64::try_from(more).unwrap_or(i64::MAX);
            bucket.tokens = bucket.tokens.saturating_sub(more);
        }
    }
}
