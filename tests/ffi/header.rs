//! `include/kelp.h` is what `src/ffi/` says, and compiles as strict C and C++.

use std::path::Path;
use std::process::{Command, Output};

pub(crate) const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");

#[cfg(feature = "header")]
#[test]
fn the_committed_header_is_the_generated_one() {
    let generated = include_str!(concat!(env!("OUT_DIR"), "/kelp.h"));
    let committed = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/include/kelp.h"));
    assert!(generated == committed, "src/ffi/ has changed: run `make header` and commit kelp.h");
}

fn compile(compiler: &str, arguments: &[&str]) -> Output {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ffi/header.c");
    let strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I", INCLUDE];
    Command::new(compiler).args(strict).args(arguments).arg(source).output().unwrap()
}

#[test]
fn the_header_compiles_as_strict_c99_and_cpp11() {
    let c = compile("cc", &["-std=c99"]);
    assert!(c.status.success(), "{}", String::from_utf8_lossy(&c.stderr));
    let cpp = compile("c++", &["-std=c++11", "-x", "c++"]);
    assert!(cpp.status.success(), "{}", String::from_utf8_lossy(&cpp.stderr));
}
