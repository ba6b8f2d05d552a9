//! `message!`: one table per struct gives the struct, its defaults, its decoder and its encoder.
//!
//! ```text
//! field: Type [versions]                      the field exists in these versions
//! field: Type [versions] = default            value when absent (otherwise Default::default())
//! field: Type [versions, tag 0]               a tagged field of the flexible versions
//! field: Option<Type> [versions, null 1..]    null is only legal in these versions
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
                        $($( $tag if ($versions).contains(&r.version) => $field = $crate::protocol::wire::Wire::read(r)?, )?)*
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
                $( $crate::protocol::message::write_plain!([$($tag)?] w, self.$field, $versions); )*
                if w.flexible {
                    let mut tagged = $crate::protocol::wire::Tagged::new(w.version);
                    $( $crate::protocol::message::write_tagged!([$($tag)?] tagged, self.$field, $versions, [$($default)?]); )*
                    tagged.write(w);
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
    ([] $r:ident, $versions:expr, [$null:expr], [$($default:expr)?]) => {{
        let value = $crate::protocol::message::read_plain!([] $r, $versions, [], [$($default)?]);
        $r.refuse_null(&value, ($versions).contains(&$r.version) && !($null).contains(&$r.version))?;
        value
    }};
    ([$tag:literal] $r:ident, $versions:expr, [$($null:expr)?], [$($default:expr)?]) => {
        $crate::protocol::message::default!($($default)?)
    };
}

macro_rules! write_plain {
    ([] $w:ident, $place:expr, $versions:expr) => {
        if ($versions).contains(&$w.version) {
            $crate::protocol::wire::Wire::write(&$place, $w);
        }
    };
    ([$tag:literal] $($rest:tt)*) => {};
}

macro_rules! write_tagged {
    ([] $($rest:tt)*) => {};
    ([$tag:literal] $tagged:ident, $place:expr, $versions:expr, [$($default:expr)?]) => {
        if ($versions).contains(&$tagged.version()) {
            $tagged.field($tag, &$place, $crate::protocol::message::default!($($default)?));
        }
    };
}

pub(crate) use {default, message, read_plain, write_plain, write_tagged};
