//! `docs/status.md` says what is served: it must not say more, nor less.

use kelp::protocol::api_key::ApiKey;

#[test]
fn the_status_page_lists_the_apis_that_are_served_with_their_versions() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/status.md"));
    let page = page.expect("the page is there");
    let listed: Vec<_> = page
        .lines()
        .filter_map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let key: i16 = cells.get(1)?.parse().ok()?;
            Some(format!("{key} {} {}", cells.get(2)?, cells.get(3)?))
        })
        .collect();
    let served: Vec<_> = ApiKey::SERVED
        .iter()
        .map(|api| {
            let versions = api.versions();
            format!("{} {api:?} {}–{}", api.code(), versions.start(), versions.end())
        })
        .collect();
    assert_eq!(listed, served);
}
