//! Switches that turn single rules of the object log off.
//!
//! The simulation proves with them that each rule is needed: without it, it must find a failure.
//! They exist with the feature `faults` only; without it every rule is a constant.

/// One rule of the object log, named as in the model that checked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    OwnPrefix,
    Nonce,
    SameBytes,
    StopWhenFenced,
    AckInOrder,
    VisibleAfterCommit,
    FenceAtFirstGap,
    ReadUpToFence,
    TierCommittedOnly,
    CheckpointBeforeDelete,
    KeepFences,
    KeepReferred,
    VerifyAfterFence,
    CheckpointHasStart,
    CheckpointHasProducers,
    UniqueNames,
    SegmentBeforeCheckpoint,
    LookBeforeTrim,
    LookBeforeDelete,
    LookUpAgain,
    NumberedCheckpoints,
    OwnNames,
    SpareInFlight,
    StillNamed,
    SwapInList,
    KeepRanges,
    TombstonesFromStart,
    StartByFrame,
    JournalBeforeMetadata,
}

/// Which rule is off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    #[cfg(feature = "faults")]
    pub off: Option<Rule>,
}

impl Faults {
    #[cfg(feature = "faults")]
    pub(super) fn keep(self, rule: Rule) -> bool {
        self.off != Some(rule)
    }

    #[cfg(not(feature = "faults"))]
    pub(super) const fn keep(self, _rule: Rule) -> bool {
        true
    }
}
