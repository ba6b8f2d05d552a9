//! Names the shared library; with the feature `header`, makes `kelp.h` from `src/ffi/`; with `filer`, the filer's
//! messages from `proto/`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The number changes only if a host that was built before could not run any more.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libkelp.so.0");
    // Threads of the library may end after the host has closed it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    #[cfg(feature = "header")]
    header::write();
    #[cfg(feature = "filer")]
    messages_of_the_filer();
}

/// Without `protoc`, which is not on every machine.
#[cfg(feature = "filer")]
fn messages_of_the_filer() {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["proto/filer.proto"], ["proto"]).expect("proto/ is valid");
    // Content is lent to requests, not copied into them.
    let written = prost_build::Config::new().bytes(["."]).compile_fds(files);
    written.expect("OUT_DIR can be written");
}

#[cfg(feature = "header")]
mod header {
    use std::{env, fs, path::PathBuf};

    /// In the order in which a C programmer reads.
    const SOURCES: [&str; 13] = [
        "version",
        "status",
        "data",
        "operation",
        "objects",
        "storage",
        "log",
        "host",
        "engine",
        "topic_list",
        "batch",
        "batch_reader",
        "batch_builder",
    ];

    /// The test `header` compares this file with the committed one.
    pub(crate) fn write() {
        println!("cargo::rerun-if-changed=cbindgen.toml");
        println!("cargo::rerun-if-changed=src/ffi");
        let config = cbindgen::Config::from_file("cbindgen.toml").expect("cbindgen.toml is valid");
        let sources = SOURCES.iter().map(|name| format!("src/ffi/{name}.rs"));
        let builder = cbindgen::Builder::new().with_config(config);
        let builder = sources.fold(builder, |builder, source| builder.with_src(source));
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let mut header = Vec::new();
        builder.generate().expect("src/ffi has what C needs").write(&mut header);
        // The heading that Rust's documentation has for what a caller must keep to.
        let header = String::from_utf8(header).expect("UTF-8").replace("# Safety", "Requires:");
        fs::write(out.join("kelp.h"), header).expect("OUT_DIR can be written");
    }
}
