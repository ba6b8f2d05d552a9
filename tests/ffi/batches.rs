//! Batches taken apart and put together in C, under the sanitizers.

use crate::build;
use kelp::record::builder::{Builder, Fields};
use kelp::record::codec::Codec;
use kelp::record::records::Record;
use std::path::Path;
use std::process::{Command, Output};

fn run(source: &str, name: &str, arguments: &[&str]) -> Output {
    let program = build::c_program(source, name, &build::SANITIZERS);
    Command::new(program).args(arguments).output().unwrap()
}

fn walk_batch(arguments: &[&str]) -> String {
    let output = run("examples/walk_batch.c", "walk_batch", arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn all_that_c_may_do_wrong_is_answered() {
    let output = run("tests/ffi/batches.c", "batches", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_example_gets_back_what_it_put_into_a_batch() {
    assert_eq!(
        walk_batch(&[]),
        "40 at 1700000000040: \"user-1\" = \"hello\" trace=\"7f\" flag=null\n\
         41 at 1700000000041: null = \"\"\n\
         45 at 1700000000045: \"user-1\" = null\n"
    );
}

#[test]
fn the_example_prints_the_records_of_a_log_but_no_control_records() {
    let record = |offset: i64| Record {
        offset,
        timestamp: 1000 * offset,
        key: Some(b"k"),
        value: Some(b"v"),
        ..Record::default()
    };
    let batch = |base_offset, codec: Codec, is_control| {
        let mut builder = Builder::new(Fields {
            base_offset,
            compression: codec.into(),
            is_control,
            ..Fields::default()
        });
        builder.append(&record(base_offset)).unwrap();
        builder.append(&record(base_offset + 1)).unwrap();
        builder.finish_bytes().unwrap()
    };
    let log = [
        batch(0, Codec::None, false),
        batch(2, Codec::Gzip, false),
        batch(4, Codec::None, true),
        batch(6, Codec::Zstd, false),
    ];
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("walk_batch.log");
    std::fs::write(&file, log.concat()).unwrap();
    let expected = [0, 1, 2, 3, 6, 7].map(|n| format!("{n} at {}: \"k\" = \"v\"\n", 1000 * n));
    assert_eq!(walk_batch(&[file.to_str().unwrap()]), expected.concat());
}
