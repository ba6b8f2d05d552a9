#!/usr/bin/env bash
# kelp.sh HOST:PORT [SUITE...]: the suites that have groups, on a stand-alone Kelp (README.md, "Broker settings"). As run.sh, but kelp-later.txt names
# the failures that are expected, as they need what Kelp has not got yet. One that does not fail any more is to be taken off that list.
set -u
here=$(cd "$(dirname "$0")" && pwd)
broker=${1:?usage: $0 HOST:PORT [SUITE...]}
shift
suites=("$@")
((${#suites[@]})) || suites=(kafka-python kafka-go sarama franz-go-kgo kafka-itests groups-tools)
export SASL_BROKER=${SASL_BROKER-} RESET_CMD=${RESET_CMD:-$here/kelp-reset.sh}

# Those that are run in part: share groups, transactions and SASL are left out, as their tests wait for long for what is not there.
declare -A part=(
  [sarama]='^Test(Func|VersionMatrix|ConsumerGroupDeadlock|ConsumerFetchFollower|ConsumerHighWaterMark|ConsumerPartialBatch)'
  [franz-go-kgo]='^Test([^T8S]|S[^hC]|T[^x])'
  [kafka-itests]='JoinGroupRequestTest SyncGroupRequestTest HeartbeatRequestTest LeaveGroupRequestTest OffsetCommitRequestTest OffsetFetchRequestTest OffsetDeleteRequestTest DeleteGroupsRequestTest DescribeGroupsRequestTest ListGroupsRequestTest'
)
declare -A skip=([sarama]='Txn|Transactions|InitProducerId3')

bad=0
for suite in "${suites[@]}"; do
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
