#!/usr/bin/env bash
# kelp.sh HOST:PORT SUITE...: suites on a Kelp with the settings that they need (README.md, "Broker settings"; scripts/conformance.sh names suites and
# starts brokers). As run.sh, but kelp-later.txt names the failures that are expected, as they need what Kelp has not got yet. One that does not fail
# any more is to be taken off that list.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 2 ]] || { echo "usage: $0 HOST:PORT SUITE..." >&2; exit 2; }
broker=$1
shift
export SASL_BROKER=${SASL_BROKER-} RESET_CMD=${RESET_CMD:-$here/kelp-reset.sh}

# Those that are run in part: share groups, transactions and SASL are left out, as their tests wait for long for what is not there.
declare -A part=(
  [sarama]='^Test(Func|VersionMatrix|ConsumerGroupDeadlock|ConsumerFetchFollower|ConsumerHighWaterMark|ConsumerPartialBatch)'
  [franz-go-kgo]='^Test([^T8S]|S[^hC]|T[^x])'
  [kafka-itests]='JoinGroupRequestTest SyncGroupRequestTest HeartbeatRequestTest LeaveGroupRequestTest OffsetCommitRequestTest OffsetFetchRequestTest OffsetDeleteRequestTest DeleteGroupsRequestTest DescribeGroupsRequestTest ListGroupsRequestTest'
)
declare -A skip=([sarama]='Txn|Transactions|InitProducerId3')

bad=0
for suite; do
  export SKIP=${skip[$suite]:-}
  [[ -n $SKIP ]] || unset SKIP
  said=$("$here/run.sh" "$broker" "$suite${part[$suite]:+=${part[$suite]}}")
  failing=$(sed -n 's/^  //p' <<<"$said" | LC_ALL=C sort)
  later=$(awk -v suite="$suite" '$1 == suite { sub(/:$/, "", $2); print $2 }' "$here/kelp-later.txt" | LC_ALL=C sort)
  unexpected=$(LC_ALL=C comm -23 <(grep . <<<"$failing") <(grep . <<<"$later"))
  fixed=$(LC_ALL=C comm -13 <(grep . <<<"$failing") <(grep . <<<"$later"))
  echo "$(head -n 1 <<<"$said"): expected $(($(grep -c . <<<"$failing") - $(grep -c . <<<"$unexpected"))), unexpected $(grep -c . <<<"$unexpected")"
  [[ -z $unexpected ]] || sed 's/^/  /' <<<"$unexpected"
  [[ -z $fixed ]] || sed 's/^/  does not fail any more: /' <<<"$fixed"
  [[ -z $unexpected$fixed ]] || bad=1
done
exit $bad
