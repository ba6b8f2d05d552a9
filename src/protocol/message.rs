//! `message!`: one table per struct gives the struct, its defaults, its decoder and its encoder.
//!
//! ```text
//! field: Type [versions]                      the field exists in these versions
//! field: Type [versions] = default            value when absent (otherwise Default::default());
//!                                             it is Kafka's: for an Option mostly Some(empty)
//! field: Type [versions, tag 0]               a tagged field of the flexible versions; those of a struct
//!                                             stand in the order of their numbers
//! field: Option<Type> [versions, null 1..]    null is only legal in these versions; in the others it
//!                                             is written as the empty value
//! ```

macro_rules! message {
    ($(
        $(#[$doc:meta])*
        $name:ident {$(
            $(#[$field_doc:meta])*
            $field:ident: $ty:ty [$versions:expr $(, tag $tag:literal)? $(, null $null:expr)?] $(= $default:expr)?
        ),* $(,)?}
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {$(
            $(#[$field_doc])*
            pub $field: $ty,
        )*}

        impl Default for $name {
            fn default() -> Self {
                Self {$( $field: $crate::protocol::message::default!($($default)?), )*}
            }
        }

        #[allow(unused_variables, unused_mut)]
        impl $crate::protocol::wire::Wire for $name {
            fn read(r: &mut $crate::protocol::wire::Reader) -> $crate::protocol::wire::Result<Self> {
                $( let mut $field: $ty = $crate::protocol::message::read_plain!(
                    [$($tag)?] r, $versions, [$($null)?], [$($default)?]); )*
                r.tagged(|tag, r| {
                    match tag {
                        $($( $tag if ($versions).contains(&r.version) => $field = $crate::protocol::wire::Wire::read_tagged(r)?, )?)*
                        _ => {}
                    }
                    Ok(())
                })?;
                Ok(Self { $($field),* })
            }

            #[cfg(test)]
            fn sample() -> Self {
                Self { $( $field: $crate::protocol::wire::Wire::sample(), )* }
            }

            fn write(&self, w: &mut $crate::protocol::wire::Writer) {
                $( $crate::protocol::message::write_plain!([$($tag)?] w, self.$field, $versions, [$($null)?]); )*
                if w.flexible {
                    // Those at their default are left out.
                    $( let $field = $crate::protocol::message::is_tagged!([$($tag)?] w, self.$field, $ty, $versions, [$($default)?]); )*
                    w.uvarint(0 $( + u32::from($field) )*);
                    $( $crate::protocol::message::write_tagged!([$($tag)?] w, self.$field, $field); )*
                }
            }
        }
    )*};
}

macro_rules! default {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

macro_rules! read_plain {
    ([] $r:ident, $versions:expr, [], [$($default:expr)?]) => {
        if ($versions).contains(&$r.version) {
            $crate::protocol::wire::Wire::read($r)?
        } else {
            $crate::protocol::message::default!($($default)?)
        }
    };
    ([] $r:ident, $versions:expr, [$null:expr], [$($default:expr)?]) => {
        if ($versions).contains(&$r.version) {
            $r.option(($null).contains(&$r.version))?
        } else {
            $crate::protocol::message::default!($($default)?)
        }
    };
    ([$tag:literal] $r:ident, $versions:expr, [$($null:expr)?], [$($default:expr)?]) => {
        $crate::protocol::message::default!($($default)?)
    };
}

macro_rules! write_plain {
    ([] $w:ident, $place:expr, $versions:expr, []) => {
        if ($versions).contains(&$w.version) {
            $crate::protocol::wire::Wire::write(&$place, $w);
        }
    };
    ([] $w:ident, $place:expr, $versions:expr, [$null:expr]) => {
        if ($versions).contains(&$w.version) {
            $w.option(&$place, ($null).contains(&$w.version));
        }
    };
    ([$tag:literal] $($rest:tt)*) => {};
}

macro_rules! is_tagged {
    ([] $($rest:tt)*) => {
        false
    };
    ([$tag:literal] $w:ident, $place:expr, $ty:ty, $versions:expr, [$($default:expr)?]) => {{
        let default: $ty = $crate::protocol::message::default!($($default)?);
        ($versions).contains(&$w.version) && $place != default
    }};
}

macro_rules! write_tagged {
    ([] $($rest:tt)*) => {};
    ([$tag:literal] $w:ident, $place:expr, $is_tagged:ident) => {
        if $is_tagged {
            $w.tagged($tag, &$place);
        }
    };
}

pub(crate) use {default, is_tagged, message, read_plain, write_plain, write_tagged};

#[cfg(test)]
mod tests {
    use crate::protocol::wire::{Reader, Str, Wire, WireError, Writer};
    use bytes::Bytes;

    #[expect(unreachable_pub, reason = "tables are for all rooms, and this one is not")]
    mod table {
        use super::*;

        message! {
            Sample {
                name: Option<Str>  [0.., null 1..],
                blob: Bytes        [0.., tag 0],
            }
            Holder {
                inner: Option<Sample>  [0.., tag 0] = Some(Sample::default()),
            }
        }
    }
    use table::{Holder, Sample};

    fn encode(sample: &Sample, version: i16, flexible: bool) -> Vec<u8> {
        let mut writer = Writer::new(version, flexible);
        sample.write(&mut writer);
        writer.finish().concat()
    }

    #[test]
    fn a_null_that_a_version_forbids_is_written_as_the_empty_value() {
        let sample = Sample { name: None, blob: Bytes::new() };
        assert_eq!(encode(&sample, 0, false), [0, 0]);
        assert_eq!(encode(&sample, 1, false), [0xff, 0xff]);
    }

    #[test]
    fn a_null_that_a_version_forbids_is_refused() {
        let read = |version| Sample::read(&mut Reader::new([0xff; 2][..].into(), version, false));
        assert_eq!(read(0), Err(WireError::NullNotAllowed));
        assert_eq!(read(1).map(|sample| sample.name), Ok(None));
    }

    #[test]
    fn a_tagged_field_may_be_longer_than_what_is_copied() {
        let sample = Sample { name: Some("a".into()), blob: vec![7; 2000].into() };
        let bytes = encode(&sample, 0, true);
        // The text, one tag: number 0 with 2002 bytes, which are the length 2000 and the blob.
        assert_eq!(bytes[..7], [2, b'a', 1, 0, 0xd2, 0x0f, 0xd1]);
        assert_eq!(bytes.len(), 8 + 2000);
        assert_eq!(Sample::read(&mut Reader::new(bytes.into(), 0, true)), Ok(sample));
    }

    #[test]
    fn the_length_of_a_tagged_field_may_take_more_than_a_byte() {
        // The blob with its own length in front: what has 127 bytes is the longest with one byte.
        for (blob, length) in [(126, vec![0x7f]), (127, vec![0x81, 0x01]), (900, vec![0x86, 0x07])]
        {
            let sample = Sample { name: Some("a".into()), blob: vec![7; blob].into() };
            let bytes = encode(&sample, 0, true);
            assert_eq!(bytes[..4], [2, b'a', 1, 0]);
            assert_eq!(bytes[4..4 + length.len()], length, "{blob}");
            assert_eq!(Sample::read(&mut Reader::new(bytes.into(), 0, true)), Ok(sample));
        }
    }

    #[test]
    fn null_that_is_not_the_default_of_a_tagged_struct_is_a_zero() {
        let holder = Holder { inner: None };
        let mut writer = Writer::new(0, true);
        holder.write(&mut writer);
        let bytes = writer.finish().concat();
        // One tag: number 0 with one byte.
        assert_eq!(bytes, [1, 0, 1, 0]);
        assert_eq!(Holder::read(&mut Reader::new(bytes.into(), 0, true)), Ok(holder));
    }

    #[test]
    fn a_string_has_at_most_32767_bytes_in_every_version() {
        let read = |len: usize| {
            let sample = Sample { name: Some("a".repeat(len).into()), blob: Bytes::new() };
            let bytes = encode(&sample, 0, true);
            Sample::read(&mut Reader::new(bytes.into(), 0, true)).map(drop)
        };
        assert_eq!(read(32767), Ok(()));
        assert_eq!(read(32768), Err(WireError::BadLength));
    }
}
