//! `kelp_objects`: the object log's store behind the host's four functions.

use super::data::{KelpBytes, KelpStr, Slices, Texts, Versioned};
use super::host::Host;
use super::operation::{Callback, KelpOp, Operation};
use super::status::{Failure, KELP_EXISTS, KELP_NOT_FOUND, KELP_OK};
use crate::store::objects::{ObjectError, Objects, Put};
use bytes::Bytes;
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;
use std::sync::Arc;

pub const KELP_OP_PUT_NEW: u32 = 1;
pub const KELP_OP_GET: u32 = 2;
pub const KELP_OP_LIST: u32 = 3;
pub const KELP_OP_DELETE: u32 = 4;

/// In a get: to the end of the object.
pub const KELP_TO_END: u64 = u64::MAX;

/// Stores an object, unless the key has one: to look and to insert are one step, of which exactly
/// one wins when several put the same key. Success means that the object is durable.
///
/// Completed with KELP_OK: created. KELP_EXISTS: the key has an object; nothing was changed.
/// KELP_UNAVAILABLE: unknown; Kelp looks what became of it and puts the same bytes again.
#[repr(C)]
pub struct KelpPutNew {
    pub op: KelpOp,
    /// Printable ASCII, `/` between its parts, at most 200 bytes.
    pub key: KelpStr,
    /// What the object holds: all parts, one after the other.
    pub parts: *const KelpBytes,
    pub part_count: usize,
    /// Of all parts together.
    pub total_bytes: usize,
}

/// Reads a range of an object. It sees every `put_new` that was completed before.
///
/// Completed with KELP_OK, or KELP_NOT_FOUND: no such object.
#[repr(C)]
pub struct KelpGet {
    pub op: KelpOp,
    pub key: KelpStr,
    pub offset: u64,
    /// At most so many bytes; KELP_TO_END: all. A range past the object's end is cut.
    pub length: u64,
    /// out: the bytes, best in memory of `kelp_op_alloc` or `kelp_op_lend`.
    pub data: KelpBytes,
}

/// Lists keys in ascending order of their bytes. It shows every key whose `put_new` was completed
/// before, with KELP_OK or KELP_EXISTS, and that was not deleted.
///
/// Completed with KELP_OK.
#[repr(C)]
pub struct KelpList {
    pub op: KelpOp,
    /// Only keys that begin with this.
    pub prefix: KelpStr,
    /// Only keys that come behind this. Empty: from the first.
    pub after: KelpStr,
    /// At most so many keys. Fewer mean that there are no more.
    pub limit: usize,
    /// out
    pub keys: *const KelpStr,
    /// out
    pub key_count: usize,
}

/// Deletes objects. It may act late, partly and in any order; a key without an object is no
/// error.
///
/// Completed with KELP_OK.
#[repr(C)]
pub struct KelpDelete {
    pub op: KelpOp,
    pub keys: *const KelpStr,
    pub key_count: usize,
}

macro_rules! operations {
    ($($body:ty => $kind:ident,)*) => {
        $(
            // SAFETY: `repr(C)`, and the first field is the head.
            unsafe impl Operation for $body {
                const KIND: u32 = $kind;
            }
        )*
    };
}
pub(super) use operations;

operations! {
    KelpPutNew => KELP_OP_PUT_NEW,
    KelpGet => KELP_OP_GET,
    KelpList => KELP_OP_LIST,
    KelpDelete => KELP_OP_DELETE,
}

/// A store of immutable objects. All four functions are needed.
///
/// The keys that Kelp uses: `journal/...`, `segment/...`, `checkpoint/...`, `metadata/...` and
/// others; a host keeps them apart from its own by a prefix, and may take the first part for a
/// folder.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KelpObjects {
    /// sizeof(kelp_objects)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    pub put_new: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpPutNew)>,
    pub get: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpGet)>,
    pub list: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpList)>,
    pub delete_keys: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpDelete)>,
}

// SAFETY: `repr(C)`, begins with its size, and all its fields may be zero.
unsafe impl Versioned for KelpObjects {
    const FIRST_SIZE: usize = size_of::<Self>();
}

/// [`Objects`] over the host's functions.
pub(super) struct HostObjects {
    host: Arc<Host>,
    put_new: Callback<KelpPutNew>,
    get: Callback<KelpGet>,
    list: Callback<KelpList>,
    delete_keys: Callback<KelpDelete>,
}

impl HostObjects {
    /// Gives the name of a function that is missing.
    pub(super) fn new(host: &Arc<Host>, table: KelpObjects) -> Result<Self, &'static str> {
        Ok(Self {
            host: host.clone(),
            put_new: table.put_new.ok_or("put_new")?,
            get: table.get.ok_or("get")?,
            list: table.list.ok_or("list")?,
            delete_keys: table.delete_keys.ok_or("delete_keys")?,
        })
    }
}

#[async_trait::async_trait]
impl Objects for HostObjects {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        let (key, parts) = (key.to_owned(), Slices::new(parts));
        let asked = {
            let body = KelpPutNew {
                op: KelpOp::NEW,
                key: KelpStr::of(&key),
                parts: parts.as_ptr(),
                part_count: parts.len(),
                total_bytes: parts.total_bytes(),
            };
            self.host.ask(self.put_new, body, (key, parts), |outcome| match outcome.status {
                KELP_OK => Ok(Put::Created),
                KELP_EXISTS => Ok(Put::Exists),
                _ => Err(outcome.failure()),
            })
        };
        Ok(asked.await?)
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        let key = key.to_owned();
        let asked = {
            let body = KelpGet {
                op: KelpOp::NEW,
                key: KelpStr::of(&key),
                offset,
                length: len,
                data: KelpBytes::EMPTY,
            };
            self.host.ask(self.get, body, key, |outcome| match outcome.status {
                KELP_OK if outcome.body.data.len as u64 > outcome.body.length => {
                    Err(Failure::Malformed("a get gave more than was asked for"))
                }
                KELP_OK => outcome.bytes(outcome.body.data).map(Some),
                KELP_NOT_FOUND => Ok(None),
                _ => Err(outcome.failure()),
            })
        };
        Ok(asked.await?)
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, ObjectError> {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        let (p, a) = (prefix.clone(), after.clone());
        let asked = {
            let body = KelpList {
                op: KelpOp::NEW,
                prefix: KelpStr::of(&prefix),
                after: KelpStr::of(&after),
                limit,
                keys: ptr::null(),
                key_count: 0,
            };
            self.host.ask(self.list, body, (prefix, after), move |outcome| {
                outcome.ok()?;
                let keys = outcome.array(outcome.body.keys, outcome.body.key_count)?;
                let keys: Vec<_> =
                    keys.iter().map(|key| outcome.text(*key)).collect::<Result<_, _>>()?;
                check_list(&keys, &p, &a, limit)?;
                Ok(keys)
            })
        };
        Ok(asked.await?)
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        let keys = Texts::new(keys);
        let asked = {
            let body = KelpDelete { op: KelpOp::NEW, keys: keys.as_ptr(), key_count: keys.len() };
            self.host.ask(self.delete_keys, body, keys, |outcome| outcome.ok())
        };
        Ok(asked.await?)
    }
}

/// What is deleted and where a journal ends depends on lists, so a wrong one must not be believed.
fn check_list(keys: &[String], prefix: &str, after: &str, limit: usize) -> Result<(), Failure> {
    if keys.len() > limit {
        return Err(Failure::Malformed("a list has more keys than asked for"));
    }
    let mut last = after;
    for key in keys {
        if !key.starts_with(prefix) {
            return Err(Failure::Malformed("a list has a key without its prefix"));
        }
        if key.as_str() <= last {
            return Err(Failure::Malformed("the keys of a list do not ascend"));
        }
        last = key;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[&str]) -> Result<(), Failure> {
        let keys: Vec<_> = keys.iter().map(|key| key.to_string()).collect();
        check_list(&keys, "j/", "j/1", 3)
    }

    #[test]
    fn a_list_out_of_order_or_bounds_is_not_believed() {
        assert_eq!(check(&["j/2", "j/3"]), Ok(()));
        assert!(check(&["j/3", "j/2"]).is_err());
        assert!(check(&["j/2", "j/2"]).is_err());
        assert!(check(&["j/1"]).is_err());
        assert!(check(&["k/2"]).is_err());
        assert!(check(&["j/2", "j/3", "j/4", "j/5"]).is_err());
    }
}
