//! Switches that turn single rules of the metadata log off.
//!
//! The simulation proves with them that each rule is needed: without it, it must find a failure.
//! They exist with the feature `faults` only; without it every rule is a constant.

/// One rule of the metadata log, named as in the model that checked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    NumberedCommands,
    VerifyAfterPut,
    VerifyAfterRead,
    SnapshotBeforeDelete,
    FreshList,
}

/// How a metadata log works: what only simulations change.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many commands there are between two snapshots.
    pub snapshot_every: u64,
    /// The rule that is off.
    #[cfg(feature = "faults")]
    pub off: Option<Rule>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            snapshot_every: 500,
            #[cfg(feature = "faults")]
            off: None,
        }
    }
}

impl Settings {
    #[cfg(feature = "faults")]
    pub(super) fn keep(self, rule: Rule) -> bool {
        self.off != Some(rule)
    }

    #[cfg(not(feature = "faults"))]
    pub(super) const fn keep(self, _rule: Rule) -> bool {
        true
    }
}
