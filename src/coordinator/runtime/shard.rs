//! One machine with its journal, its deadlines and those who wait for it.
//!
//! ```text
//!  Loading ───────▶ Serving ───────▶ Ended: fenced, topic deleted, broker ends
//!     ▲                │
//!     └────────────────┘ an append's outcome is unknown, or the machine panicked: it is dropped,
//!                        and built anew when all that was appended has its outcome
//! ```
//!
//! A task for each shard waits: for the oldest append, for the machine's deadline, for answers
//! that are late. It is woken when one of these comes to be, or comes to be earlier.

use super::journal::{Journal, Limits, Stored};
use super::{Answer, Asked, Kind};
use crate::coordinator::{Machine, Now, Outcome, Ticket};
use crate::protocol::error_code::ErrorCode::{
    self, CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator,
};
use crate::store::StoreError;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

pub(super) struct Shard<M: Machine> {
    kind: Arc<Kind<M>>,
    journal: Box<dyn Journal<M::Record>>,
    state: Mutex<State<M>>,
    /// Tells the shard's task that there is something else to wait for.
    wake: Notify,
}

enum State<M: Machine> {
    Loading(Loading<M>),
    Serving(Serving<M>),
    /// With what still waits for the store: it may come true.
    Ended(VecDeque<Held<M>>),
}

struct Loading<M: Machine> {
    /// What the machine before appended, and has no outcome yet.
    unresolved: Vec<Stored>,
    /// What the machine is told when it is there.
    told: Vec<M::Request>,
}

struct Serving<M: Machine> {
    machine: M,
    next_ticket: u64,
    /// Those who are not answered yet.
    asked: HashMap<Ticket, Asking<M>>,
    /// What was appended and is not known to be stored, in this order.
    held: VecDeque<Held<M>>,
    /// So many of these are late: their answers were given up.
    late: usize,
    /// When the task looks by itself.
    next_look: Option<Instant>,
}

type Asking<M> = oneshot::Sender<Answer<<M as Machine>::Response>>;

/// An append, and the answers that saw it and nothing later.
struct Held<M: Machine> {
    /// `None` while the task waits for it.
    stored: Option<Stored>,
    /// When its answers do not wait any longer.
    deadline: Instant,
    answers: Vec<(Asking<M>, M::Response)>,
}

/// Why a machine serves no longer.
enum Over<M: Machine> {
    /// It is built anew when this has its outcome.
    Lost(Vec<Stored>),
    Ended(VecDeque<Held<M>>),
}

/// What a machine can be told while it loads.
const MOST_TOLD: usize = 10_000;

/// How long a journal that cannot be read is left alone: doubled each time, up to the most.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

impl<M> Shard<M>
where
    M: Machine<Request: Send, Response: Send, Record: Send, Effect: Send> + Send + 'static,
{
    /// Begins to read the journal. Called inside an async runtime.
    pub(super) fn start(kind: Arc<Kind<M>>, journal: Box<dyn Journal<M::Record>>) -> Arc<Self> {
        let (state, wake) = (Mutex::new(State::loading(Vec::new())), Notify::new());
        let shard = Arc::new(Self { kind, journal, state, wake });
        tokio::spawn(shard.clone().run());
        shard
    }

    pub(super) fn ask(&self, request: M::Request) -> Asked<M::Response> {
        self.handle(&mut self.lock(), request, Limits::Apply)
    }

    pub(super) fn show(&self, show: &mut impl FnMut(&M)) {
        if let State::Serving(serving) = &*self.lock() {
            show(&serving.machine);
        }
    }

    fn handle(
        &self,
        state: &mut State<M>,
        request: M::Request,
        limits: Limits,
    ) -> Asked<M::Response> {
        let serving = match state {
            State::Loading(_) => return Asked::refused(CoordinatorLoadInProgress),
            State::Ended(_) => return Asked::refused(NotCoordinator),
            State::Serving(serving) => serving,
        };
        let ticket = Ticket(serving.next_ticket);
        serving.next_ticket += 1;
        let now = self.kind.clock.now();
        let decided = guard(|| serving.machine.handle(now, ticket, request));
        // Nothing changed yet, so only the one who asked is told.
        let Some(outcome) = decided else { return Asked::refused(ErrorCode::UnknownServerError) };
        let (asking, asked) = oneshot::channel();
        serving.asked.insert(ticket, asking);
        if let Err(refused) = self.carry_out(state, outcome, limits)
            && let State::Serving(serving) = state
            && let Some(asking) = serving.asked.remove(&ticket)
        {
            tell(asking, Err(refused));
        }
        Asked(asked)
    }

    /// Asks for something to be done of which nobody waits to hear. It is done after the load if
    /// that is still going on.
    pub(super) fn tell(&self, request: M::Request) {
        let mut state = self.lock();
        match &mut *state {
            State::Loading(loading) if loading.told.len() < MOST_TOLD => loading.told.push(request),
            State::Loading(_) => tracing::error!("a coordinator is told too much while it loads"),
            State::Serving(_) => drop(self.handle(&mut state, request, Limits::DoNotApply)),
            State::Ended(_) => {}
        }
    }

    /// Ends the machine: whoever waits for it is told to look for its coordinator elsewhere. What
    /// waits for the store only is answered when it is stored.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Ended(VecDeque::new())) {
            State::Serving(Serving { asked, held, .. }) => {
                asked.into_values().for_each(|asking| tell(asking, Err(NotCoordinator)));
                *state = State::Ended(held);
            }
            State::Loading(_) => {}
            ended @ State::Ended(_) => *state = ended,
        }
        self.wake.notify_one();
    }

    /// Does all of what a machine decided, or nothing if the journal refuses its records.
    fn carry_out(
        &self,
        state: &mut State<M>,
        outcome: Outcome<M>,
        limits: Limits,
    ) -> Result<(), ErrorCode> {
        let State::Serving(serving) = state else { return Ok(()) };
        let Outcome { records, effects, answers } = outcome;
        if !records.is_empty() {
            let stored = Some(self.journal.append(&records, limits)?);
            let deadline = Instant::now() + self.kind.write_timeout;
            serving.held.push_back(Held { stored, deadline, answers: Vec::new() });
        }
        let machine = &mut serving.machine;
        let changed = guard(|| {
            records.into_iter().for_each(|record| machine.apply(record));
            effects.into_iter().for_each(|effect| machine.note(effect));
            machine.deadline()
        });
        let Some(deadline) = changed else {
            // Its state is broken, but all that counts is in the journal.
            state.lose(State::loading);
            self.wake.notify_one();
            return Ok(());
        };
        for (ticket, response) in answers {
            // One who was answered hears nothing more.
            let Some(asking) = serving.asked.remove(&ticket) else { continue };
            let is_late = serving.late == serving.held.len();
            match serving.held.back_mut() {
                None => tell(asking, Ok(response)),
                Some(_) if is_late => tell(asking, Err(CoordinatorNotAvailable)),
                Some(last) => last.answers.push((asking, response)),
            }
        }
        let due = deadline.and_then(|at| self.kind.clock.instant(at));
        if serving.must_wake(due) {
            self.wake.notify_one();
        }
        Ok(())
    }

    async fn run(self: Arc<Self>) {
        while self.load().await {
            match self.serve().await {
                Over::Lost(unresolved) => {
                    for stored in unresolved {
                        // Whatever came of it, the journal shows it now.
                        let _ = stored.await;
                    }
                }
                Over::Ended(held) => {
                    for Held { stored, answers, .. } in held {
                        let stored = wait_for(&mut { stored }).await;
                        let answer = |response| stored.map(|()| response).or(Err(NotCoordinator));
                        answers.into_iter().for_each(|(asking, r)| tell(asking, answer(r)));
                    }
                }
            }
        }
    }

    /// Builds the machine; false when the shard has ended.
    async fn load(&self) -> bool {
        let mut retry = FIRST_RETRY;
        loop {
            let tried = tokio::select! {
                biased;
                () = self.ended() => return false,
                tried = self.try_load() => tried,
            };
            match tried {
                Ok(()) => return true,
                Err(StoreError::Fenced | StoreError::UnknownPartition) => self.end(),
                Err(error) => tracing::error!(%error, "a coordinator cannot read its records"),
            }
            tokio::select! {
                biased;
                () = self.ended() => return false,
                () = sleep(retry) => retry = (2 * retry).min(LONGEST_RETRY),
            }
        }
    }

    async fn try_load(&self) -> Result<(), StoreError> {
        let Ok(_permit) = self.kind.loads.acquire().await else {
            unreachable!("the semaphore is never closed");
        };
        let panicked = || StoreError::Corrupt("the machine panicked".into());
        let mut machine = Some((self.kind.machine)());
        let mut show = |record| {
            let applied = machine.as_mut().and_then(|m| guard(|| m.apply(record)));
            if applied.is_none() {
                machine = None;
            }
        };
        self.journal.load(&mut show).await?;
        let machine = machine.ok_or_else(panicked)?;
        let now = self.kind.clock.now();
        let outcome = guard(|| machine.loaded(now)).ok_or_else(panicked)?;
        let first = guard(|| (self.kind.first)(&machine)).ok_or_else(panicked)?;

        let mut state = self.lock();
        let State::Loading(loading) = &mut *state else { return Ok(()) };
        let told: Vec<_> = first.into_iter().chain(loading.told.drain(..)).collect();
        *state = State::Serving(Serving::new(machine));
        self.must_carry_out(&mut state, outcome);
        for request in told {
            drop(self.handle(&mut state, request, Limits::DoNotApply));
        }
        Ok(())
    }

    /// Waits until the shard is asked to end.
    async fn ended(&self) {
        while !matches!(*self.lock(), State::Ended(_)) {
            self.wake.notified().await;
        }
    }

    /// Waits for what there is to wait for, as long as the machine serves.
    async fn serve(&self) -> Over<M> {
        let mut oldest = None;
        loop {
            let look = {
                let mut state = self.lock();
                let serving = match &mut *state {
                    State::Serving(serving) => serving,
                    State::Loading(loading) => {
                        let unresolved = std::mem::take(&mut loading.unresolved);
                        return Over::Lost(unresolved.into_iter().chain(oldest).collect());
                    }
                    State::Ended(held) => {
                        let mut held = std::mem::take(held);
                        if let Some(first) = held.front_mut() {
                            first.stored = first.stored.take().or(oldest);
                        }
                        return Over::Ended(held);
                    }
                };
                if oldest.is_none() {
                    oldest = serving.held.front_mut().and_then(|held| held.stored.take());
                }
                serving.next_look = self.next_look(serving);
                serving.next_look
            };
            tokio::select! {
                biased;
                stored = wait_for(&mut oldest) => {
                    oldest = None;
                    self.stored(&mut self.lock(), stored);
                }
                () = sleep_to(look) => self.look(&mut self.lock()),
                () = self.wake.notified() => {}
            }
        }
    }

    /// Gives out the answers that waited for the oldest append.
    fn stored(&self, state: &mut State<M>, stored: Result<(), ErrorCode>) {
        let serving = match state {
            State::Serving(serving) => serving,
            // It ended meanwhile, and the answers wait for this still.
            State::Ended(held) => {
                if let Some(first) = held.front_mut() {
                    first.stored = Some(Box::pin(std::future::ready(stored)));
                }
                return;
            }
            State::Loading(_) => return,
        };
        match stored {
            Ok(()) => {
                let Some(held) = serving.held.pop_front() else { return };
                serving.late = serving.late.saturating_sub(1);
                held.answers.into_iter().for_each(|(asking, response)| tell(asking, Ok(response)));
            }
            Err(ErrorCode::NotLeaderOrFollower | ErrorCode::UnknownTopicOrPartition) => {
                state.lose(|_| State::Ended(VecDeque::new()));
            }
            Err(error) => {
                tracing::warn!(?error, "it is unknown whether a coordinator's records are stored");
                state.lose(State::loading);
            }
        }
    }

    /// Does what is due.
    fn look(&self, state: &mut State<M>) {
        let State::Serving(serving) = state else { return };
        serving.give_up_late();
        let now = self.kind.clock.now();
        let machine = &serving.machine;
        let due = |now: Now| machine.deadline().is_some_and(|at| at <= now.monotonic);
        match guard(|| due(now).then(|| machine.expire(now))) {
            Some(Some(outcome)) => self.must_carry_out(state, outcome),
            Some(None) => {}
            None => state.lose(State::loading),
        }
    }

    /// Does what a machine must do whoever asks. Were it refused, it would be due for ever.
    fn must_carry_out(&self, state: &mut State<M>, outcome: Outcome<M>) {
        if let Err(error) = self.carry_out(state, outcome, Limits::DoNotApply) {
            tracing::error!(?error, "a coordinator's records were refused; it is built anew");
            state.lose(State::loading);
        }
    }

    fn next_look(&self, serving: &Serving<M>) -> Option<Instant> {
        let due = guard(|| serving.machine.deadline()).flatten();
        let due = due.and_then(|at| self.kind.clock.instant(at));
        let late = serving.held.get(serving.late).map(|held| held.deadline);
        due.into_iter().chain(late).min()
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        // What panics under the lock is caught there.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Machine> State<M> {
    fn loading(unresolved: Vec<Stored>) -> Self {
        Self::Loading(Loading { unresolved, told: Vec::new() })
    }

    /// Drops the machine; whoever waits for it is told to look for its coordinator anew.
    fn lose(&mut self, next: impl FnOnce(Vec<Stored>) -> Self) {
        match std::mem::replace(self, Self::Ended(VecDeque::new())) {
            Self::Serving(Serving { asked, held, .. }) => {
                let mut unresolved = Vec::new();
                for held in held {
                    unresolved.extend(held.stored);
                    let answers = held.answers.into_iter();
                    answers.for_each(|(asking, _)| tell(asking, Err(NotCoordinator)));
                }
                asked.into_values().for_each(|asking| tell(asking, Err(NotCoordinator)));
                *self = next(unresolved);
            }
            Self::Loading(loading) => *self = next(loading.unresolved),
            ended @ Self::Ended(_) => *self = ended,
        }
    }
}

impl<M: Machine> Serving<M> {
    fn new(machine: M) -> Self {
        let (asked, held) = (HashMap::new(), VecDeque::new());
        Self { machine, next_ticket: 0, asked, held, late: 0, next_look: None }
    }

    /// Tells those who waited long enough for the store.
    fn give_up_late(&mut self) {
        while let Some(held) = self.held.get_mut(self.late)
            && held.deadline <= Instant::now()
        {
            let answers = held.answers.drain(..);
            answers.for_each(|(asking, _)| tell(asking, Err(CoordinatorNotAvailable)));
            self.late += 1;
        }
    }

    /// Whether the task must be told: it waits for no append, or would look later than at the
    /// machine's deadline and than when the last answer is late.
    fn must_wake(&mut self, due: Option<Instant>) -> bool {
        let late = self.held.range(self.late..).next_back().map(|held| held.deadline);
        let sooner = due.into_iter().chain(late).min();
        let is_sooner = sooner.is_some_and(|at| self.next_look.is_none_or(|look| at < look));
        if is_sooner {
            self.next_look = sooner;
        }
        is_sooner || self.held.front().is_some_and(|held| held.stored.is_some())
    }
}

/// Answers one who asked, if it is still there.
fn tell<T>(asking: oneshot::Sender<Answer<T>>, answer: Answer<T>) {
    let _ = asking.send(answer);
}

/// Runs a piece of a machine; `None` if it panicked.
fn guard<T>(piece: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(piece)).ok()
}

async fn wait_for(stored: &mut Option<Stored>) -> Result<(), ErrorCode> {
    match stored {
        Some(stored) => stored.await,
        None => std::future::pending().await,
    }
}

async fn sleep_to(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
