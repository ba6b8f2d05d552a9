//! Which version of the interface, and of the library, a host has before it.

use std::ffi::{CStr, c_char};

/// The version of this interface. It grows by one when structs or functions are added, and stays
/// compatible: a host that was built with a lower number runs with a newer library.
pub const KELP_ABI_VERSION: u32 = 5;

/// The interface version of the library that is linked: KELP_ABI_VERSION of its own header. A
/// host that uses what a version brought checks that this is not lower.
#[unsafe(no_mangle)]
pub extern "C" fn kelp_abi_version() -> u32 {
    KELP_ABI_VERSION
}

/// The version of the library as text, such as "0.1.0". Static memory, never freed.
#[unsafe(no_mangle)]
pub extern "C" fn kelp_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL"),
        };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_crates() {
        // SAFETY: the function gives a static string with its NUL.
        let version = unsafe { CStr::from_ptr(kelp_version()) };
        assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
    }
}
