//! `/proc/PID/cgroup`, whose paths users choose.
#![no_main]

use onbeat_model::Cgroup;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let found = Cgroup::of_process(text);
    for name in [&found.unit, &found.container, &found.namespace] {
        let name = name.as_deref().unwrap_or("x");
        assert!(!name.is_empty() && !name.contains('/'), "{found:?}");
        assert!(name == "x" || text.contains(name), "{found:?}");
    }
    if let Some(pod) = found.pod {
        let is_id = |byte: u8| byte == b'-' || byte.is_ascii_hexdigit();
        assert!(pod.bytes().all(is_id), "{pod}");
    }
});
