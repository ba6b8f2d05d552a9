//! Each rule is needed: without it the simulation finds a failure.

use crate::run_all;
use kelp::store::objectlog::Rule;

fn breaks(rule: Rule) {
    let seeds = crate::number("KELP_SEEDS").unwrap_or(1_000);
    let (_, failed) = run_all(0..seeds, Some(rule));
    match failed {
        Some((seed, text)) => println!("without {rule:?}: seed {seed}: {text}"),
        None => panic!("without {rule:?} nothing breaks"),
    }
}

macro_rules! mutants {
    ($($name:ident: $rule:ident,)*) => {
        $(#[test]
        fn $name() {
            breaks(Rule::$rule);
        })*
    };
}

mutants! {
    it_breaks_without_own_prefix: OwnPrefix,
    it_breaks_without_nonce: Nonce,
    it_breaks_without_same_bytes: SameBytes,
    it_breaks_without_stop_when_fenced: StopWhenFenced,
    it_breaks_without_ack_in_order: AckInOrder,
    it_breaks_without_visible_after_commit: VisibleAfterCommit,
    it_breaks_without_fence_at_first_gap: FenceAtFirstGap,
    it_breaks_without_read_up_to_fence: ReadUpToFence,
    it_breaks_without_tier_committed_only: TierCommittedOnly,
    it_breaks_without_checkpoint_before_delete: CheckpointBeforeDelete,
    it_breaks_without_keep_fences: KeepFences,
    it_breaks_without_keep_referred: KeepReferred,
    it_breaks_without_verify_after_fence: VerifyAfterFence,
    it_breaks_without_checkpoint_has_start: CheckpointHasStart,
    it_breaks_without_checkpoint_has_producers: CheckpointHasProducers,
    it_breaks_without_unique_names: UniqueNames,
    it_breaks_without_segment_before_checkpoint: SegmentBeforeCheckpoint,
    it_breaks_without_look_before_trim: LookBeforeTrim,
    it_breaks_without_look_before_delete: LookBeforeDelete,
    it_breaks_without_numbered_checkpoints: NumberedCheckpoints,
    it_breaks_without_own_names: OwnNames,
    it_breaks_without_spare_in_flight: SpareInFlight,
    it_breaks_without_still_named: StillNamed,
    it_breaks_without_swap_in_list: SwapInList,
    it_breaks_without_keep_ranges: KeepRanges,
    it_breaks_without_tombstones_from_start: TombstonesFromStart,
    it_breaks_without_start_by_frame: StartByFrame,
    it_breaks_without_look_up_again: LookUpAgain,
    it_breaks_without_journal_before_metadata: JournalBeforeMetadata,
}
