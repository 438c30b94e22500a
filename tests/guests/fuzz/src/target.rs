// What is done with an input; the guest and the native target of the benchmarks both include it.

/// Parses a document.
pub(crate) fn target(data: &[u8]) {
    if cfg!(feature = "empty") {
        return;
    }
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) {
        let version = value.get("v").and_then(serde_json::Value::as_i64);
        assert!(!cfg!(feature = "bug") || version != Some(7), "version 7 is not supported");
    }
}
