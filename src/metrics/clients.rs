//! Which software the clients are that are connected (KIP-511).

use super::names;
use super::text::Text;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More kinds of clients at the same time than this are counted as others: they call themselves as
/// they like.
const MAX_KINDS: usize = 100;

/// Longer names are of nobody that one would look for.
const MAX_NAME_BYTES: usize = 64;

const OTHER: &str = "other";

/// How many clients there are of each kind: name and version.
#[derive(Debug, Default)]
pub struct Clients(Mutex<BTreeMap<(String, String), usize>>);

/// A client that is connected and counted, until it is dropped.
#[derive(Debug)]
pub struct Client {
    clients: Arc<Clients>,
    kind: (String, String),
}

impl Clients {
    pub fn add(self: &Arc<Self>, name: &str, version: &str) -> Client {
        let mut by_kind = self.lock();
        let is_short = name.len() <= MAX_NAME_BYTES && version.len() <= MAX_NAME_BYTES;
        let mut kind = (name.to_string(), version.to_string());
        if !is_short || by_kind.len() >= MAX_KINDS && !by_kind.contains_key(&kind) {
            kind = (OTHER.into(), String::new());
        }
        *by_kind.entry(kind.clone()).or_default() += 1;
        Client { clients: self.clone(), kind }
    }

    pub(super) fn write(&self, text: &mut Text) {
        let mut series = text.family(&names::CLIENTS);
        for ((name, version), count) in self.lock().iter() {
            series.add(&[name, version], count);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut by_kind = self.clients.lock();
        if let Some(count) = by_kind.get_mut(&self.kind) {
            *count -= 1;
            if *count == 0 {
                by_kind.remove(&self.kind);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(clients: &Clients) -> Vec<(String, usize)> {
        clients.lock().iter().map(|((name, _), count)| (name.clone(), *count)).collect()
    }

    #[test]
    fn clients_count_while_they_are_there_and_there_are_not_too_many_kinds() {
        let clients = Arc::<Clients>::default();
        let first = clients.add("sarama", "1.0");
        let second = clients.add("sarama", "1.0");
        assert_eq!(counts(&clients), [("sarama".into(), 2)]);
        drop(first);
        let many: Vec<_> = (0..1000).map(|n| clients.add("fake", &n.to_string())).collect();
        let long = clients.add(&"x".repeat(65), "1");
        let kinds = counts(&clients);
        assert_eq!(kinds.len(), MAX_KINDS + 1);
        assert!(kinds.contains(&(OTHER.into(), 1000 - (MAX_KINDS - 1) + 1)), "{kinds:?}");
        assert!(kinds.contains(&("sarama".into(), 1)));
        drop((many, long, second));
        assert_eq!(counts(&clients), []);
    }
}
