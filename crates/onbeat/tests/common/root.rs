//! Ends a test program all of whose tests need root, where it has it not, before the first of them.

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = needs_root;

extern "C" fn needs_root() {
    // SAFETY: geteuid takes nothing and always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        println!("test {} ... skipped: it needs root", module_path!());
        std::process::exit(i32::from(std::env::var_os("CI").is_some()));
    }
}
