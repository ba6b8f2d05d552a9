//! The text of a properties file, and the configs of a topic.

#![no_main]

use kelp::config::Config;
use kelp::config::listeners::Address;
use kelp::config::server::{Property, properties};
use kelp::config::topic::{accept, in_force, integer};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|text: &str| -> Corpus {
    if let Some(address) = Address::parse(text) {
        assert_eq!(Address::parse(&address.to_string()), Some(address));
    }
    let Ok(pairs) = properties(text) else { return Corpus::Keep };
    topic(&pairs);
    if let Ok(config) = Config::from_text(text) {
        let names = Property::all().map(|property| property.name);
        // One that is left open has none.
        let all = names.filter_map(|name| Some((name, config.value(name)?)));
        let again = Config::from_properties(all).expect("what was taken once");
        assert_eq!(again.endpoints, config.endpoints);
        assert_eq!(again.address(), config.address());
    }
    Corpus::Keep
});

fn topic(pairs: &[(&str, &str)]) {
    let broker = Config::default();
    let pairs = pairs.iter().map(|(name, value)| (*name, Some(*value)));
    let Ok(set) = accept(pairs, &broker) else { return };
    let again = set.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
    let again = accept(again, &broker);
    assert_eq!(again.ok().as_ref(), Some(&set));
    for (name, value) in &set {
        let mut all = in_force(&set, &broker);
        assert!(all.any(|found| found.config.name == name && found.value == *value));
    }
    for name in ["max.message.bytes", "message.timestamp.after.max.ms"] {
        integer(name, &set, &broker);
    }
}
