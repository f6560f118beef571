//! Compiles the rules of each policy, as they are in `schedulers/NAME/policy.h`.

const POLICIES: [&str; 5] = ["best", "berate", "grace", "linux24", "reserve"];

fn main() {
    cc::Build::new()
        .files(POLICIES.map(|name| format!("shims/{name}.c")))
        .std("gnu11")
        .warnings(true)
        .extra_warnings(true)
        // All policies have the same functions; not each needs all that it is told.
        .flag("-Wno-unused-parameter")
        .warnings_into_errors(true)
        .compile("onbeat-policies");
    println!("cargo::rerun-if-changed=shims");
    println!("cargo::rerun-if-changed=../../schedulers/common");
    for name in POLICIES {
        println!("cargo::rerun-if-changed=../../schedulers/{name}/policy.h");
    }
}
