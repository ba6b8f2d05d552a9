//! Against a filer that runs: `tests/filer.sh` starts one, and tells where by `KELP_TEST_FILER`.

use super::messages::{CreateEntryRequest, Entry};
use super::*;
use crate::store::objects::contract;
use bytes::BytesMut;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::time::{Instant, sleep};

const ALL: u64 = u64::MAX;

/// How long is waited for what the filer does later.
const SOON: Duration = Duration::from_secs(60);

/// A directory of its own on the filer that all tests share.
async fn filer() -> Filer {
    let address = std::env::var("KELP_TEST_FILER").expect("tests/filer.sh sets KELP_TEST_FILER");
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (pid, n) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    Filer::open(options(&address, &format!("/kelp-{pid}-{n}"))).await.unwrap()
}

fn options(address: &str, directory: &str) -> Options {
    let filers = vec![address.parse().unwrap()];
    Options { filers, directory: directory.into(), timeout: SOON }
}

/// Bytes that each tell their place, in a period that divides no block size.
fn content(size: usize) -> Bytes {
    (0..size).map(|i| (i % 251) as u8).collect()
}

async fn put(filer: &Filer, key: &str, content: Bytes) -> Put {
    filer.put_new(key, vec![content]).await.unwrap()
}

async fn get(filer: &Filer, key: &str, offset: u64, len: u64) -> Bytes {
    filer.get(key, offset, len).await.unwrap().expect("the object is there")
}

async fn list(filer: &Filer, prefix: &str, after: &str, limit: usize) -> Vec<String> {
    filer.list(prefix, after, limit).await.unwrap()
}

async fn entry(filer: &Filer, key: &str) -> Entry {
    filer.0.find(&filer.0.path(key).unwrap()).await.unwrap().expect("the object is there").0
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a filer: tests/filer.sh"]
async fn the_contract_holds() {
    contract::holds(Arc::new(filer().await)).await;
}

#[tokio::test]
#[ignore = "needs a filer: tests/filer.sh"]
async fn objects_are_entries_when_small_and_chunks_when_large() {
    const MIB: usize = 1 << 20;
    let filer = filer().await;
    for (size, chunks) in [
        (0, 0..=0),
        (1, 0..=0),
        (4_095, 0..=0),
        // In the entry where the master assigned no id in time.
        (4_096, 0..=1),
        (512 << 10, 0..=1),
        (MIB, 1..=1),
        (8 * MIB, 1..=1),
        (8 * MIB + 1, 2..=2),
        (17 * MIB, 3..=3),
    ] {
        let key = format!("segment/1/{size}");
        let whole = content(size);
        // In parts that know nothing of chunks.
        let parts = (0..size).step_by(700_001).map(|i| whole.slice(i..size.min(i + 700_001)));
        assert_eq!(filer.put_new(&key, parts.collect()).await, Ok(Put::Created));
        assert!(get(&filer, &key, 0, ALL).await == whole, "{size} bytes");

        let entry = entry(&filer, &key).await;
        assert!(chunks.contains(&entry.chunks.len()), "{size} bytes: {:?}", entry.chunks);
        assert_eq!(entry.attributes.unwrap().file_size, size as u64);
        assert!(entry.chunks.iter().all(|chunk| !chunk.is_compressed));
        let ranges = [
            (0, 1),
            (size / 2, 10),
            // Read with what is before it in its chunk, and behind it.
            (size / 4, size / 2),
            (8 * MIB - 3, 8 * MIB + 6),
            (8 * MIB, 1),
        ];
        for (offset, len) in ranges {
            let (from, to) = (offset.min(size), size.min(offset + len));
            let got = get(&filer, &key, offset as u64, len as u64).await;
            assert!(got == whole.slice(from..to.max(from)), "{len} of {size} from {offset} on");
        }
    }
}

#[tokio::test]
#[ignore = "needs a filer: tests/filer.sh"]
async fn text_is_kept_as_it_is() {
    let filer = filer().await;
    let text = Bytes::from("all work and no play\n".repeat(30_000));
    put(&filer, "segment/1/text", text.clone()).await;
    let stored = &entry(&filer, "segment/1/text").await.chunks[0];
    assert!(!stored.is_compressed && stored.size == text.len() as u64);
    assert_eq!(get(&filer, "segment/1/text", 21, 42).await, text.slice(21..63));
}

#[tokio::test]
#[ignore = "needs a filer: tests/filer.sh"]
async fn a_lost_put_leaves_the_winners_chunks_and_deletes_its_own() {
    let filer = filer().await;
    let winner = content(600_000);
    put(&filer, "segment/1/one", winner.clone()).await;

    let path = filer.0.path("segment/1/one").unwrap();
    let large = content(9 << 20);
    let uploads =
        filer.0.upload(&path, std::slice::from_ref(&large), large.len(), filer.0.timeout).await;
    let uploads = uploads.unwrap();
    let ids: Vec<_> = uploads.iter().map(|upload| upload.chunk.file_id.clone()).collect();
    assert_eq!(ids.len(), 2);
    let created = filer.0.create(&path, large.len(), Bytes::new(), uploads).await;
    assert_eq!(created, Ok(Put::Exists));
    assert!(get(&filer, "segment/1/one", 0, ALL).await == winner);

    // An entry that names the chunks of the loser shows when they are gone.
    let chunks = ids.iter().enumerate().map(|(i, id)| FileChunk {
        file_id: id.clone(),
        offset: (i * CHUNK_BYTES) as i64,
        size: CHUNK_BYTES.min(large.len() - i * CHUNK_BYTES) as u64,
        ..Default::default()
    });
    let entry = Entry { chunks: chunks.collect(), ..Default::default() };
    let path = filer.0.path("segment/1/ghost").unwrap();
    assert_eq!(filer.0.create_entry(&path, entry).await, Ok(Put::Created));
    let begun = Instant::now();
    for offset in [0, CHUNK_BYTES as u64] {
        loop {
            match filer.get("segment/1/ghost", offset, 1).await {
                Err(error) if error.0.contains("404") => break,
                other => assert!(begun.elapsed() < SOON, "a chunk stays: {other:?}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
#[ignore = "needs a filer: tests/filer.sh"]
async fn a_list_is_in_the_order_of_keys_over_any_page() {
    let filer = filer().await;
    let mut keys = vec![
        "a-b".to_string(),
        "a-b-/x".into(),
        "a-c/1".into(),
        "a.txt".into(),
        "a/1-/x".into(),
        "a/1-2/x".into(),
        "a/1/x".into(),
        "a/10".into(),
        "a/2/deep/er".into(),
        "a0".into(),
        "ab".into(),
    ];
    keys.extend((0..2_100).map(|seq| format!("journal/1/0000000001/{seq:020}")));
    assert!(keys.is_sorted());
    let puts = stream::iter(keys.iter().rev());
    let puts = puts.map(|key| put(&filer, key, Bytes::new())).buffer_unordered(8);
    assert!(puts.all(async |put| put == Put::Created).await);

    assert!(list(&filer, "", "", 10_000).await == keys, "all keys");
    for prefix in ["", "a", "a-", "a/", "a/1", "a-b", "none", "none/x/"] {
        for after in ["", "0", "a", "a/", "a/1/", "a-b-/x", "a/1-/x", "a/10", "zzz"] {
            for limit in [1, 3, 12] {
                let expected = keys.iter().filter(|key| key.starts_with(prefix));
                let expected = expected.filter(|key| key.as_str() > after).take(limit);
                let got = list(&filer, prefix, after, limit).await;
                assert!(got.iter().eq(expected), "{prefix:?} after {after:?}: {got:?}");
            }
        }
    }
    let journal = &keys[11..];
    assert_eq!(list(&filer, "journal/1/", &journal[1_500], 1_000).await, journal[1_501..]);
}

#[tokio::test]
#[ignore = "needs a filer: tests/filer.sh"]
async fn a_key_that_exists_is_listed_once_that_was_answered() {
    let filer = filer().await;
    // A filer that dies between an entry and its directories leaves an entry that no list shows.
    let path = filer.0.path("journal/1/0000000001/x").unwrap();
    let (directory, name) = split(&path);
    let request = CreateEntryRequest {
        directory: directory.into(),
        entry: Some(Entry {
            name: name.into(),
            attributes: Some(attributes(0o660)),
            ..Default::default()
        }),
        skip_check_parent_directory: true,
        ..Default::default()
    };
    filer.0.calls.create_entry(&request).await.unwrap();
    assert!(list(&filer, "", "", 10).await.is_empty(), "the filer made the directories");
    assert_eq!(put(&filer, "journal/1/0000000001/x", Bytes::new()).await, Put::Exists);
    assert_eq!(list(&filer, "", "", 10).await, ["journal/1/0000000001/x"]);
}

#[tokio::test]
#[ignore = "needs a filer: tests/filer.sh"]
async fn no_key_is_a_directory_and_what_is_no_key_is_refused() {
    let filer = filer().await;
    put(&filer, "a/b", Bytes::new()).await;
    assert!(filer.put_new("a", vec![]).await.is_err());
    assert_eq!(filer.get("a", 0, ALL).await, Ok(None));
    for key in ["", "/a", "a/", "a//b", "a/../b", ".", "a b"] {
        assert!(filer.put_new(key, vec![]).await.is_err(), "{key:?}");
        assert!(filer.get(key, 0, ALL).await.is_err(), "{key:?}");
        assert!(filer.delete(vec![key.into()]).await.is_err(), "{key:?}");
    }
    for (key, collection) in
        [("journal/1/1/1", "kelp-journal"), ("segment/1/1", "kelp"), ("journalist", "kelp")]
    {
        assert_eq!(filer.0.collection(&filer.0.path(key).unwrap()), collection);
    }
}

#[tokio::test]
#[ignore = "needs a filer: tests/filer.sh"]
async fn chunks_are_read_with_a_token_where_one_is_asked_for() {
    let asked_for = std::env::var_os("KELP_TEST_TOKENS").is_some();
    let filer = filer().await;
    put(&filer, "segment/1/x", content(600_000)).await;
    assert!(get(&filer, "segment/1/x", 0, ALL).await == content(600_000));
    let path = filer.0.path("segment/1/x").unwrap();
    let (entry, found) = filer.0.find(&path).await.unwrap().unwrap();
    let id = entry.chunks[0].file_id.as_str();
    let (server, chunk) = (&found.servers(id)[0].url, (id, 600_000));
    let read = filer.0.volumes.read(server, chunk, "", 0..100_000, &mut BytesMut::new()).await;
    assert_eq!(read.is_err_and(|error| error.0.contains("401")), asked_for);
}

/// Sets the filer's rules for paths; only one test may.
async fn set_rules(filer: &Filer, rules: &str) {
    let request = DeleteEntryRequest {
        directory: "/etc/seaweedfs".into(),
        name: "filer.conf".into(),
        is_delete_data: true,
    };
    filer.0.calls.delete_entry(&request).await.unwrap();
    let content = Bytes::copy_from_slice(rules.as_bytes());
    let attributes = FuseAttributes { file_size: content.len() as u64, ..attributes(0o660) };
    let entry = Entry { content, attributes: Some(attributes), ..Default::default() };
    let path = "/etc/seaweedfs/filer.conf";
    assert_eq!(filer.0.create_entry(path, entry).await, Ok(Put::Created));
}

#[tokio::test]
#[ignore = "needs a filer: tests/filer.sh"]
async fn the_filers_rule_for_the_path_counts() {
    let filer = filer().await;
    let directory = &filer.0.directory;
    let address = std::env::var("KELP_TEST_FILER").unwrap();
    let rules = |rule: &str| {
        format!(r#"{{"version":2,"locations":[{{"locationPrefix":"{directory}/",{rule}}}]}}"#)
    };
    for (rule, word) in [(r#""ttl":"7d""#, "-ttl"), (r#""worm":true"#, "-worm")] {
        set_rules(&filer, &rules(rule)).await;
        let refused = Filer::open(options(&address, directory)).await.err().expect(word);
        assert!(refused.0.contains(word), "{refused}");
    }
    set_rules(&filer, &rules(r#""fsync":true"#)).await;
    Filer::open(options(&address, directory)).await.unwrap();
    // The filer learns of its rules by an event. Another directory has no ids yet.
    let begun = Instant::now();
    for epoch in 0.. {
        let path = filer.0.path(&format!("journal/1/{epoch:010}/0")).unwrap();
        let id = filer.0.ids.take(&path, "kelp-journal", 5_000, SOON).await.unwrap();
        if id.batch.fsync {
            put(&filer, &format!("journal/1/{epoch:010}/0"), content(5_000)).await;
            break;
        }
        assert!(begun.elapsed() < SOON, "uploads are not synced");
        sleep(Duration::from_millis(50)).await;
    }
    set_rules(&filer, "{}").await;
}

/// A `weed server` of one test, which ends with the test.
struct Weed {
    directory: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Weed {
    fn start() -> Self {
        // The server takes the six behind the first.
        let all_free = |first: &u16| {
            let ports = *first..*first + 7;
            ports
                .map(|port| TcpListener::bind(("127.0.0.1", port)))
                .collect::<std::io::Result<Vec<_>>>()
                .is_ok()
        };
        let candidates = (0..1_000).map(|_| rand::random_range(20_000..31_000));
        let port = candidates.into_iter().find(all_free).expect("seven free ports in a row");
        let directory = tempfile::tempdir().unwrap();
        let process = spawn(directory.path(), port);
        Self { directory, port, process }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.process = spawn(self.directory.path(), self.port);
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}.{}", self.port + 5, self.port + 6)
    }
}

impl Drop for Weed {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(directory: &Path, port: u16) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/weed.sh");
    let mut command = Command::new(script);
    command.arg("server").arg(directory).arg(port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs weed: tests/filer.sh"]
async fn what_was_answered_survives_kills_of_the_server() {
    const WRITERS: u32 = 4;
    let mut weed = Weed::start();
    let filer = Filer::open(options(&weed.address(), "/kelp")).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let created = Arc::new(AtomicU32::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (filer, stop, created) = (filer.clone(), stop.clone(), created.clone());
            tokio::spawn(async move {
                let (mut known, mut unknown) = (BTreeMap::new(), 0);
                for seq in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = format!("journal/1/{writer:010}/{seq:020}");
                    let size = 100 + seq % 3 * 8_000;
                    match filer.put_new(&key, vec![content(size)]).await {
                        Ok(Put::Created) => {
                            known.insert(key, size);
                            created.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(Put::Exists) => panic!("{key} existed"),
                        Err(_) => unknown += 1,
                    }
                }
                (known, unknown)
            })
        })
        .collect();
    // Whatever the machine's speed: each kill comes after some more objects.
    for kills in 1..=3 {
        while created.load(Ordering::Relaxed) < 100 * kills {
            sleep(Duration::from_millis(5)).await;
        }
        weed.kill();
        weed.start_again();
    }
    let before = created.load(Ordering::Relaxed);
    while created.load(Ordering::Relaxed) < before + 100 {
        sleep(Duration::from_millis(5)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let (mut keys, mut unknown) = (BTreeMap::new(), 0);
    for writer in writers {
        let (known, lost) = writer.await.unwrap();
        keys.extend(known);
        unknown += lost;
    }
    println!("{} objects, {unknown} puts with an unknown outcome", keys.len());
    let listed = list(&filer, "journal/1/", "", 1_000_000).await;
    for (key, size) in keys {
        assert!(listed.binary_search(&key).is_ok(), "{key} is not listed");
        assert!(get(&filer, &key, 0, ALL).await == content(size), "{key} has other bytes");
    }
}
