//! What must hold of a group when nothing has gone wrong for long enough.

use crate::assignor::Partitions;
use crate::client::{Client, Stage};
use crate::topics::Topics;
use kelp::coordinator::shard::Shard;
use kelp::protocol::wire::Str;
use std::collections::BTreeSet;

/// It is stable, its members are the clients that are there, and each partition that one of them
/// wants has one of them as owner. Gives the generation, or what is wrong.
pub(crate) fn check(
    shard: &Shard,
    clients: &[Client],
    topics: &Topics,
    name: &Str,
) -> Result<i32, String> {
    let mine = |client: &&Client| client.nature.group == *name && client.alive;
    let there: Vec<&Client> = clients.iter().filter(mine).collect();
    if there.is_empty() {
        return Ok(-1);
    }
    let group = shard.groups.get(name).ok_or("it is gone")?;
    if group.state().name() != "Stable" {
        return Err(format!("it is {}", group.state().name()));
    }
    let members: BTreeSet<&Str> = group.members().map(|member| &member.id).collect();
    let known: BTreeSet<&Str> = there.iter().map(|client| &client.member_id).collect();
    if members != known {
        return Err(format!("its members are {members:?}, the clients {known:?}"));
    }
    let mut owned = Partitions::new();
    for client in &there {
        if client.stage != Stage::Stable || client.generation != group.generation() {
            let Client { member_id, stage, generation, .. } = client;
            return Err(format!("{member_id} is {stage:?} in {generation}"));
        }
        let twice = client.owned.iter().find(|partition| !owned.insert((*partition).clone()));
        if let Some(partition) = twice {
            return Err(format!("{partition:?} has two owners"));
        }
    }
    let wanted: BTreeSet<&Str> = there.iter().flat_map(|client| &client.topics).collect();
    let missing = |p: &(Str, i32)| wanted.contains(&p.0) && !owned.contains(p);
    match topics.partitions().find(missing) {
        Some(partition) => Err(format!("{partition:?} has no owner")),
        None => Ok(group.generation()),
    }
}
