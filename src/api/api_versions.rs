//! ApiVersions: what this broker speaks.
//!
//! The list is the one that dispatch serves from. A version that is not spoken is answered by
//! dispatch, as version 0 (KIP-511).

use super::{Context, Software};
use crate::messages::api_versions::{ApiVersion, Request, Response};
use crate::protocol::api_key::ApiKey;
use crate::protocol::error_code::ErrorCode;

/// From this version on, clients say who they are.
const SOFTWARE_SINCE: i16 = 3;

const NO_NODE: i32 = -1;

pub async fn handle(cx: &Context, request: Request) -> Response {
    if cx.api_version >= SOFTWARE_SINCE {
        let name = request.client_software_name;
        let version = request.client_software_version;
        if !is_plain(&name) || !is_plain(&version) {
            return Response { error_code: ErrorCode::InvalidRequest, ..Response::default() };
        }
        cx.connection.set_software(Software { name, version });
    }
    if let Err(error_code) = check_broker(cx, request.cluster_id.as_deref(), request.node_id) {
        return Response { error_code, ..Response::default() };
    }
    let offered = ApiKey::SERVED.iter().filter(|api| cx.broker.offers(**api));
    let api_keys = offered.map(|api| offer(*api)).collect();
    Response { api_keys, ..Response::default() }
}

/// From version 5 on a client may say whom it believes to talk to, and starts anew if that is
/// somebody else.
fn check_broker(cx: &Context, cluster_id: Option<&str>, node_id: i32) -> Result<(), ErrorCode> {
    match (cluster_id, node_id) {
        (None, NO_NODE) => Ok(()),
        (None, _) | (_, NO_NODE) => Err(ErrorCode::InvalidRequest),
        (Some(cluster_id), node_id) => {
            let broker = &cx.broker;
            let is_us =
                cluster_id == broker.storage.cluster_id() && node_id == broker.config.node_id;
            if is_us { Ok(()) } else { Err(ErrorCode::RebootstrapRequired) }
        }
    }
}

/// The answer to a version that is not spoken: the versions of ApiVersions, so that the client
/// can ask again.
pub fn unsupported() -> Response {
    Response {
        error_code: ErrorCode::UnsupportedVersion,
        api_keys: vec![offer(ApiKey::ApiVersions)],
        ..Response::default()
    }
}

fn offer(api: ApiKey) -> ApiVersion {
    let versions = api.versions();
    ApiVersion { api_key: api.code(), min_version: *versions.start(), max_version: *versions.end() }
}

/// Kafka's pattern for software names and versions: `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`.
fn is_plain(text: &str) -> bool {
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_begin_and_end_with_a_letter_or_digit() {
        for name in ["a", "apache-kafka-java", "4.4.0", "v1.2-rc.1"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", "-a", "a-", ".", "a b", "a_b", "naïve"] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
