#!/usr/bin/env bash
# groups-tools.sh BROKER: what Apache Kafka's tools for groups print of a classic group: kafka-consumer-groups in every form, the consumers that
# make such groups, and the formatters that read __consumer_offsets. Each check builds on those before it. All tools but the members run in one
# JVM (ToolServer.java).
. "$(dirname "$0")/lib.sh"
. "$HERE/tools.sh"
x=groups-$$ # the prefix of every name
topic=$x-a group=$x-g

# ends: where the partitions of $topic end, parted by blanks.
ends() { tool GetOffsetShell "${at[@]}" --topic "$topic"; sed -n "s/^$topic:[0-9]*://p" "$tmp/out" | paste -sd' '; }
# committed: the committed offsets of $group, as `describe` shows them.
committed() { groups --describe --group "$group"; awk -v t="$topic" '$2 == t { print $3, $4 }' "$tmp/out" | sort -n | cut -d' ' -f2 | paste -sd' '; }
# produce FROM TO: records with these numbers as keys, so that each partition gets some.
produce() {
  seq "$1" "$2" | sed 's/.*/&\tvalue-&/' >"$tmp/in"
  input=$tmp/in tool ConsoleProducer "${at[@]}" --topic "$topic" --reader-property parse.key=true
}

topics --create --topic "$topic" --partitions 3 --replication-factor 1
produce 1 300
early=($(ends))
sleep 0.01 # a new millisecond
between=$(date -u +%FT%T.%3N)
produce 301 600
late=($(ends))
equal produced '3 partitions, 300 and 600 records' "${#late[@]} partitions, $((early[0] + early[1] + early[2])) and $((late[0] + late[1] + late[2])) records"

# The consumers that make groups.
expect console-consumer 'Processed a total of 200 messages' console --topic "$topic" --group $x-console --from-beginning --max-messages 200 --timeout-ms 20000
cp "$tmp/out" "$tmp/first"
expect console-consumer.goes-on 'Processed a total of 400 messages' console --topic "$topic" --group $x-console --from-beginning --max-messages 400 --timeout-ms 20000
equal console-consumer.each-once 600 "$(cat "$tmp/first" "$tmp/out" | grep -xE 'value-[0-9]+' | sort -u | wc -l)"
expect consumer-performance '[0-9]+, [0-9.]+, [0-9.]+, 600' tool ConsumerPerformance "${at[@]}" --topic "$topic" --num-records 600 --group $x-perf
expect verifiable-consumer '"name":"shutdown_complete"' tool VerifiableConsumer "${at[@]}" --topic "$topic" --group-id $x-verifiable --max-messages 600 --reset-policy earliest
equal verifiable-consumer.each-once 600 "$(sed -n 's/.*"name":"records_consumed","count":\([0-9]*\).*/\1/p' "$tmp/out" | awk '{ n += $1 } END { print n }')"

# A group with two members.
member() { # NAME ARGUMENT...
  java -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$classpath" org.apache.kafka.tools.VerifiableConsumer "${at[@]}" --topic "$topic" --reset-policy earliest --verbose "${@:2}" >"$tmp/$1" 2>&1 &
  members+=($!)
}
member one --group-id "$group"
member two --group-id "$group"
eventually 'Stable +2$' groups --describe --group "$group" --state
expect describe.state "$group +[^ ]+:$PORT +\($NODE\) +range +Stable +2" groups --describe --group "$group" --state
eventually "$topic +2 +${late[2]} +${late[2]} +0 " groups --describe --group "$group"
equal describe.offsets "${late[*]}" "$(committed)"
expect describe.offsets-owner "$group +$topic +0 +${late[0]} +${late[0]} +0 +consumer-[^ ]+ +/[0-9.]+ +consumer-" groups --describe --group "$group" --offsets
expect describe.members "$group +consumer-[^ ]+ +/[0-9.]+ +consumer-[^ ]+ +[12] *$" groups --describe --group "$group" --members
expect describe.members-verbose "consumer-[^ ]+ +1 +.*$topic[:(]" groups --describe --group "$group" --members --verbose
expect describe.all-groups "^$x-console +$topic" groups --describe --all-groups
expect list "^$group$" groups --list
expect list.state "$group +.*Stable" groups --list --state
expect list.stable "$group " groups --list --state stable
expect_not list.empty "^$group " groups --list --state empty
expect list.classic "$group " groups --list --type classic
expect_not list.consumer "^$group " groups --list --type consumer
expect active.reset "can only be reset if the group '$group' is inactive" groups --reset-offsets --to-earliest --group "$group" --topic "$topic" --execute
expect active.delete "could not be deleted due to: .*GroupNotEmptyException" groups --delete --group "$group"
expect active.delete-offsets "$topic +0 +Error" groups --delete-offsets --group "$group" --topic "$topic"
equal active.nothing-changed "${late[*]}" "$(committed)"
kill "${members[@]}" && wait "${members[@]}"
members=()
expect describe.empty 'Empty +0$' eventually 'Empty +0$' groups --describe --group "$group" --state
expect describe.no-members 'has no active members' groups --describe --group "$group" --members
expect describe.without-owner "$group +$topic +0 +${late[0]} +${late[0]} +0 +- +- +-" groups --describe --group "$group"
expect describe.unknown 'GroupIdNotFoundException' groups --describe --group $x-unknown

# Offsets: each form must print its plan and, executed, be what the group has then.
reset() { groups --reset-offsets --group "$group" "$@"; }
# resets NAME WANTED ARGUMENT...
resets() {
  reset "${@:3}" --execute
  equal "reset.$1" "$2" "$(committed)"
}
expect reset.dry-run "$group +$topic +1 +0" reset --to-earliest --topic "$topic" --dry-run
equal reset.dry-run-changes-nothing "${late[*]}" "$(committed)"
resets to-earliest '0 0 0' --to-earliest --topic "$topic"
resets to-latest "${late[*]}" --to-latest --all-topics
resets to-datetime "${early[*]}" --to-datetime "$between" --topic "$topic"
resets to-current "${early[*]}" --to-current --topic "$topic"
resets shift-by-back "$((early[0] - 5)) $((early[1] - 5)) $((early[2] - 5))" --shift-by -5 --topic "$topic"
resets shift-by-on "$((early[0] + 2)) $((early[1] + 2)) $((early[2] + 2))" --shift-by 7 --topic "$topic"
resets shift-by-before-the-start '0 0 0' --shift-by -1000 --topic "$topic"
resets by-duration-of-now "${late[*]}" --by-duration PT0S --topic "$topic"
resets by-duration-of-a-day '0 0 0' --by-duration P1D --topic "$topic"
resets to-offset '7 7 7' --to-offset 7 --topic "$topic"
resets to-offset-of-partitions '9 7 9' --to-offset 9 --topic "$topic:0,2"
resets to-offset-behind-the-end "${late[*]}" --to-offset 1000000 --topic "$topic"
resets to-current-of-all "${late[*]}" --to-current --all-topics
expect reset.export "\"?$topic\"?,2,${late[2]}" reset --to-current --topic "$topic" --export --dry-run
grep "$topic" "$tmp/out" | sed 's/[0-9]*$/3/' >"$tmp/plan.csv"
resets from-file '3 3 3' --from-file "$tmp/plan.csv"
groups --reset-offsets --group $x-new --topic "$topic" --to-offset 4 --execute
expect reset.makes-a-group "$x-new +$topic +0 +4 " groups --describe --group $x-new
expect reset.of-all-groups "$x-new +$topic +2 +5" groups --reset-offsets --all-groups --topic "$topic" --to-offset 5 --execute
equal reset.of-all-groups-executed '5 5 5' "$(committed)"

# What __consumer_offsets holds, as lag monitors read it: the whole partition in which a group with this name is.
partition_of() {
  local hash=0 i character
  for ((i = 0; i < ${#1}; i++)); do
    printf -v character %d "'${1:i:1}"
    hash=$(((31 * hash + character) & 0xffffffff)) # Java's hashCode
  done
  echo $(((hash < 0x80000000 ? hash : 0x100000000 - hash) % $2))
}
tool GetOffsetShell "${at[@]}" --topic __consumer_offsets
partition=$(partition_of "$group" "$(grep -c '^__consumer_offsets:' "$tmp/out")")
records=$(sed -n "s/^__consumer_offsets:$partition://p" "$tmp/out")
offsets() {
  console --topic __consumer_offsets --partition "$partition" --offset earliest --max-messages "${records:-0}" --timeout-ms 30000 \
    --formatter "org.apache.kafka.tools.consumer.$1"
}
expect formatter.offsets "\"group\":\"$group\",\"topic\":\"$topic\",\"partition\":2.*\"offset\":5," offsets OffsetsMessageFormatter
expect formatter.groups "\"group\":\"$group\".*\"protocolType\":\"consumer\".*\"protocol\":\"range\"" offsets GroupMetadataMessageFormatter

# A static member is listed by its name, and stays when its process ends.
member static --group-id $x-static --group-instance-id $x-instance --session-timeout 45000
eventually 'Stable +1$' groups --describe --group $x-static --state
expect describe.static-member "$x-static +$x-instance-[^ ]+ +$x-instance +/" groups --describe --group $x-static --members
kill "${members[@]}" && wait "${members[@]}"
members=()
expect describe.static-member-stays "Stable +1$" groups --describe --group $x-static --state

expect delete-offsets.partition "$topic +0 +Successful" groups --delete-offsets --group "$group" --topic "$topic:0"
equal delete-offsets.the-others-stay '5 5' "$(committed)"
expect delete-offsets.topic "$topic +2 +Successful" groups --delete-offsets --group "$group" --topic "$topic"
expect delete-offsets.unknown-group 'does not exist' groups --delete-offsets --group $x-unknown --topic "$topic"
expect delete "Deletion of requested consumer groups \('$x-console'\) was successful" groups --delete --group $x-console
expect delete.several "$x-perf.*was successful" groups --delete --group $x-perf --group $x-verifiable
expect delete.unknown 'GroupIdNotFoundException' groups --delete --group $x-unknown
expect_not delete.gone "^$x-(console|perf|verifiable)$" groups --list

# The offsets of a topic go with it.
topics --create --topic $x-gone --partitions 1 --replication-factor 1
groups --reset-offsets --group $x-new --topic $x-gone --to-earliest --execute
expect deleted-topic.committed "$x-new +$x-gone +0 +0" groups --describe --group $x-new
topics --delete --topic $x-gone
expect_not deleted-topic.gone "$x-gone" eventually "^$x-new +$topic" groups --describe --group $x-new
checks_end
