//! Builds C programs with the library that cargo has built for this test.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const SANITIZERS: [&str; 2] =
    ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Compiles a program of one file against the static library, once for each name.
pub(crate) fn c_program(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    static BUILDING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one_at_a_time = BUILDING.lock().unwrap_or_else(|e| e.into_inner());
    let test = std::env::current_exe().unwrap();
    let library = test.with_file_name("libkelp.a");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let sources = [
        library.clone(),
        Path::new(ROOT).join(source),
        Path::new(ROOT).join("examples/memory_host.c"),
    ];
    let newer = |path: &PathBuf| modified(path) > modified(&program);
    if !sources.iter().any(newer) {
        return program;
    }
    let output = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"])
        .args(flags)
        .arg(format!("-I{ROOT}/include"))
        .arg(Path::new(ROOT).join(source))
        .arg(library)
        .args(["-l:libgcc_eh.a", "-lpthread", "-lm", "-ldl", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().ok()?.modified().ok()
}
