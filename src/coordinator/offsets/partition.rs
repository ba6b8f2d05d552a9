//! Which partition of `__consumer_offsets` a group is in.

/// Clients and tools work it out themselves, so it is Kafka's: Java's hash of the group's name.
pub fn partition_for(group_id: &str, partitions: i32) -> i32 {
    // The absolute value of the least number is not one; Kafka takes 0.
    java_hash(group_id).checked_abs().unwrap_or(0) % partitions
}

/// Java's `String.hashCode`, which goes by UTF-16 units.
fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes are of Java 17, the partitions of Kafka 4.4's `Utils.abs(hash) % partitions`.
    const OF_JAVA: [(&str, i32, i32, i32); 12] = [
        ("", 0, 0, 0),
        ("a", 97, 47, 6),
        ("group", 98_629_247, 47, 3),
        ("my-group", -1_906_497_762, 12, 1),
        ("console-consumer-12345", 158_455_506, 6, 6),
        ("polygenelubricants", i32::MIN, 0, 0),
        ("grüppe", -1_233_264_812, 12, 3),
        ("グループ", 383_750_870, 20, 6),
        ("😀", 1_772_899, 49, 2),
        ("connect-cluster", 1_440_343_063, 13, 5),
        ("perf-consumer-1", -706_043_522, 22, 2),
        ("x😀y", 58_534_910, 10, 0),
    ];

    #[test]
    fn a_group_is_in_the_partition_where_java_puts_it() {
        for (group, hash, of_50, of_7) in OF_JAVA {
            assert_eq!(java_hash(group), hash, "{group}");
            assert_eq!(partition_for(group, 50), of_50, "{group}");
            assert_eq!(partition_for(group, 7), of_7, "{group}");
        }
    }
}
