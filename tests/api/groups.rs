//! Groups, from the first question for their coordinator to the end of the broker.

use crate::broker::{Broker, Client};
use bytes::Bytes;
use kelp::messages::{
    delete_groups, describe_groups, heartbeat, join_group, leave_group, list_groups, offset_commit,
    offset_delete, sync_group,
};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::Str;

/// Nobody waits for others, and sessions may be short.
pub(crate) const QUICK: &str =
    "group.initial.rebalance.delay.ms=0\ngroup.min.session.timeout.ms=1\n";

/// A member of a group, on a connection of its own.
pub(crate) struct Member {
    group: &'static str,
    pub(crate) client: Client,
    pub(crate) id: Str,
    pub(crate) generation: i32,
    session_timeout_ms: i32,
}

const GROUP: &str = "group";

impl Member {
    pub(crate) fn new(broker: &Broker) -> Self {
        Self::of(GROUP, broker)
    }

    fn of(group: &'static str, broker: &Broker) -> Self {
        broker.find_coordinator(group);
        let client = broker.connect();
        Self { group, client, id: Str::new(), generation: -1, session_timeout_ms: 30_000 }
    }

    /// One that has joined.
    pub(crate) fn joined(broker: &Broker) -> Self {
        let mut member = Self::new(broker);
        member.get_id();
        member.join();
        member
    }

    /// The only member of a stable group.
    fn alone(group: &'static str, broker: &Broker) -> Self {
        let mut member = Self::of(group, broker);
        member.get_id();
        member.join();
        member.send_sync(&[]);
        assert_eq!(member.receive_sync().error_code, ErrorCode::None);
        member
    }

    fn request(&self) -> join_group::Request {
        let protocol = |name: &str, metadata: &'static [u8]| join_group::JoinGroupRequestProtocol {
            name: name.into(),
            metadata: Bytes::from_static(metadata),
        };
        join_group::Request {
            group_id: self.group.into(),
            session_timeout_ms: self.session_timeout_ms,
            rebalance_timeout_ms: 60_000,
            member_id: self.id.clone(),
            protocol_type: "test".into(),
            protocols: vec![protocol("first", b"1"), protocol("second", b"2")],
            ..Default::default()
        }
    }

    /// Takes the id that the coordinator gives.
    fn get_id(&mut self) {
        let answer: join_group::Response = self.client.call(ApiKey::JoinGroup, 9, &self.request());
        assert_eq!(answer.error_code, ErrorCode::MemberIdRequired);
        self.id = answer.member_id;
    }

    fn send_join(&mut self) {
        let request = self.request();
        self.client.send(ApiKey::JoinGroup, 9, &request);
    }

    pub(crate) fn receive_join(&mut self) -> join_group::Response {
        let (_, answer): (i32, join_group::Response) = self.client.receive(ApiKey::JoinGroup, 9);
        self.generation = answer.generation_id;
        answer
    }

    fn join(&mut self) -> join_group::Response {
        self.send_join();
        self.receive_join()
    }

    fn send_sync(&mut self, assignments: &[(&Str, &'static [u8])]) {
        let assignment = |(member_id, assignment): &(&Str, &'static [u8])| {
            sync_group::SyncGroupRequestAssignment {
                member_id: (*member_id).clone(),
                assignment: Bytes::from_static(assignment),
            }
        };
        let request = sync_group::Request {
            group_id: self.group.into(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            protocol_type: Some("test".into()),
            protocol_name: Some("first".into()),
            assignments: assignments.iter().map(assignment).collect(),
            ..Default::default()
        };
        self.client.send(ApiKey::SyncGroup, 5, &request);
    }

    fn receive_sync(&mut self) -> sync_group::Response {
        self.client.receive(ApiKey::SyncGroup, 5).1
    }

    fn beat(&self) -> heartbeat::Request {
        heartbeat::Request {
            group_id: self.group.into(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            ..Default::default()
        }
    }

    fn heartbeat(&mut self) -> ErrorCode {
        let request = self.beat();
        let answer: heartbeat::Response = self.client.call(ApiKey::Heartbeat, 4, &request);
        answer.error_code
    }
}

/// Two members of a stable generation, the leader first.
fn stable(broker: &Broker) -> (Member, Member) {
    let mut leader = Member::alone(GROUP, broker);
    let mut follower = Member::new(broker);
    follower.get_id();
    follower.send_join();
    while leader.heartbeat() == ErrorCode::None {
        // The other one's request is not there yet.
    }
    let joined = leader.join();
    assert_eq!((&joined.leader, joined.members.len()), (&leader.id, 2));
    let other = follower.receive_join();
    assert_eq!((other.generation_id, other.members.len()), (joined.generation_id, 0));
    (leader, follower)
}

#[test]
fn two_members_share_the_work_and_part() {
    let broker = Broker::with(QUICK);
    let (mut leader, mut follower) = stable(&broker);
    assert_eq!(leader.generation, 2);
    follower.send_sync(&[]);
    leader.send_sync(&[(&leader.id.clone(), b"a"), (&follower.id.clone(), b"b")]);
    let (ours, theirs) = (leader.receive_sync(), follower.receive_sync());
    assert_eq!((ours.error_code, &ours.assignment[..]), (ErrorCode::None, &b"a"[..]));
    assert_eq!((theirs.error_code, &theirs.assignment[..]), (ErrorCode::None, &b"b"[..]));
    assert_eq!((leader.heartbeat(), follower.heartbeat()), (ErrorCode::None, ErrorCode::None));

    let member =
        leave_group::MemberIdentity { member_id: follower.id.clone(), ..Default::default() };
    let request = leave_group::Request {
        group_id: GROUP.into(),
        members: vec![member],
        ..Default::default()
    };
    let left: leave_group::Response = leader.client.call(ApiKey::LeaveGroup, 5, &request);
    assert_eq!((left.error_code, left.members[0].error_code), (ErrorCode::None, ErrorCode::None));
    assert_eq!(leader.heartbeat(), ErrorCode::RebalanceInProgress);
    assert_eq!(follower.heartbeat(), ErrorCode::UnknownMemberId);
}

#[test]
fn a_member_is_described_as_its_connection_is() {
    let broker = Broker::with(QUICK);
    let mut member = Member::joined(&broker);
    member.send_sync(&[(&member.id.clone(), b"all")]);
    member.receive_sync();
    let request = describe_groups::Request {
        groups: vec![GROUP.into(), "none".into()],
        include_authorized_operations: true,
    };
    let answer: describe_groups::Response = broker.ask(ApiKey::DescribeGroups, 6, &request);
    let [group, none] = &answer.groups[..] else { panic!("{answer:?}") };
    assert_eq!((group.error_code, &*group.group_state), (ErrorCode::None, "Stable"));
    assert_eq!((&*group.protocol_type, &*group.protocol_data), ("test", "first"));
    // What Apache Kafka 4.4 tells without ACLs.
    assert_eq!(group.authorized_operations, 3400);
    let [described] = &group.members[..] else { panic!("{group:?}") };
    assert_eq!((&*described.client_id, &*described.client_host), ("test", "/127.0.0.1"));
    assert_eq!((&described.member_id, &described.member_metadata[..]), (&member.id, &b"1"[..]));
    assert_eq!(described.member_assignment[..], b"all"[..]);
    // The client's id and a random one.
    assert_eq!((&member.id[..5], member.id.len()), ("test-", 5 + 36));

    assert_eq!((none.error_code, &*none.group_state), (ErrorCode::GroupIdNotFound, "Dead"));
    let listed: list_groups::Response =
        broker.ask(ApiKey::ListGroups, 5, &list_groups::Request::default());
    assert_eq!((listed.error_code, listed.groups.len()), (ErrorCode::None, 1));
    assert_eq!((&*listed.groups[0].group_id, &*listed.groups[0].group_type), (GROUP, "classic"));

    let request = delete_groups::Request { groups_names: vec![GROUP.into(), "none".into()] };
    let deleted: delete_groups::Response = broker.ask(ApiKey::DeleteGroups, 2, &request);
    let codes: Vec<_> = deleted.results.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [ErrorCode::NonEmptyGroup, ErrorCode::GroupIdNotFound]);
}

#[test]
fn a_member_that_vanishes_is_dropped_when_its_session_ends() {
    let broker = Broker::with(QUICK);
    let mut gone = Member::new(&broker);
    gone.session_timeout_ms = 300;
    gone.get_id();
    gone.join();
    gone.send_sync(&[]);
    gone.receive_sync();
    drop(gone);
    // Nothing but the end of that session lets this one in.
    let mut next = Member::new(&broker);
    next.get_id();
    let joined = next.join();
    assert_eq!((joined.error_code, &joined.leader), (ErrorCode::None, &next.id));
    assert_eq!(joined.members.len(), 1);
}

#[test]
fn what_comes_behind_a_join_that_waits_is_answered_behind_it() {
    let broker = Broker::with(QUICK);
    let mut first = Member::joined(&broker);
    first.send_sync(&[]);
    first.receive_sync();
    let mut second = Member::new(&broker);
    second.get_id();
    second.send_join();
    let request = list_groups::Request::default();
    second.client.send(ApiKey::ListGroups, 5, &request);
    while first.heartbeat() == ErrorCode::None {}
    assert_eq!(first.join().error_code, ErrorCode::None);
    assert_eq!(second.receive_join().generation_id, 2);
    let (_, listed): (i32, list_groups::Response) = second.client.receive(ApiKey::ListGroups, 5);
    assert_eq!(listed.groups.len(), 1);
}

#[test]
fn a_heartbeat_or_commit_does_not_wait_for_the_rebalance_of_another_group() {
    // One coordinator has both.
    let broker = Broker::with(&format!("{QUICK}offsets.topic.num.partitions=1\n"));
    broker.create("clicks", 1);
    let mut other = Member::alone("other", &broker);
    let mut late = Member::alone(GROUP, &broker);
    let mut waiting = Member::new(&broker);
    waiting.get_id();
    waiting.send_join();
    while late.heartbeat() == ErrorCode::None {
        // The JoinGroup is not there yet.
    }
    assert_eq!(other.heartbeat(), ErrorCode::None);
    let partition = offset_commit::OffsetCommitRequestPartition::default();
    let topic = offset_commit::OffsetCommitRequestTopic {
        name: "clicks".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = offset_commit::Request {
        group_id: "other".into(),
        generation_id_or_member_epoch: other.generation,
        member_id: other.id.clone(),
        topics: vec![topic],
        ..Default::default()
    };
    let committed: offset_commit::Response = other.client.call(ApiKey::OffsetCommit, 9, &request);
    assert_eq!(committed.topics[0].partitions[0].error_code, ErrorCode::None);
    // The rebalance went on all that time: it needs who is late.
    assert_eq!(late.heartbeat(), ErrorCode::RebalanceInProgress);
    let generation = late.join().generation_id;
    assert_eq!(waiting.receive_join().generation_id, generation);
}

#[test]
fn a_group_without_a_name_has_no_coordinator() {
    let broker = Broker::with(QUICK);
    broker.find_coordinator(GROUP);
    let answer: heartbeat::Response =
        broker.ask(ApiKey::Heartbeat, 4, &heartbeat::Request::default());
    assert_eq!(answer.error_code, ErrorCode::InvalidGroupId);
    let answer: offset_delete::Response =
        broker.ask(ApiKey::OffsetDelete, 0, &offset_delete::Request::default());
    assert_eq!(answer.error_code, ErrorCode::InvalidGroupId);
    // From version 5 on a SyncGroup must say which protocol it is for.
    let answer: sync_group::Response =
        broker.ask(ApiKey::SyncGroup, 5, &sync_group::Request::default());
    assert_eq!(answer.error_code, ErrorCode::InconsistentGroupProtocol);
}

#[test]
fn before_there_is_a_topic_for_groups_there_is_no_coordinator() {
    let broker = Broker::with(QUICK);
    let request = heartbeat::Request { group_id: GROUP.into(), ..Default::default() };
    let answer: heartbeat::Response = broker.ask(ApiKey::Heartbeat, 4, &request);
    assert_eq!(answer.error_code, ErrorCode::NotCoordinator);
    let listed: list_groups::Response =
        broker.ask(ApiKey::ListGroups, 5, &list_groups::Request::default());
    assert_eq!((listed.error_code, listed.groups.len()), (ErrorCode::None, 0));
}

#[test]
fn a_broker_that_stops_sends_those_away_who_wait_for_a_group() {
    let broker = Broker::with(QUICK);
    let mut first = Member::joined(&broker);
    first.send_sync(&[]);
    first.receive_sync();
    let mut second = Member::new(&broker);
    second.get_id();
    second.send_join();
    while first.heartbeat() == ErrorCode::None {}
    broker.engine.stop(crate::broker::PATIENCE);
    assert_eq!(second.receive_join().error_code, ErrorCode::NotCoordinator);
    assert!(second.client.is_closed());
}
