//! `docs/configs.md` lists every config of topics and every property of the broker, with what Kelp
//! makes of it: it is made from the tables, and this test compares. `make configs` writes it anew.

use kelp::config::Config;
use kelp::config::definition::{Allowed, Type};
use kelp::config::server::Property;
use kelp::config::topic::{Preset, Support, TOPIC_CONFIGS, TopicConfig};
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configs.md");

const HEAD: &str = "# Settings

This page is made from the tables in `src/config/` by `make configs`; a test compares the two. Names, types, defaults and valid values
are those of Apache Kafka 4.4, but for what begins with `kelp.` or `host.`, and for the defaults that are said to be other ones.

";

const TOPICS: &str = "## Configs of topics

They are set when a topic is created, by `kafka-configs --entity-type topics`, or by a client's admin API. What a topic does not set it has
from the broker's property that stands in the column of defaults. What a topic has is told by DescribeConfigs.

- **obeyed**: every valid value does what it says.
- **no effect**: every valid value is accepted, kept and told, so that tools that set it work. Why nothing is lost by that is said.
- **fixed**: only the default can be set; another value gets INVALID_CONFIG with the reason.

| name | type | default | valid values | in Kelp | what it is |
| --- | --- | --- | --- | --- | --- |
";

const BROKER: &str = "
## Properties of the broker

They are given at the start: in `kelp_config` as text, `NAME=VALUE` a line, or with `kelp serve --config FILE` and `--set NAME=VALUE`. An unknown one is an
error. Those marked **dynamic** can also be changed while the broker runs, for this broker or for all, by `kafka-configs --entity-type brokers`; that is
kept and outlives the broker. To change another one so gets INVALID_REQUEST.

| name | type | default | valid values | in Kelp | what it is |
| --- | --- | --- | --- | --- | --- |
";

#[test]
fn the_page_of_settings_is_made_from_the_tables() {
    let page = page();
    if std::env::var_os("KELP_WRITE_PAGES").is_some() {
        std::fs::write(PAGE, page).expect("the page can be written");
        return;
    }
    let written = std::fs::read_to_string(PAGE).expect("the page is there");
    assert!(written == page, "docs/configs.md is not what the tables say: make configs");
}

fn page() -> String {
    let mut page = format!("{HEAD}{TOPICS}");
    TOPIC_CONFIGS.iter().for_each(|config| topic_row(&mut page, config));
    page.push_str(BROKER);
    let mut properties: Vec<_> = Property::all().collect();
    properties.sort_by_key(|property| property.name);
    properties.into_iter().for_each(|property| property_row(&mut page, property));
    page
}

fn topic_row(page: &mut String, config: &TopicConfig) {
    let value = value(&config.default(&Config::default()));
    let default = match config.default {
        Preset::Property(name) => format!("{value} (`{name}`)"),
        Preset::Value(_) => value,
    };
    let support = match config.support {
        Support::Obeyed => "obeyed".to_string(),
        Support::Hint(why) => format!("no effect: {why}"),
        Support::Fixed(why) => format!("fixed: {why}"),
    };
    row(page, config.name, config.kind, &default, config.allowed, &support, config.documentation);
}

fn property_row(page: &mut String, property: &Property) {
    let default = match (property.name, (property.default)()) {
        ("num.io.threads", _) => "the number of processors".to_string(),
        (_, Some(default)) => value(&default),
        (_, None) => "not set".to_string(),
    };
    let dynamic = if property.is_dynamic { ", **dynamic**" } else { "" };
    let support = match property.no_effect {
        Some(why) => format!("no effect{dynamic}: {why}"),
        None => format!("obeyed{dynamic}"),
    };
    let documentation = property.documentation.trim();
    row(page, property.name, property.kind, &default, property.allowed, &support, documentation);
}

fn value(value: &str) -> String {
    if value.is_empty() { "empty".to_string() } else { format!("`{value}`") }
}

fn row(
    page: &mut String,
    name: &str,
    kind: Type,
    default: &str,
    allowed: Allowed,
    support: &str,
    documentation: &str,
) {
    let allowed = match kind {
        Type::Boolean if matches!(allowed, Allowed::Any) => "true or false".to_string(),
        _ => allowed.to_string(),
    };
    let line =
        format!("| `{name}` | {kind} | {default} | {allowed} | {support} | {documentation} |");
    writeln!(page, "{line}").expect("a text takes all");
}
