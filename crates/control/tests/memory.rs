//! The loop's memory for each thread that it keeps, and for each job: counted, because a thousand
//! threads are to fit into 40 MB with all else.

mod crowd;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use onbeat_model::Span;

use crowd::{Crowd, PERIOD};

const THREADS: u32 = 100;

/// Counts what is set aside, in this process, which has one test.
struct Counting;

static BYTES: AtomicU64 = AtomicU64::new(0);
static TIMES: AtomicU64 = AtomicU64::new(0);

// SAFETY: all is left to the system's allocator; the counters set nothing aside themselves.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        TIMES.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_thread_takes_less_than_24_kilobytes_and_a_job_sets_hardly_ever_memory_aside() {
    let before = BYTES.load(Ordering::Relaxed);
    let mut crowd = Crowd::new(THREADS, PERIOD * 5, true);
    let per_thread = (BYTES.load(Ordering::Relaxed) - before) / u64::from(THREADS);
    assert!(per_thread < 24 * 1024, "{per_thread} bytes a thread");

    // No rhythm is verified meanwhile.
    let time = Span::from_secs(2);
    let turns = crowd.turns(time);
    let before = TIMES.load(Ordering::Relaxed);
    crowd.hear(&turns);
    let times = TIMES.load(Ordering::Relaxed) - before;
    let jobs = time.as_ns() / PERIOD.as_ns() * u64::from(THREADS);
    assert!(times * 100 < jobs, "{times} times in {jobs} jobs");
}
