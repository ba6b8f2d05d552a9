//! What is asked of a filer before records are kept on it.

use super::{ObjectError, Result, Shared, error};
use serde_json::Value;

/// Where the filer keeps its rules for paths: `fs.configure` of `weed shell`.
const RULES: &str = "/etc/seaweedfs/filer.conf";

impl Shared {
    /// Waits for a filer, and refuses one under whose rules records would disappear, or could not be deleted.
    pub(super) async fn check(&self) -> Result<()> {
        let rules = loop {
            match tokio::time::timeout(self.timeout, self.rules()).await {
                Ok(rules) => break rules?,
                Err(_) => tracing::info!("no filer answers; it is waited for"),
            }
        };
        let configurations = self.calls.configurations().await?;
        if let Some((filer, _)) = configurations.iter().find(|(_, filer)| filer.cipher) {
            let text = "encrypts volume data (-encryptVolumeData), which Kelp cannot do yet";
            return Err(ObjectError(format!("the filer at {filer} {text}")));
        }
        let mut signatures = configurations.iter().map(|(_, filer)| filer.signature);
        let first = signatures.next();
        if signatures.any(|other| Some(other) != first) {
            tracing::error!(
                "the filers have stores of their own, which copy to each other only later: when one is lost, \
                 acknowledged records can be lost, and two brokers cannot fence each other. Use one filer, or one \
                 shared store"
            );
        } else if configurations.len() > 1 {
            tracing::warn!(
                "several filers share one store: it must read what was written, and a filer must not stall longer \
                 than 5 s in a write"
            );
        }
        self.obey(&Rule::of(&rules, &format!("{}/journal/", self.directory)))
    }

    async fn rules(&self) -> Result<Value> {
        let Some((entry, found)) = self.find(RULES).await? else { return Ok(Value::Null) };
        let text = self.read(&entry, &found, 0, u64::MAX).await?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&text).map_err(|e| ObjectError(format!("{RULES}: {e}")))
    }

    fn obey(&self, rule: &Rule) -> Result<()> {
        if !rule.ttl.is_empty() {
            return Err(error(
                "a rule of the filer's deletes records after a time: remove its -ttl",
            ));
        }
        if rule.worm {
            return Err(error("a rule of the filer's forbids to delete (-worm), which Kelp must"));
        }
        if rule.read_only {
            tracing::warn!("a rule of the filer's is read-only: nothing can be produced");
        }
        let replication = match rule.replication.as_str() {
            "" => "the cluster's default",
            replication => replication,
        };
        let directory = &self.directory;
        let fsync = rule.fsync;
        tracing::info!(
            "records are kept below {directory}; fsync: {fsync}, replication: {replication}"
        );
        Ok(())
    }
}

/// The filer's rule for a path: of all whose prefix it has, the longer ones win.
#[derive(Debug, Default, PartialEq)]
struct Rule {
    ttl: String,
    replication: String,
    fsync: bool,
    worm: bool,
    read_only: bool,
}

impl Rule {
    fn of(rules: &Value, path: &str) -> Self {
        let version = rules["version"].as_i64().unwrap_or_default();
        let mut matching: Vec<(&str, &Value)> = Vec::new();
        for rule in rules["locations"].as_array().into_iter().flatten() {
            let prefix =
                field(rule, "locationPrefix", "location_prefix").as_str().unwrap_or_default();
            if path.starts_with(prefix) {
                matching.push((prefix, rule));
            }
        }
        matching.sort_by_key(|(prefix, _)| prefix.len());
        let mut merged = Self::default();
        for (_, rule) in matching {
            for (into, name) in [(&mut merged.ttl, "ttl"), (&mut merged.replication, "replication")]
            {
                if let Some(text) = rule[name].as_str().filter(|text| !text.is_empty()) {
                    text.clone_into(into);
                }
            }
            // False was how older versions wrote that a rule says nothing.
            let said =
                |name: &str, since| rule[name].as_bool().filter(|yes| *yes || version >= since);
            merged.worm = said("worm", 1).unwrap_or(merged.worm);
            merged.fsync = said("fsync", 2).unwrap_or(merged.fsync);
            merged.read_only |= field(rule, "readOnly", "read_only").as_bool().unwrap_or_default();
        }
        merged
    }
}

/// Protobuf's JSON has two names for a field.
fn field<'a>(value: &'a Value, name: &str, other: &str) -> &'a Value {
    value.get(name).unwrap_or(&value[other])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rules: &str) -> Rule {
        Rule::of(&serde_json::from_str(rules).unwrap(), "/kelp/journal/")
    }

    #[test]
    fn the_longest_prefix_wins_and_others_do_not_count() {
        let rules = r#"{"version": 2, "locations": [
            {"locationPrefix": "/kelp/journal/", "fsync": false, "ttl": ""},
            {"location_prefix": "/kelp", "replication": "001", "fsync": true, "ttl": "7d", "read_only": true},
            {"locationPrefix": "/", "replication": "000", "worm": true},
            {"locationPrefix": "/kelp/segment/", "replication": "010"}]}"#;
        let expected = Rule {
            ttl: "7d".into(),
            replication: "001".into(),
            fsync: false,
            worm: true,
            read_only: true,
        };
        assert_eq!(rule(rules), expected);
    }

    #[test]
    fn false_says_nothing_in_older_versions() {
        let rules = |version| {
            rule(&format!(
                r#"{{"version": {version}, "locations": [
                    {{"locationPrefix": "/kelp/", "fsync": true, "worm": true}},
                    {{"locationPrefix": "/kelp/journal", "fsync": false, "worm": false}}]}}"#
            ))
        };
        assert!(rules(0).fsync && rules(0).worm);
        assert!(rules(1).fsync && !rules(1).worm);
        assert!(!rules(2).fsync && !rules(2).worm);
        assert_eq!(rule("{}"), Rule::default());
        assert_eq!(Rule::of(&Value::Null, "/"), Rule::default());
    }
}
