//! Bytes and structs that cross the boundary.

use super::status::{KELP_INVALID_ARGUMENT, KELP_NULL_POINTER, KelpStatus};
use bytes::Bytes;
use std::ffi::c_char;
use std::mem::{MaybeUninit, size_of};
use std::ptr;

/// Text in UTF-8 that somebody else owns. Not NUL-terminated. NULL with length 0 is empty.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KelpStr {
    pub ptr: *const c_char,
    pub len: usize,
}

/// Bytes that somebody else owns. NULL with length 0 is empty.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KelpBytes {
    pub ptr: *const u8,
    pub len: usize,
}

impl KelpStr {
    pub(super) const EMPTY: Self = Self { ptr: ptr::null(), len: 0 };

    pub(super) fn of(text: &str) -> Self {
        let KelpBytes { ptr, len } = KelpBytes::of(text.as_bytes());
        Self { ptr: ptr.cast(), len }
    }

    /// As much of `text` as fits into `max` bytes, in whole characters.
    pub(super) fn cut(text: &str, max: usize) -> &str {
        &text[..text.floor_char_boundary(max)]
    }

    pub(super) fn as_bytes(self) -> KelpBytes {
        KelpBytes { ptr: self.ptr.cast(), len: self.len }
    }
}

impl KelpBytes {
    pub(super) const EMPTY: Self = Self { ptr: ptr::null(), len: 0 };

    /// What is empty is NULL: an empty slice may point to 1, for which Go ends the process when it
    /// finds it on a stack.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let ptr = if bytes.is_empty() { ptr::null() } else { bytes.as_ptr() };
        Self { ptr, len: bytes.len() }
    }
}

/// Slices for the host, with the memory they point to.
pub(super) struct Slices {
    raw: Box<[KelpBytes]>,
    _owned: Vec<Bytes>,
}

// SAFETY: the pointers lead into `_owned`, which is immutable and may be sent.
unsafe impl Send for Slices {}

impl Slices {
    pub(super) fn new(owned: Vec<Bytes>) -> Self {
        Self { raw: owned.iter().map(|part| KelpBytes::of(part)).collect(), _owned: owned }
    }

    /// Stays valid when `self` is moved.
    pub(super) fn as_ptr(&self) -> *const KelpBytes {
        self.raw.as_ptr()
    }

    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    pub(super) fn total_bytes(&self) -> usize {
        self.raw.iter().map(|part| part.len).sum()
    }
}

/// Strings for the host, with the memory they point to.
pub(super) struct Texts {
    raw: Box<[KelpStr]>,
    _owned: Vec<String>,
}

// SAFETY: the pointers lead into `_owned`, which nobody changes and which may be sent.
unsafe impl Send for Texts {}

impl Texts {
    pub(super) fn new(owned: Vec<String>) -> Self {
        Self { raw: owned.iter().map(|text| KelpStr::of(text)).collect(), _owned: owned }
    }

    /// Stays valid when `self` is moved.
    pub(super) fn as_ptr(&self) -> *const KelpStr {
        self.raw.as_ptr()
    }

    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }
}

/// A struct that a host fills and whose first field is `uint32_t struct_size`.
///
/// # Safety
///
/// The struct is `repr(C)`, begins with that field, and is valid when all its bytes are zero.
pub(super) unsafe trait Versioned: Sized {
    /// Its size in version 1 of the interface: no host has a smaller one.
    const FIRST_SIZE: usize;
}

/// Copies what the host's version of a struct has; the fields it does not know are zero.
///
/// A host that is newer than the library has more fields: they must be zero, as the library
/// would not do what they ask for.
///
/// # Safety
///
/// `from` is null or points to a struct that is as long as its first field says.
pub(super) unsafe fn read_versioned<T: Versioned>(from: *const T) -> Result<T, KelpStatus> {
    if from.is_null() {
        return Err(KELP_NULL_POINTER);
    }
    // SAFETY: the caller's struct has its size in front.
    let size = unsafe { ptr::read(from.cast::<u32>()) } as usize;
    if size < T::FIRST_SIZE {
        return Err(KELP_INVALID_ARGUMENT);
    }
    // SAFETY: the caller's struct is that long.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
    let (known, newer) = bytes.split_at(size.min(size_of::<T>()));
    if newer.iter().any(|byte| *byte != 0) {
        return Err(KELP_INVALID_ARGUMENT);
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: `known` is not longer than the struct, which is valid with zeros behind it.
    unsafe {
        ptr::copy_nonoverlapping(known.as_ptr(), value.as_mut_ptr().cast::<u8>(), known.len());
        Ok(value.assume_init())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct First {
        struct_size: u32,
        a: u32,
    }

    #[repr(C)]
    struct Second {
        struct_size: u32,
        a: u32,
        b: u64,
    }

    // SAFETY: both begin with their size and are made of integers.
    unsafe impl Versioned for First {
        const FIRST_SIZE: usize = 8;
    }
    // SAFETY: as above.
    unsafe impl Versioned for Second {
        const FIRST_SIZE: usize = 8;
    }

    #[test]
    fn an_older_host_leaves_new_fields_zero() {
        let old = First { struct_size: 8, a: 7 };
        // SAFETY: the struct has the length it says.
        let read = unsafe { read_versioned::<Second>((&raw const old).cast()) }.unwrap();
        assert_eq!((read.a, read.b), (7, 0));
    }

    #[test]
    fn a_newer_host_must_leave_unknown_fields_zero() {
        let mut new = Second { struct_size: 16, a: 7, b: 0 };
        // SAFETY: the struct has the length it says.
        let read = unsafe { read_versioned::<First>((&raw const new).cast()) };
        assert_eq!(read.map(|first| first.a), Ok(7));
        new.b = 1;
        // SAFETY: as above.
        let read = unsafe { read_versioned::<First>((&raw const new).cast()) };
        assert_eq!(read.map(|first| first.a), Err(KELP_INVALID_ARGUMENT));
    }

    #[test]
    fn a_struct_without_its_size_is_refused() {
        let unset = First { struct_size: 0, a: 7 };
        // SAFETY: the struct is longer than it says.
        assert_eq!(unsafe { read_versioned(&unset) }.map(|_| ()), Err(KELP_INVALID_ARGUMENT));
        // SAFETY: null is allowed.
        let null = unsafe { read_versioned::<First>(ptr::null()) };
        assert_eq!(null.map(|_| ()), Err(KELP_NULL_POINTER));
    }

    #[test]
    fn what_is_empty_has_no_place() {
        assert!(KelpStr::of("").ptr.is_null() && KelpBytes::of(&[]).ptr.is_null());
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(KelpStr::cut("grün", 3), "gr");
        assert_eq!(KelpStr::cut("grün", 10), "grün");
    }
}
