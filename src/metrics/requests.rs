//! Requests by API: how many, how long, with which errors.

use super::instrument::{Parts, Shown, Times};
use super::names;
use super::text::Text;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// More versions than any API has.
const MAX_VERSIONS: usize = 24;

/// More error codes than Kafka has. The smallest is -1.
const MAX_CODES: usize = 160;
const SMALLEST_CODE: i16 = -1;
const NONE: i16 = 0;

/// The requests of all APIs.
#[derive(Debug, Default)]
pub struct Requests {
    apis: Vec<Api>,
    /// Of each API's number its place among `apis`.
    places: Vec<Option<usize>>,
    parts: Parts<Box<[Part]>>,
}

#[derive(Debug)]
struct Api {
    name: String,
    /// By code. Errors are not what a broker does all day: there is one count for all threads.
    errors: Box<[AtomicU64]>,
}

/// What a part has of one API.
#[derive(Debug, Default)]
struct Part {
    /// Requests that came, by version.
    came: [AtomicU64; MAX_VERSIONS],
    /// Codes in answers that say that there is no error.
    fine: AtomicU64,
    times: Times,
    /// Requests that were not answered: their clients went away.
    dropped: AtomicU64,
}

/// A request that is under way. It is ended, or given up.
#[derive(Debug)]
pub struct Begun {
    place: Option<usize>,
    at: Instant,
}

impl Requests {
    /// APIs by their numbers, names and last versions.
    pub(super) fn new(apis: impl IntoIterator<Item = (i16, String, i16)>) -> Self {
        let mut requests = Self::default();
        for (code, name, last_version) in apis {
            assert!((last_version as usize) < MAX_VERSIONS, "the versions of {name}");
            let code = code as usize;
            requests.places.resize(requests.places.len().max(code + 1), None);
            requests.places[code] = Some(requests.apis.len());
            let errors = (0..MAX_CODES).map(|_| AtomicU64::new(0)).collect();
            requests.apis.push(Api { name, errors });
        }
        let count = requests.apis.len();
        requests.parts = Parts::new(|| (0..count).map(|_| Part::default()).collect());
        requests
    }

    /// A request came. One of an API that is not counted is none.
    #[inline]
    pub fn begin(&self, api: i16, version: i16) -> Begun {
        let place = usize::try_from(api).ok().and_then(|api| *self.places.get(api)?);
        if let Some(place) = place {
            let version = usize::try_from(version).unwrap_or(0).min(MAX_VERSIONS - 1);
            self.parts.own()[place].came[version].fetch_add(1, Relaxed);
        }
        Begun { place, at: Instant::now() }
    }

    /// It has its answer, in which no error stood so often, and these errors.
    #[inline]
    pub fn end(&self, begun: Begun, fine: u64, errors: &[i16]) {
        let Some(place) = begun.place else { return };
        let part = &self.parts.own()[place];
        part.times.observe(begun.at.elapsed());
        part.fine.fetch_add(fine, Relaxed);
        for code in errors {
            let index = usize::try_from(code - SMALLEST_CODE).unwrap_or(0);
            // A code that is not known is -1, UNKNOWN_SERVER_ERROR.
            let errors = &self.apis[place].errors;
            errors.get(index).unwrap_or(&errors[0]).fetch_add(1, Relaxed);
        }
    }

    /// It will not be answered.
    pub fn give_up(&self, begun: Begun) {
        if let Some(place) = begun.place {
            self.parts.own()[place].dropped.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn write(&self, text: &mut Text, error_name: impl Fn(i16) -> String) {
        let seen = (0..self.apis.len()).map(|place| self.see(place));
        let seen: Vec<Seen> = seen.filter(|seen| seen.came.iter().any(|came| *came > 0)).collect();
        let mut series = text.family(&names::REQUESTS);
        for Seen { api, came, .. } in &seen {
            let came = came.iter().enumerate().filter(|(_, came)| **came > 0);
            came.for_each(|(version, came)| series.add(&[&api.name, &version], came));
        }
        let mut series = text.family(&names::REQUEST_ERRORS);
        for Seen { api, fine, .. } in &seen {
            let errors = api.errors.iter().map(|count| count.load(Relaxed));
            for (code, count) in (SMALLEST_CODE..).zip(errors) {
                let count = if code == NONE { *fine } else { count };
                if count > 0 {
                    series.add(&[&api.name, &error_name(code)], count);
                }
            }
        }
        let mut series = text.family(&names::REQUEST_TIME);
        seen.iter().for_each(|seen| series.add_times(&[&seen.api.name], &seen.times));
        let mut series = text.family(&names::IN_FLIGHT);
        for Seen { api, times, dropped, came, .. } in &seen {
            let ended = times.count() + dropped;
            series.add(&[&api.name], came.iter().sum::<u64>().saturating_sub(ended));
        }
    }

    fn see(&self, place: usize) -> Seen<'_> {
        let sum = |of: &dyn Fn(&Part) -> u64| self.parts.sum(|part| of(&part[place]));
        // In this order, as what ended after the first look came before the second.
        let times = Shown::of(&self.parts, |part| &part[place].times);
        let dropped = sum(&|part| part.dropped.load(Relaxed));
        let fine = sum(&|part| part.fine.load(Relaxed));
        let came = std::array::from_fn(|i| sum(&|part| part.came[i].load(Relaxed)));
        Seen { api: &self.apis[place], times, dropped, fine, came }
    }
}

/// What is told of one API.
struct Seen<'a> {
    api: &'a Api,
    times: Shown,
    dropped: u64,
    fine: u64,
    came: [u64; MAX_VERSIONS],
}

#[cfg(test)]
mod tests {
    use super::super::Text;
    use super::*;

    #[test]
    fn requests_are_counted_by_version_error_and_time_and_those_under_way_are_known() {
        let requests = Requests::new([(3, "Metadata".into(), 13), (1, "Fetch".into(), 18)]);
        let begun: Vec<_> = (0..4).map(|_| requests.begin(1, 18)).collect();
        let other = requests.begin(1, 4);
        for (begun, errors) in begun.into_iter().zip([&[6, 6, 1][..], &[], &[-1]]) {
            requests.end(begun, 2, errors);
        }
        requests.give_up(other);
        // Of an API that is not served nothing is told.
        requests.end(requests.begin(2, 0), 1, &[]);
        let mut text = Text::default();
        requests.write(&mut text, |code| format!("E{code}"));
        let page = text.finish();
        let lines: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        let of = |name: &str| -> Vec<&str> {
            let begin = format!("kafka_network_requestmetrics_{name}{{");
            lines.iter().filter_map(|line| line.strip_prefix(&*begin)).collect()
        };
        assert_eq!(
            of("requests_total"),
            ["request=\"Fetch\",version=\"4\"} 1", "request=\"Fetch\",version=\"18\"} 4"]
        );
        assert_eq!(
            of("errors_total"),
            [
                "request=\"Fetch\",error=\"E-1\"} 1",
                "request=\"Fetch\",error=\"E0\"} 6",
                "request=\"Fetch\",error=\"E1\"} 1",
                "request=\"Fetch\",error=\"E6\"} 2",
            ]
        );
        assert_eq!(of("totaltimems_count"), ["request=\"Fetch\"} 3"]);
        assert!(lines.contains(&"kelp_requests_in_flight{request=\"Fetch\"} 1"), "{page}");
    }
}
