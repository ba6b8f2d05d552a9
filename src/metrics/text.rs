//! The text format of Prometheus, version 0.0.4.

use super::instrument::{BOUNDS_NS, Shown};
use super::names::{self, Family, Kind};
use std::fmt::{Display, Write};

/// How many series a family may have. Groups, topics and clients come as they like.
pub const MAX_SERIES: usize = 10_000;

/// A page of metrics, as it is written.
#[derive(Debug, Default)]
pub struct Text {
    page: String,
    written: Vec<&'static str>,
    left_out: Vec<(&'static str, u64)>,
}

/// A family as its series are written. Its first one brings the lines that say what it is.
pub struct Series<'a> {
    text: &'a mut Text,
    family: &'static Family,
    count: usize,
}

impl Text {
    /// Begins a family: once, as all its series stand together.
    pub fn family(&mut self, family: &'static Family) -> Series<'_> {
        debug_assert!(!self.written.contains(&family.name), "{} comes twice", family.name);
        self.written.push(family.name);
        Series { text: self, family, count: 0 }
    }

    /// A family of one series without labels.
    pub fn single(&mut self, family: &'static Family, value: impl Display) {
        self.family(family).add(&[], value);
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        let left_out = std::mem::take(&mut self.left_out);
        let mut series = self.family(&names::LEFT_OUT);
        left_out.iter().for_each(|(name, count)| series.add(&[name], count));
        self.page
    }

    fn labels(&mut self, names: &[&str], values: &[&dyn Display], bound: Option<&str>) {
        let values = names.iter().zip(values).map(|(name, value)| (*name, value.to_string()));
        let bound = bound.map(|bound| ("le", bound.to_string()));
        let mut before = '{';
        for (name, value) in values.chain(bound) {
            self.page.push(before);
            self.page.push_str(name);
            self.page.push_str("=\"");
            escape(&mut self.page, &value);
            self.page.push('"');
            before = ',';
        }
        if before == ',' {
            self.page.push('}');
        }
    }

    fn value(&mut self, value: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.page, " {value}");
    }
}

impl Series<'_> {
    /// Adds a series: a value for each label, in the family's order.
    pub fn add(&mut self, labels: &[&dyn Display], value: impl Display) {
        if self.begin(labels) {
            self.text.page.push_str(self.family.name);
            self.text.labels(self.family.labels, labels, None);
            self.text.value(value);
        }
    }

    /// Adds a histogram. Its times are told in the unit that the name says.
    pub fn add_times(&mut self, labels: &[&dyn Display], times: &Shown) {
        if !self.begin(labels) {
            return;
        }
        let Family { name, kind, labels: names, .. } = self.family;
        let unit_ns = match kind {
            Kind::HistogramMs => 1e6,
            _ => 1e9,
        };
        let text = &mut *self.text;
        let mut count = 0;
        let bounds = BOUNDS_NS.iter().map(|bound| (*bound as f64 / unit_ns).to_string());
        for (bound, bucket) in bounds.chain(["+Inf".to_string()]).zip(times.buckets) {
            count += bucket;
            text.page.push_str(name);
            text.page.push_str("_bucket");
            text.labels(names, labels, Some(&bound));
            text.value(count);
        }
        for (suffix, value) in
            [("_sum", times.sum_ns as f64 / unit_ns), ("_count", times.count() as f64)]
        {
            text.page.push_str(name);
            text.page.push_str(suffix);
            text.labels(names, labels, None);
            text.value(value);
        }
    }

    /// Says that there are so many more series, which were not even looked at.
    pub fn leave_out(&mut self, count: usize) {
        let name = self.family.name;
        let count = count as u64;
        match self.text.left_out.last_mut() {
            Some((last, left_out)) if *last == name => *left_out += count,
            _ if count > 0 => self.text.left_out.push((name, count)),
            _ => {}
        }
    }

    /// False if there is no room for one more series.
    fn begin(&mut self, labels: &[&dyn Display]) -> bool {
        let Family { name, kind, help, labels: names } = self.family;
        debug_assert_eq!(labels.len(), names.len(), "the labels of {name}");
        if self.count == MAX_SERIES {
            self.leave_out(1);
            return false;
        }
        if self.count == 0 {
            let kind = kind.name();
            let _ = writeln!(self.text.page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
        self.count += 1;
        true
    }
}

/// A label's value may have all characters, but these not as they are.
fn escape(page: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => page.push_str("\\\\"),
            '"' => page.push_str("\\\""),
            '\n' => page.push_str("\\n"),
            // What is read as a C string shall not end in the middle.
            '\0' => page.push(char::REPLACEMENT_CHARACTER),
            c => page.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Histogram;
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_page_is_as_the_format_says() {
        let mut text = Text::default();
        text.single(&names::REQUEST_MEMORY_USED, 7);
        text.family(&names::CACHE_HITS);
        let mut series = text.family(&names::LAG);
        series.add(&[&"a\\b", &"say \"hi\"", &0], 5);
        series.add(&[&"a\nb", &"é", &1], 6);
        let page = text.finish();
        let memory = "kafka_network_socketserver_memorypoolused";
        assert!(page.starts_with(&format!("# HELP {memory} ")), "{page}");
        assert!(page.contains(&format!("\n# TYPE {memory} gauge\n{memory} 7\n# HELP")), "{page}");
        assert!(page.ends_with(concat!(
            "\n# TYPE kafka_consumergroup_lag gauge\n",
            "kafka_consumergroup_lag{consumergroup=\"a\\\\b\",topic=\"say \\\"hi\\\"\",partition=\"0\"} 5\n",
            "kafka_consumergroup_lag{consumergroup=\"a\\nb\",topic=\"é\",partition=\"1\"} 6\n",
        )), "{page}");
        assert!(!page.contains(names::CACHE_HITS.name), "a family without series is not there");
    }

    #[test]
    fn a_histogram_has_buckets_that_add_up_in_the_unit_of_its_name() {
        let histogram = Histogram::default();
        for ms in [2, 2, 60_000] {
            histogram.observe(Duration::from_millis(ms));
        }
        let mut text = Text::default();
        text.family(&names::REQUEST_TIME).add_times(&[&"Fetch"], &histogram.show());
        text.family(&names::COMMIT_TIME).add_times(&[], &histogram.show());
        let page = text.finish();
        for line in [
            "kafka_network_requestmetrics_totaltimems_bucket{request=\"Fetch\",le=\"0.1\"} 0",
            "kafka_network_requestmetrics_totaltimems_bucket{request=\"Fetch\",le=\"2.5\"} 2",
            "kafka_network_requestmetrics_totaltimems_bucket{request=\"Fetch\",le=\"30000\"} 2",
            "kafka_network_requestmetrics_totaltimems_bucket{request=\"Fetch\",le=\"+Inf\"} 3",
            "kafka_network_requestmetrics_totaltimems_sum{request=\"Fetch\"} 60004",
            "kafka_network_requestmetrics_totaltimems_count{request=\"Fetch\"} 3",
            "kelp_journal_commit_seconds_bucket{le=\"0.00025\"} 0",
            "kelp_journal_commit_seconds_bucket{le=\"0.0025\"} 2",
            "kelp_journal_commit_seconds_sum 60.004",
            "kelp_journal_commit_seconds_count 3",
        ] {
            assert!(page.lines().any(|have| have == line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn series_beyond_the_limit_are_counted() {
        let mut text = Text::default();
        let mut series = text.family(&names::LAG);
        (0..MAX_SERIES + 3).for_each(|n| series.add(&[&"g", &"t", &n], 0));
        let page = text.finish();
        assert_eq!(page.matches("\nkafka_consumergroup_lag{").count(), MAX_SERIES);
        assert!(page.ends_with("kelp_metrics_left_out{family=\"kafka_consumergroup_lag\"} 3\n"));
    }
}
