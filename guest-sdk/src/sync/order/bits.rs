//! Values of atomics as numbers.

/// What an atomic holds, in 64 bits.
pub(in crate::sync) trait Bits: Copy {
    /// It says where something is.
    const IS_ADDRESS: bool = false;
    fn to_bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
}

macro_rules! bits {
    ($($value:ty),*) => {
        $(
            impl Bits for $value {
                fn to_bits(self) -> u64 {
                    self as u64
                }

                fn of_bits(bits: u64) -> $value {
                    bits as $value
                }
            }
        )*
    };
}

bits!(i8, u8, i16, u16, i32, u32, i64, u64, isize, usize);

impl Bits for bool {
    fn to_bits(self) -> u64 {
        self.into()
    }

    fn of_bits(bits: u64) -> bool {
        bits != 0
    }
}

impl<T> Bits for *mut T {
    const IS_ADDRESS: bool = true;

    fn to_bits(self) -> u64 {
        self.expose_provenance() as u64
    }

    fn of_bits(bits: u64) -> *mut T {
        std::ptr::with_exposed_provenance_mut(bits as usize)
    }
}
