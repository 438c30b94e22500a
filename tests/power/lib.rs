//! Empty: cargo wants a target where there are dependencies.
