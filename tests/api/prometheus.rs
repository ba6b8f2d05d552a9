//! A strict reader of Prometheus' text format, version 0.0.4, written from its specification.
//!
//! It wants what `promtool check metrics` wants: a name and a type before the series of each family,
//! all series of a family together and none twice, and histograms that add up.

use std::collections::{BTreeMap, BTreeSet};

/// The series of a page: name and labels as they stand there, and the value.
pub(crate) struct Page(BTreeMap<String, f64>);

impl Page {
    /// Reads a page; panics with what is wrong with it.
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut all = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let (name, help) = line.strip_prefix("# HELP ").unwrap().split_once(' ').unwrap();
            assert!(is_name(name) && !help.is_empty(), "{line}");
            assert!(seen.insert(name), "{name} comes twice");
            let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{name} is a {kind}");
            let mut family = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                let series = Series::read(line);
                let suffix = series.name.strip_prefix(name).expect(line);
                let allowed: &[&str] = match kind {
                    "histogram" => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                assert!(allowed.contains(&suffix), "{line} in the family {name}");
                assert!(all.insert(series.key(), series.value).is_none(), "{line} comes twice");
                assert!(kind == "gauge" || series.value >= 0.0, "{line}");
                family.push(series);
            }
            assert!(!family.is_empty(), "{name} has no series");
            if kind == "histogram" {
                check_histogram(name, &family);
            }
        }
        Self(all)
    }

    pub(crate) fn get(&self, series: &str) -> Option<f64> {
        self.0.get(series).copied()
    }

    /// The series of a family, without its name.
    pub(crate) fn family(&self, name: &str) -> Vec<(&str, f64)> {
        let series =
            self.0.iter().filter_map(|(key, value)| Some((key.strip_prefix(name)?, *value)));
        series.filter(|(rest, _)| rest.is_empty() || rest.starts_with('{')).collect()
    }
}

struct Series {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Series {
    fn read(line: &str) -> Self {
        let end = line.find(['{', ' ']).expect(line);
        let (name, mut rest) = line.split_at(end);
        assert!(is_name(name), "{line}");
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            loop {
                let (label, behind) = rest.split_once("=\"").expect(line);
                assert!(is_name(label), "{line}");
                let (value, behind) = unquote(behind).expect(line);
                labels.push((label.to_string(), value));
                rest = &behind[1..];
                match &behind[..1] {
                    "," => {}
                    "}" => break,
                    other => panic!("{other} in {line}"),
                }
            }
        }
        let value = rest.strip_prefix(' ').expect(line).parse().expect(line);
        Self { name: name.to_string(), labels, value }
    }

    fn key(&self) -> String {
        let labels = self.labels.iter().map(|(label, value)| format!("{label}={value}"));
        match self.labels.is_empty() {
            true => self.name.clone(),
            false => format!("{}{{{}}}", self.name, labels.collect::<Vec<_>>().join(",")),
        }
    }

    fn without_bound(&self) -> Vec<(String, String)> {
        self.labels.iter().filter(|(label, _)| label != "le").cloned().collect()
    }
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A value up to its closing quote, and what is behind that.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

/// For each set of labels: buckets with rising bounds and counts up to `+Inf`, then the sum, then
/// the count, which is the last bucket's.
fn check_histogram(name: &str, family: &[Series]) {
    let mut series = family.iter().peekable();
    while let Some(first) = series.peek() {
        let labels = first.without_bound();
        let (mut bound, mut count) = (f64::NEG_INFINITY, 0.0);
        while let Some(bucket) = series.next_if(|next| next.name.ends_with("_bucket")) {
            assert_eq!(bucket.without_bound(), labels, "{name}");
            let (label, le) = bucket.labels.last().unwrap();
            assert_eq!(label, "le");
            let le: f64 = le.parse().unwrap();
            assert!(le > bound && bucket.value >= count, "{name} {labels:?} at {le}");
            (bound, count) = (le, bucket.value);
        }
        assert_eq!(bound, f64::INFINITY, "{name} {labels:?}");
        for suffix in ["_sum", "_count"] {
            let one = series.next().unwrap();
            assert_eq!((&one.name, &one.labels), (&format!("{name}{suffix}"), &labels));
            assert!(suffix == "_sum" || one.value == count, "{name} {labels:?}");
        }
    }
}
