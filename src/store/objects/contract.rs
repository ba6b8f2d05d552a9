//! What every implementation of [`Objects`] must do, as one test that each of them runs.
//!
//! It begins with an empty store and may be run once on it. It panics where the store is wrong.

use super::{Objects, Put};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// More bytes than any object here has.
const ALL: u64 = u64::MAX;

pub async fn holds(objects: Arc<dyn Objects>) {
    an_object_is_its_parts_in_a_row(&*objects).await;
    a_key_is_put_once(&*objects).await;
    of_many_puts_to_a_key_one_wins(&objects).await;
    ranges_are_cut_at_the_end(&*objects).await;
    keys_are_listed_in_order(&*objects).await;
    pages_go_on_where_the_last_one_ended(&*objects).await;
    a_list_shows_what_was_put_before_it(&objects).await;
    deleted_objects_go(&*objects).await;
    large_objects_come_back_whole(&*objects).await;
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

async fn put(objects: &dyn Objects, key: &str, text: &str) -> Put {
    objects.put_new(key, vec![bytes(text)]).await.unwrap()
}

async fn get(objects: &dyn Objects, key: &str) -> Option<Bytes> {
    objects.get(key, 0, ALL).await.unwrap()
}

async fn list(objects: &dyn Objects, prefix: &str, after: &str, limit: usize) -> Vec<String> {
    objects.list(prefix, after, limit).await.unwrap()
}

async fn an_object_is_its_parts_in_a_row(objects: &dyn Objects) {
    let parts = ["", "one", "", "two", ""].map(bytes).to_vec();
    assert_eq!(objects.put_new("parts/some", parts).await, Ok(Put::Created));
    assert_eq!(get(objects, "parts/some").await, Some(bytes("onetwo")));

    assert_eq!(objects.put_new("parts/none", vec![]).await, Ok(Put::Created));
    assert_eq!(get(objects, "parts/none").await, Some(Bytes::new()));
    assert_eq!(get(objects, "parts/absent").await, None);

    // More slices than one `writev` takes.
    let many = vec![bytes("ab"); 5_000];
    assert_eq!(objects.put_new("parts/many", many).await, Ok(Put::Created));
    assert_eq!(get(objects, "parts/many").await, Some(bytes(&"ab".repeat(5_000))));
}

async fn a_key_is_put_once(objects: &dyn Objects) {
    assert_eq!(put(objects, "once/a", "first").await, Put::Created);
    assert_eq!(put(objects, "once/a", "second").await, Put::Exists);
    assert_eq!(put(objects, "once/a", "first").await, Put::Exists);
    assert_eq!(get(objects, "once/a").await, Some(bytes("first")));
}

async fn of_many_puts_to_a_key_one_wins(objects: &Arc<dyn Objects>) {
    const PUTS: usize = 16;
    for round in 0..20 {
        let key = format!("race/{round}/key");
        let puts: Vec<_> = (0..PUTS)
            .map(|writer| {
                let (objects, key) = (objects.clone(), key.clone());
                tokio::spawn(async move { put(&*objects, &key, &writer.to_string()).await })
            })
            .collect();
        let mut winners = Vec::new();
        for (writer, put) in puts.into_iter().enumerate() {
            if put.await.unwrap() == Put::Created {
                winners.push(writer.to_string());
            }
        }
        assert_eq!(winners.len(), 1, "{key} was created by {winners:?}");
        assert_eq!(get(&**objects, &key).await, Some(bytes(&winners[0])));
    }
}

async fn ranges_are_cut_at_the_end(objects: &dyn Objects) {
    put(objects, "range", "0123456789").await;
    let ranges = [
        (0, 10, "0123456789"),
        (0, 0, ""),
        (3, 4, "3456"),
        (9, 1, "9"),
        (7, 100, "789"),
        (10, 1, ""),
        (11, 5, ""),
        (1, ALL, "123456789"),
        (ALL, ALL, ""),
    ];
    for (offset, len, expected) in ranges {
        let range = objects.get("range", offset, len).await.unwrap();
        assert_eq!(range, Some(bytes(expected)), "{len} bytes from {offset} on");
    }
}

/// By bytes, over folders: `-` comes before `/`, and `0` after it.
const IN_ORDER: [&str; 12] = [
    "order-first",
    "order/a",
    "order/b-",
    "order/b/1/x",
    "order/b/10/x",
    "order/b/2/x",
    "order/b/2/y/z",
    "order/b0",
    "order/c",
    "order/c.d",
    "order/c0/x",
    "order0",
];

async fn keys_are_listed_in_order(objects: &dyn Objects) {
    for key in IN_ORDER.iter().rev() {
        assert_eq!(put(objects, key, key).await, Put::Created);
    }
    let prefixes = ["order", "order/", "order/b", "order/b/", "order/b/2/", "order/c", "order/b/1"];
    for prefix in prefixes {
        let expected: Vec<_> = IN_ORDER.into_iter().filter(|k| k.starts_with(prefix)).collect();
        assert_eq!(list(objects, prefix, "", 100).await, expected, "with prefix {prefix}");
    }
    assert!(list(objects, "orders", "", 100).await.is_empty());
    assert!(list(objects, "order/d/", "", 100).await.is_empty());
    assert!(list(objects, "order/a/", "", 100).await.is_empty(), "an object is no folder");
}

async fn pages_go_on_where_the_last_one_ended(objects: &dyn Objects) {
    for limit in 1..=IN_ORDER.len() {
        let (mut keys, mut after) = (Vec::new(), String::new());
        loop {
            let page = list(objects, "order", &after, limit).await;
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = last.clone();
            keys.extend(page);
        }
        assert_eq!(keys, IN_ORDER, "in pages of {limit}");
    }
    assert!(list(objects, "order", "", 0).await.is_empty());
    // `after` need not be a key, nor begin with the prefix.
    assert_eq!(list(objects, "order/b", "order/b/", 1).await, ["order/b/1/x"]);
    assert_eq!(list(objects, "order/b", "order/b/2", 1).await, ["order/b/2/x"]);
    assert_eq!(list(objects, "order/b", "a", 1).await, ["order/b-"]);
    assert!(list(objects, "order/b", "z", 1).await.is_empty());
    assert_eq!(list(objects, "order/", "order-zzz", 1).await, ["order/a"]);
}

async fn a_list_shows_what_was_put_before_it(objects: &Arc<dyn Objects>) {
    const WRITERS: usize = 4;
    const KEYS: usize = 40;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let objects = objects.clone();
            tokio::spawn(async move {
                for i in 0..KEYS {
                    let key = format!("seen/{i:04}-{writer}");
                    put(&*objects, &key, "").await;
                    let after = format!("seen/{i:04}");
                    let seen = list(&*objects, "seen/", &after, WRITERS).await;
                    assert!(seen.contains(&key), "{key} is not in {seen:?}");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(list(&**objects, "seen/", "", 1_000).await.len(), WRITERS * KEYS);
}

async fn deleted_objects_go(objects: &dyn Objects) {
    for key in ["gone/a", "gone/b", "gone/c/d"] {
        put(objects, key, "x").await;
    }
    let keys = ["gone/a", "gone/absent", "gone/no/such", "gone/c/d"].map(String::from);
    objects.delete(keys.to_vec()).await.unwrap();
    objects.delete(keys.to_vec()).await.unwrap();
    objects.delete(vec![]).await.unwrap();
    // A delete may act late.
    for _ in 0..500 {
        if list(objects, "gone/", "", 10).await == ["gone/b"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(list(objects, "gone/", "", 10).await, ["gone/b"]);
    assert_eq!(get(objects, "gone/a").await, None);
    assert_eq!(get(objects, "gone/b").await, Some(bytes("x")));
    // The key is free again, which is why the log never uses one twice.
    assert_eq!(put(objects, "gone/a", "again").await, Put::Created);
    assert_eq!(get(objects, "gone/a").await, Some(bytes("again")));
}

async fn large_objects_come_back_whole(objects: &dyn Objects) {
    const PART: usize = 1 << 20;
    // Each byte tells its place, in a period that divides no block size.
    let part = |start: usize| (start..start + PART).map(|i| (i % 251) as u8).collect::<Bytes>();
    let parts: Vec<_> = (0..9).map(|i| part(i * PART)).collect();
    let whole = Bytes::from(parts.concat());
    assert_eq!(objects.put_new("large", parts).await, Ok(Put::Created));
    assert!(get(objects, "large").await.as_ref() == Some(&whole), "the whole object");
    let middle = objects.get("large", 3_000_001, 4_000_003).await.unwrap();
    assert!(middle == Some(whole.slice(3_000_001..7_000_004)), "a range of it");
}
