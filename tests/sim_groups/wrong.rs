//! Single rules taken away, each of which the simulation must miss.

use kelp::coordinator::Outcome;
use kelp::coordinator::groups::{self, Due};
use kelp::coordinator::records::Record;
use kelp::coordinator::shard::{Effect, Request, Response, Shard};
use kelp::protocol::error_code::ErrorCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Answers do not wait for the log.
    AnswersBeforeCommit,
    /// A crash keeps some records of an outcome.
    HalfAnOutcome,
    /// A process that has read its log does not look after the members that it finds.
    NothingAfterLoading,
    /// An answer goes out twice.
    AnswersTwice,
    /// A join that is to wait is not noted.
    ForgetsJoins,
    /// Sessions have no end.
    NoSessions,
    /// Who does not join again is waited for without end.
    NoRebalanceTimeout,
    /// Who does not ask for its assignment is waited for without end.
    NoSyncTimeout,
    /// What is kept of a group has the generation before.
    KeepsTheGenerationBefore,
    /// Every generation is told to be the first.
    SameGeneration,
    /// Followers get what the leader gets.
    SameAssignment,
    /// Records are applied, and not written.
    NeverWrites,
    /// A commit is taken from any generation.
    TakesAnyCommit,
    /// Offsets of deleted topics stay.
    KeepsOffsetsOfDeletedTopics,
}

impl Wrong {
    pub(crate) const ALL: [Self; 14] = [
        Self::AnswersBeforeCommit,
        Self::HalfAnOutcome,
        Self::NothingAfterLoading,
        Self::AnswersTwice,
        Self::ForgetsJoins,
        Self::NoSessions,
        Self::NoRebalanceTimeout,
        Self::NoSyncTimeout,
        Self::KeepsTheGenerationBefore,
        Self::SameGeneration,
        Self::SameAssignment,
        Self::NeverWrites,
        Self::TakesAnyCommit,
        Self::KeepsOffsetsOfDeletedTopics,
    ];

    pub(crate) fn spoil_request(self, shard: &Shard, request: &mut Request) {
        if let (Self::TakesAnyCommit, Request::OffsetCommit(_, request)) = (self, request)
            && let Some(group) = shard.groups.get(&request.group_id)
        {
            request.generation_id_or_member_epoch = group.generation();
        }
    }

    pub(crate) fn spoil(self, outcome: &mut Outcome<Shard>) {
        let sets = |effect: &Effect, is: fn(&Due) -> bool| matches!(effect, Effect::Groups(groups::Effect::Set(timer, _)) if is(&timer.what));
        match self {
            Self::AnswersTwice => {
                let last = outcome.answers.last().cloned();
                outcome.answers.extend(last);
            }
            Self::ForgetsJoins if outcome.answers.is_empty() && outcome.records.is_empty() => {
                let parks = |e: &Effect| matches!(e, Effect::Groups(groups::Effect::Group(_)));
                outcome.effects.retain(|effect| !parks(effect));
            }
            Self::NoSessions => {
                outcome.effects.retain(|e| !sets(e, |due| matches!(due, Due::Session(_))));
            }
            Self::NoRebalanceTimeout => {
                outcome.effects.retain(|e| !sets(e, |due| *due == Due::Join));
            }
            Self::NoSyncTimeout => {
                outcome.effects.retain(|e| !sets(e, |due| *due == Due::Sync));
            }
            Self::KeepsTheGenerationBefore => {
                for record in &mut outcome.records {
                    if let Record::GroupMetadata { value: Some(value), .. } = record {
                        value.generation -= 1;
                    }
                }
            }
            Self::SameGeneration => {
                for (_, response) in &mut outcome.answers {
                    if let Response::JoinGroup(response) = response
                        && response.error_code == ErrorCode::None
                    {
                        response.generation_id = 1;
                    }
                }
            }
            Self::SameAssignment => same_assignment(outcome),
            Self::KeepsOffsetsOfDeletedTopics => {
                let deleted =
                    outcome.answers.iter().any(|(_, r)| matches!(r, Response::TopicsDeleted));
                if deleted {
                    outcome.records.clear();
                }
            }
            _ => {}
        }
    }
}

fn same_assignment(outcome: &mut Outcome<Shard>) {
    let mut first = None;
    for (_, response) in &mut outcome.answers {
        if let Response::SyncGroup(response) = response
            && response.error_code == ErrorCode::None
        {
            let first = first.get_or_insert_with(|| response.assignment.clone());
            response.assignment = first.clone();
        }
    }
}
