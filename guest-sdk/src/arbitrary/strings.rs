//! Text of other types than `String`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::Arbitrary;

macro_rules! of_text {
    ($($text:ty)*) => {$(
        impl Arbitrary for $text {
            fn arbitrary() -> $text {
                String::arbitrary().into()
            }
        }
    )*};
}

of_text!(Box<str> Rc<str> Arc<str> OsString PathBuf);

impl Arbitrary for Box<Path> {
    fn arbitrary() -> Box<Path> {
        PathBuf::arbitrary().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any;
    use crate::strategy::tests::{check, check_simplest};

    #[test]
    fn each_is_drawn_as_a_string() {
        let slash = [1, 0, u64::from(b'/'), 0];
        let calls = "text( element( boolean 0.83 char( boolean 0.20 integer 32..=126 48 ) ) element( boolean 0.83 ) )";
        check(any::<PathBuf>(), &slash, "/".into(), calls);
        check(any::<OsString>(), &slash, "/".into(), calls);
        check(any::<Box<str>>(), &slash, "/".into(), calls);
        check_simplest(any::<(Rc<str>, Arc<str>)>(), ("".into(), "".into()));
        check_simplest(any::<Box<Path>>(), PathBuf::new().into());
    }
}
