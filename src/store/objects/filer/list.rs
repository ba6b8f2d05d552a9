//! Lists of keys.

use super::messages::{Entry, ListEntriesRequest};
use super::{Result, Shared};

use std::pin::Pin;

/// How many entries are asked for at once.
const PAGE: usize = 1_024;

impl Shared {
    pub(super) async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>> {
        let (directory, name) = prefix.split_at(prefix.rfind('/').map_or(0, |slash| slash + 1));
        let mut listing = Listing { shared: self, after, limit, keys: Vec::new() };
        if limit > 0 {
            listing.directory(directory.into(), name).await?;
        }
        Ok(listing.keys)
    }
}

/// A walk through directories in the order of keys.
///
/// The filer lists a directory in the order of names, and that is not the order of keys: of the names `a` (a
/// directory), `a-b` and `ab`, the keys are `a-b`, `a/...`, `ab`, since `-` is less than `/`. So a directory waits
/// until a name follows that is greater than its own with the slash.
struct Listing<'a> {
    shared: &'a Shared,
    after: &'a str,
    limit: usize,
    keys: Vec<String>,
}

type Walk<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl<'l> Listing<'l> {
    /// Adds the keys below a directory, which is empty or ends with a slash. Its entries must begin with `prefix`.
    fn directory<'a>(&'a mut self, directory: String, prefix: &'a str) -> Walk<'a>
    where
        'l: 'a,
    {
        Box::pin(async move {
            let rest = match self.after.strip_prefix(directory.as_str()) {
                Some(rest) => rest,
                // All of its keys are less.
                None if self.after > directory.as_str() => return Ok(()),
                None => "",
            };
            let mut from = rest.split('/').next().unwrap_or_default().to_owned();
            // A stack: each name begins with the one below it.
            let mut waiting = self.waiting(&directory, prefix, &from).await?;
            let mut inclusive = true;
            loop {
                let size = PAGE.min(self.limit - self.keys.len());
                let page = self.page(&directory, prefix, &from, inclusive, size).await?;
                let is_last = page.len() < size;
                inclusive = false;
                for entry in page {
                    self.enter(&directory, &mut waiting, Some(&entry.name)).await?;
                    if self.is_full() {
                        return Ok(());
                    }
                    from.clone_from(&entry.name);
                    match entry.is_directory {
                        true => waiting.push(entry.name),
                        false => self.add(format!("{directory}{}", entry.name)),
                    }
                }
                if is_last {
                    self.enter(&directory, &mut waiting, None).await?;
                }
                if is_last || self.is_full() {
                    return Ok(());
                }
            }
        })
    }

    /// Adds the keys of the directories that waited and come before the name `next`.
    async fn enter(
        &mut self,
        directory: &str,
        waiting: &mut Vec<String>,
        next: Option<&str>,
    ) -> Result<()> {
        let comes_before =
            |last: &mut String| next.is_none_or(|next| next.bytes().gt(last.bytes().chain([b'/'])));
        while !self.is_full()
            && let Some(last) = waiting.pop_if(comes_before)
        {
            self.directory(format!("{directory}{last}/"), "").await?;
        }
        Ok(())
    }

    /// The directories that come before the name `from` by name but not by key.
    async fn waiting(&self, directory: &str, prefix: &str, from: &str) -> Result<Vec<String>> {
        let mut waiting = Vec::new();
        if !from.starts_with(prefix) {
            return Ok(waiting);
        }
        let below_slash = |i: &usize| from.as_bytes()[*i] <= b'/';
        for i in (prefix.len().max(1)..from.len()).filter(below_slash) {
            let Some(name) = from.get(..i) else { continue };
            let path = self.path(&format!("{directory}{name}"));
            let found = self.shared.look_up(&[&path]).await?;
            if found.entries[0].as_ref().is_some_and(|entry| entry.is_directory) {
                waiting.push(name.to_owned());
            }
        }
        Ok(waiting)
    }

    fn add(&mut self, key: String) {
        if key.as_str() > self.after {
            self.keys.push(key);
        }
    }

    fn is_full(&self) -> bool {
        self.keys.len() == self.limit
    }

    fn path(&self, key: &str) -> String {
        format!("{}/{key}", self.shared.directory).trim_end_matches('/').to_owned()
    }

    /// Entries of one directory. A directory that does not exist has none.
    async fn page(
        &self,
        directory: &str,
        prefix: &str,
        from: &str,
        inclusive: bool,
        size: usize,
    ) -> Result<Vec<Entry>> {
        let request = ListEntriesRequest {
            directory: self.path(directory),
            prefix: prefix.into(),
            start_from_file_name: from.into(),
            inclusive_start_from: inclusive,
            limit: size as u32,
            omit_chunks: true,
        };
        self.shared.calls.list_entries(&request).await
    }
}
