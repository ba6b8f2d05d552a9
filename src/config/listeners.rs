//! The listeners of a broker, and what clients are told of each.
//!
//! A listener is `NAME://HOST:PORT`; the name ties an advertised address to the listener it
//! belongs to.

use super::definition::InvalidValue;
use std::net::SocketAddr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    pub name: String,
    pub bind: Address,
    /// What clients are told; without it, the address of `bind` or, if that is every address of
    /// the machine, the one that the client came in on.
    pub advertised: Option<Address>,
}

/// A host, by name or number, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

/// Addresses that stand for every address of the machine.
const WILDCARDS: [&str; 3] = ["", "0.0.0.0", "::"];

impl Address {
    /// Reads `HOST:PORT`; the host of an IPv6 address stands in brackets.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']')?,
            None if host.contains(':') => return None,
            None => host,
        };
        // The characters that Kafka takes in the host of a listener.
        let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-%._:".contains(&b);
        host.bytes().all(is_host).then(|| Self { host: host.to_string(), port })
    }

    pub fn is_wildcard(&self) -> bool {
        WILDCARDS.contains(&self.host.as_str())
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Reads `listeners` and `advertised.listeners`.
pub(super) fn read_listeners(
    listeners: &str,
    advertised: &str,
) -> Result<Vec<Listener>, InvalidValue> {
    let mut read: Vec<Listener> = Vec::new();
    for item in super::definition::list(listeners) {
        let refused = |reason| invalid("listeners", item, reason);
        let (name, bind) = named_address(item).ok_or_else(|| refused(NOT_A_LISTENER))?;
        if read.iter().any(|other| other.name == name) {
            return Err(refused("Each listener must have a different name"));
        }
        if bind.port != 0 && read.iter().any(|other| other.bind.port == bind.port) {
            return Err(refused("Each listener must have a different port"));
        }
        read.push(Listener { name, bind, advertised: None });
    }
    for item in super::definition::list(advertised) {
        let refused = |reason| invalid("advertised.listeners", item, reason);
        let (name, address) = named_address(item).ok_or_else(|| refused(NOT_A_LISTENER))?;
        if address.is_wildcard() {
            return Err(refused("advertised.listeners cannot use the nonroutable meta-address"));
        }
        let listener = read.iter_mut().find(|listener| listener.name == name);
        let listener = listener.ok_or_else(|| refused("No listener has this name"))?;
        if listener.advertised.replace(address).is_some() {
            return Err(refused("Each listener name may stand here once"));
        }
    }
    Ok(read)
}

const NOT_A_LISTENER: &str = "Not NAME://HOST:PORT";

fn invalid(name: &str, value: &str, reason: &str) -> InvalidValue {
    let [name, value, reason] = [name, value, reason].map(str::to_string);
    InvalidValue::Value { name, value, reason }
}

fn named_address(text: &str) -> Option<(String, Address)> {
    let (name, address) = text.split_once("://")?;
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.is_empty() || !name.bytes().all(is_name) {
        return None;
    }
    Some((name.to_ascii_uppercase(), Address::parse(address)?))
}

/// What a client is told that came in on `local`: which of the listeners that is shows its port.
pub fn advertised(listeners: &[Listener], local: SocketAddr) -> Address {
    let local = Address { host: local.ip().to_canonical().to_string(), port: local.port() };
    let by_port = |port| listeners.iter().find(|listener| listener.bind.port == port);
    // A listener on port 0 has a port that only the operating system knew.
    match by_port(local.port).or_else(|| by_port(0)) {
        Some(Listener { advertised: Some(address), .. }) => address.clone(),
        Some(Listener { bind, .. }) if !bind.is_wildcard() => {
            Address { host: bind.host.clone(), port: local.port }
        }
        _ => local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_only_characters_that_its_text_is_read_back_with() {
        for text in ["kelp-2.example_net:1", ":1", "[fe80::1%eth0]:1"] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.to_string(), Address::parse(text)), (text.into(), Some(address)));
        }
        for text in ["[[2.i1]:9", "a]:9", "a b:9", "a/b:9", "caf\u{e9}:9"] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }

    fn told(listeners: &str, advertised_listeners: &str, local: &str) -> String {
        let listeners = read_listeners(listeners, advertised_listeners).unwrap();
        advertised(&listeners, local.parse().unwrap()).to_string()
    }

    #[test]
    fn a_client_is_told_what_its_listener_advertises() {
        let both = "IN://0.0.0.0:9092,OUT://:9094";
        let out = "OUT://kafka.example.com:19094";
        assert_eq!(told(both, out, "10.0.0.7:9094"), "kafka.example.com:19094");
        assert_eq!(told(both, out, "10.0.0.7:9092"), "10.0.0.7:9092");
        assert_eq!(told("A://broker-1:9092", "", "10.0.0.7:9092"), "broker-1:9092");
        assert_eq!(told("A://:0", "A://[::1]:7", "[::1]:40000"), "[::1]:7");
        // A socket that the host took elsewhere.
        assert_eq!(told("A://broker-1:9092", "", "10.0.0.7:5555"), "10.0.0.7:5555");
        // A dual-stack socket shows IPv4 clients inside of IPv6 addresses.
        assert_eq!(told("A://:9092", "", "[::ffff:127.0.0.1]:9092"), "127.0.0.1:9092");
    }

    #[test]
    fn listeners_that_make_no_sense_are_refused() {
        for (listeners, advertised) in [
            ("PLAINTEXT:9092", ""),
            ("A://:9092,A://:9093", ""),
            ("A://:9092,B://:9092", ""),
            ("A://:99999", ""),
            ("A://::1:9092", ""),
            ("A://:9092", "B://host:1"),
            ("A://:9092", "A://0.0.0.0:9092"),
        ] {
            assert!(read_listeners(listeners, advertised).is_err(), "{listeners} {advertised}");
        }
    }
}
