//! What fuzzers get stuck at, after the descriptions of the test suites of libFuzzer and AFL++. Each is a function that ends the
//! process at the input that is looked for. They are compiled without optimisation, as those suites are.

mod integers;
mod strings;
mod structures;
mod transforms;

/// The input that was looked for.
pub(crate) fn solved() {
    std::process::abort();
}

/// The `at`-th little-endian number of the input.
macro_rules! numbers {
    ($($name:ident: $ty:ty),*) => {$(
        pub(crate) fn $name(data: &[u8], offset: usize) -> $ty {
            const LEN: usize = size_of::<$ty>();
            data.get(offset..offset + LEN).and_then(|bytes| bytes.first_chunk::<LEN>()).map_or(0, |bytes| <$ty>::from_le_bytes(*bytes))
        }
    )*};
}
numbers!(u16_at: u16, u32_at: u32, u64_at: u64, u128_at: u128);

/// A roadblock, by its name.
pub type Roadblock = (&'static str, fn(&[u8]));

macro_rules! roadblocks {
    ($($module:ident::$name:ident),* $(,)?) => {
        /// All of them.
        pub const ALL: &[Roadblock] = &[$((stringify!($name), $module::$name)),*];

        #[cfg(target_family = "wasm")]
        mod exported {
            $(
                #[unsafe(no_mangle)]
                extern "C" fn $name(data: *const u8, len: usize) -> i32 {
                    // SAFETY: the fuzzer hands over so many bytes.
                    super::$module::$name(unsafe { std::slice::from_raw_parts(data, len) });
                    0
                }
            )*
        }
    };
}

roadblocks! {
    integers::letters, integers::four_bytes_apart, integers::ranges, integers::magic_16, integers::magic_32, integers::magic_64,
    integers::magic_128, integers::swapped_bytes, integers::cases_32, integers::cases_64, integers::cases_less_one,
    integers::least_and_constant_32, integers::least_and_constant_64, integers::division, integers::load, integers::constraints,
    integers::chain_32, integers::chain_64, integers::signed_chain, integers::single_byte, integers::float_32, integers::float_64,
    integers::float_of_integer,
    strings::token, strings::tokens_in_a_row, strings::token_64, strings::c_string, strings::c_strings, strings::c_prefix,
    strings::part, strings::any_case, strings::string_equal, strings::repeated, strings::tokens_in_any_order, strings::halves_equal,
    strings::dictionary, strings::hand_written,
    structures::counter, structures::all_of_six, structures::recursion, structures::nested_calls, structures::maze,
    structures::length_and_tag,
    transforms::crc, transforms::sum, transforms::xor, transforms::hash_of_rest, transforms::decimal, transforms::hexadecimal,
    transforms::shifted_letters, transforms::product,
}
