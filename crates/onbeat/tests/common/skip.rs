//! Tests that a machine cannot run.

/// Says why this test cannot run here. In CI that is a failure.
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{reason}, in CI too");
    let test = std::thread::current();
    println!("skipped: {}: {reason}", test.name().unwrap_or("a test"));
}
