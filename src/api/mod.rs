//! One handler for each API, in a file named as its message.
//!
//! A handler authorizes, validates, asks the rooms below and shapes the answer. It knows nothing
//! of sockets and clocks, and calls no other handler.

pub mod alter_configs;
pub mod alter_replica_log_dirs;
mod alterations;
pub mod api_versions;
mod config_resources;
pub mod create_acls;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_acls;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_acls;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_topic_partitions;
pub mod fetch;
mod fetch_sessions;
pub mod find_coordinator;
mod groups;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
mod rules;
mod successor;
pub mod sync_group;
pub(crate) mod topics;
mod turns;

use crate::config::Config;
use crate::config::listeners::Address;
use crate::coordinator::runtime::Runtime;
use crate::coordinator::shard::Shard;
use crate::log::Log;
use crate::log::producer_ids::ProducerIds;
use crate::metrics::{Client, Metrics};
use crate::protocol::api_key::ApiKey;
use crate::protocol::encoded::Spares;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use crate::store::settings::Settings;
use crate::store::topics::Topics;
use crate::store::{BoxFuture, Owner, State, Storage};
use fetch_sessions::FetchSessions;
use rules::RulesOfTopics;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::Empty;
use tracing::{Span, debug_span};
use turns::Turns;

/// What a handler needs besides its request.
#[derive(Clone)]
pub struct Context {
    pub broker: Arc<Broker>,
    pub connection: Arc<Connection>,
    pub api_version: i16,
    pub client_id: Option<Str>,
    /// Length of the buffer of which the request's bytes are slices.
    pub buffer_bytes: usize,
}

impl Context {
    /// Where the client finds the broker: at its own listener, or at who took over from it.
    pub fn advertised(&self) -> Address {
        let successor = self.broker.successor();
        let address = successor.and_then(|owner| Address::parse(&owner.address));
        address.unwrap_or_else(|| self.connection.advertised.clone())
    }
}

/// Without ACLs a client may do all that there is to do. These are the operations on the cluster,
/// on a topic and on a group, each a bit at the place of its code (`AclOperation` of Apache Kafka 4.4).
const CLUSTER_OPERATIONS: i32 = 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;
const TOPIC_OPERATIONS: i32 =
    1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11;
const GROUP_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

/// What the APIs that change ACLs answer along with SECURITY_DISABLED.
const NO_AUTHORIZER: &str = "No Authorizer is configured.";

/// What three quarters are taken of for batches if requests have no limit.
const DEFAULT_REQUEST_BYTES: usize = 256 << 20;

/// The parts of an engine that handlers ask.
pub struct Broker {
    /// The properties that the broker was started with.
    pub config: Arc<Config>,
    /// The properties as they are now.
    pub settings: Settings,
    pub storage: Arc<dyn Storage>,
    pub log: Arc<Log>,
    pub groups: Runtime<Shard>,
    pub producer_ids: ProducerIds,
    fetch_sessions: FetchSessions,
    pub metrics: Arc<Metrics>,
    /// What is asked of batches.
    rules: RulesOfTopics,
    /// Turns to decompress much: as many as there are I/O threads.
    turns: Turns,
    /// Held while topics are created: what was checked must still hold when the topic is stored.
    topic_changes: Arc<tokio::sync::Mutex<()>>,
}

impl Broker {
    pub fn new(config: Arc<Config>, storage: Arc<dyn Storage>, metrics: Arc<Metrics>) -> Self {
        // What is left of the memory of requests is for those that do not wait for the store.
        let pending_bytes = config.request_bytes().unwrap_or(DEFAULT_REQUEST_BYTES) / 4 * 3;
        let log = Arc::new(Log::new(storage.clone(), pending_bytes, metrics.clone()));
        Self {
            rules: RulesOfTopics::default(),
            settings: Settings::new(config.clone(), storage.clone()),
            groups: Runtime::of_groups(&config, storage.clone(), log.clone()),
            fetch_sessions: FetchSessions::new(config.max_incremental_fetch_session_cache_slots),
            turns: Turns::new(config.num_io_threads.unsigned_abs() as usize),
            config,
            log,
            producer_ids: ProducerIds::new(storage.clone()),
            metrics,
            storage,
            topic_changes: Arc::default(),
        }
    }

    pub fn topics(&self) -> Arc<Topics> {
        self.storage.topics()
    }

    /// The APIs that clients are offered: a host that keeps nothing for coordinators has no
    /// producer ids to give, or no groups.
    pub fn offers(&self, api: ApiKey) -> bool {
        use ApiKey::{
            AlterConfigs, CreatePartitions, DeleteGroups, DescribeGroups, Heartbeat,
            IncrementalAlterConfigs, InitProducerId, JoinGroup, LeaveGroup, ListGroups,
            OffsetCommit, OffsetDelete, OffsetFetch, SyncGroup,
        };
        let is_possible = match api {
            CreatePartitions | AlterConfigs | IncrementalAlterConfigs => {
                self.storage.alters_topics()
            }
            InitProducerId => self.storage.has_coordinators(),
            OffsetCommit | OffsetFetch | JoinGroup | Heartbeat | LeaveGroup | SyncGroup
            | DescribeGroups | ListGroups | DeleteGroups | OffsetDelete => {
                self.storage.has_groups()
            }
            _ => true,
        };
        is_possible && ApiKey::SERVED.contains(&api)
    }

    /// Who took the data over from this process.
    pub fn successor(&self) -> Option<Owner> {
        match &*self.storage.state().borrow() {
            State::Fenced(owner) => Some(owner.clone()),
            _ => None,
        }
    }
}

/// What is known of the client's connection.
#[derive(Debug)]
pub struct Connection {
    pub peer: SocketAddr,
    /// The client's address as Java writes it for a socket that has no name: members of groups are
    /// described with it.
    pub host: Str,
    /// Our end: which address and listener the client came to.
    pub local: SocketAddr,
    /// What clients of this listener are told to connect to.
    pub advertised: Address,
    /// The memory of answers that it has got.
    pub spares: Spares,
    /// Where its requests are counted.
    pub metrics: Arc<Metrics>,
    pub span: Span,
    software: Mutex<Option<(Software, Client)>>,
}

/// How a client calls itself (KIP-511).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    pub name: Str,
    pub version: Str,
}

impl Connection {
    pub fn new(
        peer: SocketAddr,
        local: SocketAddr,
        advertised: Address,
        metrics: Arc<Metrics>,
    ) -> Self {
        let spares = Spares::default();
        let span = debug_span!("connection", %peer, client_id = Empty);
        let (host, software) = (host(peer.ip()).into(), Mutex::default());
        Self { peer, host, local, advertised, spares, metrics, span, software }
    }

    /// What the client said in its last ApiVersions.
    pub fn software(&self) -> Option<Software> {
        let said = self.software.lock().unwrap_or_else(PoisonError::into_inner);
        said.as_ref().map(|(software, _)| software.clone())
    }

    fn set_software(&self, software: Software) {
        let counted = self.metrics.clients.add(&software.name, &software.version);
        let mut said = self.software.lock().unwrap_or_else(PoisonError::into_inner);
        *said = Some((software, counted));
    }
}

/// An address as Java writes it for a socket that has no name.
fn host(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("/{address}"),
        IpAddr::V6(address) => {
            let parts = address.segments().map(|part| format!("{part:x}"));
            format!("/{}", parts.join(":"))
        }
    }
}

/// What becomes of a request. The requests of a connection are handled one after the other; the
/// next one starts when this value is there, and answers go out in the order of the requests.
pub enum Reply<T> {
    Ready(T),
    /// The request took its place (its batches are submitted, its poll is parked); the answer
    /// comes later and does not hold up the requests behind it.
    Deferred(BoxFuture<'static, T>),
    /// A produce with acks=0: never answered, but an error closes the connection. What the request
    /// holds of the engine's memory is given back when the work is done.
    Unanswered(BoxFuture<'static, Result<(), ErrorCode>>),
}

impl<T> From<T> for Reply<T> {
    fn from(answer: T) -> Self {
        Self::Ready(answer)
    }
}
