//! What a setting is: its type, and which values it takes.
//!
//! Source: `org.apache.kafka.common.config.ConfigDef` of Apache Kafka 4.4. Values are trimmed
//! text; a list is separated by commas.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// The type of a value. The number is that of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum Type {
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

/// Where a value comes from. The number is that of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum Source {
    Topic = 1,
    /// Set of this broker while it ran.
    DynamicBroker = 2,
    /// Set of all brokers while they ran.
    DynamicDefault = 3,
    Broker = 4,
    Default = 5,
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Which values of the type are allowed.
#[derive(Clone, Copy, Debug)]
pub enum Allowed {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// A fraction between these two, both allowed.
    Fraction(f64, f64),
    OneOf(&'static [&'static str]),
    /// A list of these, which may be empty.
    ListOf(&'static [&'static str]),
    /// Between these two, or -1 for the codec's own level.
    Level(i64, i64),
    /// `partition:broker` pairs, or `*` for all (KIP-73).
    ThrottledReplicas,
}

/// For people.
impl Display for Allowed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => Ok(()),
            Self::AtLeast(least) => write!(f, "{least} or more"),
            Self::Between(least, most) => write!(f, "{least} to {most}"),
            Self::Fraction(least, most) => write!(f, "{least} to {most}"),
            Self::OneOf(names) => write!(f, "one of {}", names.join(", ")),
            Self::ListOf(names) => write!(f, "any of {}", names.join(", ")),
            Self::Level(least, most) => write!(f, "{least} to {most}, or -1"),
            Self::ThrottledReplicas => f.write_str("PARTITION:BROKER,…, or *"),
        }
    }
}

/// Why a value is refused. The text says it as Kafka does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    #[error("Invalid value {value} for configuration {name}: {reason}")]
    Value { name: String, value: String, reason: String },
    #[error("Configuration '{0}' values must not be empty.")]
    EmptyItem(String),
}

/// Checks `value` and gives it back as it is kept, and told: a number without zeros in front, a
/// list without spaces and repetitions.
pub fn check(
    name: &str,
    value: &str,
    kind: Type,
    allowed: Allowed,
) -> Result<String, InvalidValue> {
    let trimmed = value.trim();
    let invalid = |value: &str, reason| InvalidValue::Value {
        name: name.to_string(),
        value: value.to_string(),
        reason,
    };
    if let (Type::List, Allowed::ListOf(names)) = (kind, allowed)
        && !trimmed.is_empty()
    {
        let mut items = trimmed.split(',').map(str::trim);
        if items.clone().any(str::is_empty) {
            return Err(InvalidValue::EmptyItem(name.to_string()));
        }
        items.try_for_each(|item| one_of(item, names).map_err(|reason| invalid(item, reason)))?;
    }
    if matches!(allowed, Allowed::ThrottledReplicas) && !is_throttled_replicas(trimmed) {
        let items = format!("[{}]", list(trimmed).collect::<Vec<_>>().join(", "));
        return Err(invalid(
            &items,
            format!(
                "{name} must be the literal '*' or a list of replicas in the following format: \
                 [partitionId]:[brokerId],[partitionId]:[brokerId],..."
            ),
        ));
    }
    of_type(trimmed, kind)
        .and_then(|kept| within(trimmed, allowed).map(|()| kept))
        .map_err(|reason| invalid(trimmed, reason))
}

/// The value as its type writes it.
fn of_type(value: &str, kind: Type) -> Result<String, String> {
    fn number<T: FromStr + ToString>(value: &str, kind: &str) -> Result<String, String> {
        let number = value.parse::<T>().map_err(|_| format!("Not a number of type {kind}"))?;
        Ok(number.to_string())
    }
    match kind {
        Type::Boolean => match parse_boolean(value) {
            Some(boolean) => Ok(boolean.to_string()),
            None => Err("Expected value to be either true or false".to_string()),
        },
        Type::Int => number::<i32>(value, "INT"),
        Type::Short => number::<i16>(value, "SHORT"),
        Type::Long => number::<i64>(value, "LONG"),
        Type::Double => number::<f64>(value, "DOUBLE"),
        Type::List => {
            let mut items: Vec<&str> = Vec::new();
            for item in list(value) {
                if !items.contains(&item) {
                    items.push(item);
                }
            }
            Ok(items.join(","))
        }
        Type::String | Type::Class | Type::Password => Ok(value.to_string()),
    }
}

fn within(value: &str, allowed: Allowed) -> Result<(), String> {
    match allowed {
        Allowed::Any => Ok(()),
        Allowed::AtLeast(least) => between(value, least, i64::MAX),
        Allowed::Between(least, most) => between(value, least, most),
        Allowed::Level(least, most) if value != "-1" => between(value, least, most)
            .map_err(|_| format!("Value must be between {least} and {most} or equal to -1")),
        Allowed::Level(..) => Ok(()),
        Allowed::Fraction(least, most) => between(value, least, most),
        Allowed::OneOf(names) => one_of(value, names),
        // Checked before, because the text of a refusal is about one item, or about the name.
        Allowed::ListOf(_) | Allowed::ThrottledReplicas => Ok(()),
    }
}

/// Whether a number, whose type was checked, is in a range.
fn between<T: FromStr + PartialOrd + Display>(
    value: &str,
    least: T,
    most: T,
) -> Result<(), String> {
    match value.parse::<T>() {
        Ok(number) if number < least => Err(format!("Value must be at least {least}")),
        Ok(number) if number > most => Err(format!("Value must be no more than {most}")),
        Ok(_) => Ok(()),
        Err(_) => Err("Not a number".to_string()),
    }
}

fn one_of(value: &str, names: &[&str]) -> Result<(), String> {
    if names.contains(&value) {
        return Ok(());
    }
    Err(format!("String must be one of: {}", names.join(", ")))
}

fn is_throttled_replicas(value: &str) -> bool {
    let pair = |item: &str| {
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        item.split_once(':').is_some_and(|(partition, broker)| digits(partition) && digits(broker))
    };
    value == "*" || list(value).all(pair)
}

/// The items of a list, trimmed; an empty text has none.
pub fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Kafka takes any case.
pub fn parse_boolean(value: &str) -> Option<bool> {
    let is = |word| value.eq_ignore_ascii_case(word);
    if is("true") {
        Some(true)
    } else if is("false") {
        Some(false)
    } else {
        None
    }
}

/// A Rust type that values of one [`Type`] are read as.
pub trait Setting: Sized {
    const TYPE: Type;

    /// Reads a value that was checked.
    fn parse(value: &str) -> Option<Self>;

    /// The value as text; `None` for one that may be left open and is.
    fn text(&self) -> Option<String>;
}

/// A value that may be left open: then other properties count.
impl<T: Setting> Setting for Option<T> {
    const TYPE: Type = T::TYPE;

    fn parse(value: &str) -> Option<Self> {
        T::parse(value).map(Some)
    }

    fn text(&self) -> Option<String> {
        self.as_ref().and_then(T::text)
    }
}

impl Setting for bool {
    const TYPE: Type = Type::Boolean;

    fn parse(value: &str) -> Option<Self> {
        parse_boolean(value)
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// A list, as the text that it was checked to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Items(String);

impl From<&str> for Items {
    fn from(text: &str) -> Self {
        Self(text.to_string())
    }
}

impl Display for Items {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Setting for Items {
    const TYPE: Type = Type::List;

    fn parse(value: &str) -> Option<Self> {
        Some(value.into())
    }

    fn text(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

macro_rules! settings {
    ($($ty:ty => $kind:ident;)*) => {$(
        impl Setting for $ty {
            const TYPE: Type = Type::$kind;

            fn parse(value: &str) -> Option<Self> {
                value.parse().ok()
            }

            fn text(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}

settings! {
    i16 => Short;
    i32 => Int;
    i64 => Long;
    f64 => Double;
    String => String;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_trimmed_and_must_be_of_their_type() {
        assert_eq!(check("a", " 07 ", Type::Int, Allowed::Any), Ok("7".into()));
        assert!(check("a", "2147483648", Type::Int, Allowed::Any).is_err());
        assert_eq!(check("a", "2147483648", Type::Long, Allowed::Any), Ok("2147483648".into()));
        assert_eq!(check("a", "TRUE", Type::Boolean, Allowed::Any), Ok("true".into()));
        let refused = check("retention.ms", "soon", Type::Long, Allowed::AtLeast(-1)).unwrap_err();
        // The text of Apache Kafka 4.4 for this value.
        assert_eq!(
            refused.to_string(),
            "Invalid value soon for configuration retention.ms: Not a number of type LONG"
        );
    }

    #[test]
    fn values_must_be_within_their_limits() {
        assert!(check("a", "0", Type::Int, Allowed::AtLeast(1)).is_err());
        assert!(check("a", "1.5", Type::Double, Allowed::Fraction(0.0, 1.0)).is_err());
        assert!(check("a", "0.5", Type::Double, Allowed::Fraction(0.0, 1.0)).is_ok());
        let policies = Allowed::ListOf(&["compact", "delete"]);
        // What Apache Kafka 4.4 tells of topics that were created with these, and its refusals.
        for (list, kept) in [
            ("", ""),
            (" compact , delete,compact ", "compact,delete"),
            ("delete, compact", "delete,compact"),
        ] {
            assert_eq!(check("a", list, Type::List, policies), Ok(kept.to_string()));
        }
        let refused = |list| check("a", list, Type::List, policies).unwrap_err().to_string();
        let shred =
            "Invalid value shred for configuration a: String must be one of: compact, delete";
        assert_eq!(refused("delete,shred"), shred);
        for list in ["delete,", ",", "compact,,delete"] {
            assert_eq!(refused(list), "Configuration 'a' values must not be empty.");
        }
        let gzip = Allowed::Level(1, 9);
        assert!(check("a", "-1", Type::Int, gzip).is_ok());
        assert!(check("a", "0", Type::Int, gzip).is_err());
        assert!(check("a", "0:1,1:2", Type::List, Allowed::ThrottledReplicas).is_ok());
        assert!(check("a", "*", Type::List, Allowed::ThrottledReplicas).is_ok());
        assert!(check("a", "0:x", Type::List, Allowed::ThrottledReplicas).is_err());
    }
}
