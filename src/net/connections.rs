//! How many connections there are, in all and from each address.

use super::Closed;
use crate::config::Config;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

#[derive(Default)]
pub(super) struct Connections {
    by_address: Mutex<HashMap<IpAddr, usize>>,
    /// How many are open in all.
    open: watch::Sender<usize>,
}

/// A connection that may be. Dropped when it is closed.
pub(super) struct Admission {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Connections {
    /// One more, if the limits of now allow it.
    pub(super) fn admit(
        self: &Arc<Self>,
        address: IpAddr,
        config: &Config,
    ) -> Result<Admission, Closed> {
        let max = config.max_connections.unsigned_abs() as usize;
        let max_per_address = config.max_connections_per_ip.unsigned_abs() as usize;
        let mut by_address = self.lock();
        if *self.open.borrow() >= max {
            return Err(Closed::TooMany);
        }
        if by_address.get(&address).copied().unwrap_or(0) >= max_per_address {
            return Err(Closed::TooManyOfAddress);
        }
        *by_address.entry(address).or_default() += 1;
        self.open.send_modify(|open| *open += 1);
        Ok(Admission { connections: self.clone(), address })
    }

    pub(super) fn open(&self) -> usize {
        *self.open.borrow()
    }

    pub(super) async fn all_closed(&self) {
        // It fails when the sender is gone, which is `self`.
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let address = self.address;
            tracing::error!(%address, "a bug: a request panicked, so its connection is closed");
        }
        let mut by_address = self.connections.lock();
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
        self.connections.open.send_modify(|open| *open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_in_all_and_for_each_address() {
        let limits = |text| Config::from_text(text).unwrap();
        let config = limits("max.connections=3\nmax.connections.per.ip=2");
        let connections = Arc::new(Connections::default());
        let [one, two] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        let first = connections.admit(one, &config).unwrap();
        let _second = connections.admit(one, &config).unwrap();
        assert!(matches!(connections.admit(one, &config), Err(Closed::TooManyOfAddress)));
        let _third = connections.admit(two, &config).unwrap();
        assert!(matches!(connections.admit(two, &config), Err(Closed::TooMany)));
        let raised = limits("max.connections=4\nmax.connections.per.ip=2");
        assert!(connections.admit(two, &raised).is_ok());
        drop(first);
        assert!(connections.admit(one, &config).is_ok());
    }
}
