//! The header before every request and response body.
//!
//! Request headers are version 1, or 2 before a flexible body; `client_id` keeps its 16-bit length
//! in both (KIP-482: a broker must read it before it knows whether it speaks the version).

use super::api_key::ApiKey;
use super::encoded::{Encoded, Spares};
use super::wire::{Codes, Reader, Result, Str, Wire, Writer};
use bytes::Bytes;

/// What comes before the body of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestHeader {
    /// The API's number: not yet known to be one that is spoken.
    pub api_key: i16,
    pub api_version: i16,
    pub correlation_id: i32,
    pub client_id: Option<Str>,
}

impl RequestHeader {
    /// Splits a frame into header and body. `flexible` tells whether a known API's version is.
    pub fn read(frame: Bytes) -> Result<(Self, Reader)> {
        let mut reader = Reader::new(frame, 0, false);
        let api_key = i16::read(&mut reader)?;
        let api_version = i16::read(&mut reader)?;
        let correlation_id = i32::read(&mut reader)?;
        let client_id = Option::<Str>::read(&mut reader)?;
        let api = ApiKey::from_code(api_key);
        reader.version = api_version;
        reader.flexible = api.is_some_and(|api| api.is_flexible(api_version));
        reader.tagged(|_, _| Ok(()))?;
        Ok((Self { api_key, api_version, correlation_id, client_id }, reader))
    }
}

/// An answer's frame: its length, the header, the body. And the error codes in it.
pub fn response<T: Wire>(
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    body: &T,
    spares: &Spares,
) -> (Encoded, Codes) {
    let flexible = api.is_flexible(version);
    let mut writer = Writer::into(spares.take(), version, flexible);
    // The length, which is known in the end.
    0i32.write(&mut writer);
    correlation_id.write(&mut writer);
    // KIP-511: a client that does not yet know our versions must be able to read the ApiVersions
    // answer, so its header never has tagged fields.
    if flexible && api != ApiKey::ApiVersions {
        writer.uvarint(0);
    }
    body.write(&mut writer);
    let (mut frame, codes) = writer.finish_with_codes();
    frame.overwrite((frame.len() as u32 - 4).to_be_bytes());
    (frame, codes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    #[test]
    fn a_flexible_request_header_has_a_short_client_id_and_tagged_fields() {
        // As librdkafka sends ApiVersions 3: key, version, correlation id, client id, no tags.
        let mut frame = BytesMut::new();
        frame.extend_from_slice(&[0, 18, 0, 3, 0, 0, 0, 1, 0, 7]);
        frame.extend_from_slice(b"rdkafka\x00rest");
        let (header, body) = RequestHeader::read(frame.freeze()).unwrap();
        assert_eq!((header.api_key, header.api_version, header.correlation_id), (18, 3, 1));
        assert_eq!(header.client_id.as_deref(), Some("rdkafka"));
        assert_eq!(body.rest(), b"rest");
        assert!(body.flexible);
    }
}
