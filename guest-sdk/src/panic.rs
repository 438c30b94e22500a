//! The panic hook, by which the host learns what a guest says before its trap.

/// Sends every panic from here on to the host, with its place. Does nothing outside a guest.
pub(crate) fn install_hook() {
    #[cfg(target_family = "wasm")]
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic whose payload is not text");
        match info.location() {
            Some(place) => crate::abi::panic(message, place.file(), place.line(), place.column()),
            None => crate::abi::panic(message, "", 0, 0),
        }
    }));
}
