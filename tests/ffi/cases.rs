//! The cases of `tests/cases` that every host passes: failures that users of Kafka servers met.

use crate::build;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const CASES: [&str; 17] = [
    "01", "02", "03", "04", "06", "09", "11", "12", "13", "14", "16", "18", "20", "21", "22", "24",
    "26",
];

/// Runs the cases against a broker of this machine.
pub(crate) fn pass(port: u16) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let scripts = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let mut scripts: Vec<_> = scripts.filter_map(|name| name.into_string().ok()).collect();
    scripts.retain(|name| CASES.iter().any(|case| name.starts_with(case)));
    assert_eq!(scripts.len(), CASES.len());
    scripts.sort();
    for script in scripts {
        let mut case = Command::new("python3");
        case.arg(folder.join(script)).arg(format!("127.0.0.1:{port}")).env("KW_STRICT", "1");
        let output = case.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Runs them against `examples/memory_host.c`, which must end clean.
pub(crate) fn pass_on_the_example(kind: &str) {
    let program = build::c_program("examples/memory_host.c", "memory_host", &build::SANITIZERS);
    let mut host = Command::new(program);
    let mut host = host.args([kind, "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().strip_prefix("serving on port ").expect("it says where").parse();
    pass(port.unwrap());
    let stopped = Command::new("kill").arg(host.id().to_string()).status().unwrap();
    assert!(stopped.success() && host.wait().unwrap().success());
}
