//! Properties: what is said about the places that runs pass, and reported over all of them.
//!
//! Each property is declared in the custom section `spelunk:properties` of the module, so that one that no
//! run reached can be named.

/// This holds every time it is reached: `always!(a <= b, "bounds are ordered")`. Where it does not, the run
/// is a finding.
///
/// Unlike an assertion it does nothing on native targets, and a report names it if it was never reached.
#[macro_export]
macro_rules! always {
    ($condition:expr, $name:literal $(,)?) => {
        // The condition stands outside the block, whose items it might mean otherwise.
        match $condition {
            condition => {
                $crate::__declare_property!("always ", $name);
                $crate::__private::always(NAME, condition)
            }
        }
    };
}

/// This holds at least once, in some run: `sometimes!(retries > 0, "a request is retried")`.
///
/// A report names it if it never held: then the exploration does not reach what it was made for.
#[macro_export]
macro_rules! sometimes {
    ($condition:expr, $name:literal $(,)?) => {
        // The condition stands outside the block, whose items it might mean otherwise.
        match $condition {
            condition => {
                $crate::__declare_property!("sometimes ", $name);
                $crate::__private::sometimes(NAME, condition)
            }
        }
    };
}

/// This place is reached at least once, in some run: `reachable!("recovery found a torn record")`.
#[macro_export]
macro_rules! reachable {
    ($name:literal $(,)?) => {{
        $crate::__declare_property!("reachable ", $name);
        $crate::__private::reachable(NAME)
    }};
}

/// This place is never reached: `never!("two leaders in one term")`. A run that does is a finding.
///
/// Unlike [`unreachable!`] it does nothing on native targets, where the code goes on.
#[macro_export]
macro_rules! never {
    ($name:literal $(,)?) => {{
        $crate::__declare_property!("unreachable ", $name);
        $crate::__private::never(NAME)
    }};
}

/// Every run that is fair comes to a state in which this holds: `eventually!("decided", self.decided.is_some())`.
///
/// It stands in an invariant, which looks at every state; to say it twice in one step, and not the same, is a failure. `spelunk check` tells a run
/// without end on which it never holds, as steps that lead to a loop, and the loop. What fair is, each rule says:
/// `#[fair(strong)]`, `#[fair(each)]`, `#[unfair]`.
#[macro_export]
macro_rules! eventually {
    ($name:literal, $condition:expr $(,)?) => {
        // The condition stands outside the block, whose items it might mean otherwise.
        match $condition {
            condition => {
                $crate::__declare_property!("eventually ", $name);
                $crate::__private::eventually(NAME, condition)
            }
        }
    };
}

/// Every run that is fair comes again and again to a state in which this holds:
/// `always_eventually!("the critical section is free", self.inside == 0)`. See [`eventually!`].
#[macro_export]
macro_rules! always_eventually {
    ($name:literal, $condition:expr $(,)?) => {
        match $condition {
            condition => {
                $crate::__declare_property!("always-eventually ", $name);
                $crate::__private::always_eventually(NAME, condition)
            }
        }
    };
}

/// After a state in which the first holds there comes one in which the second does, on every run that is fair:
/// `leads_to!("a request is answered", self.is_waiting(0), self.is_served(0))`. The same state will do. See [`eventually!`].
#[macro_export]
macro_rules! leads_to {
    ($name:literal, $from:expr, $to:expr $(,)?) => {
        match ($from, $to) {
            (from, to) => {
                $crate::__declare_property!("leads-to ", $name);
                $crate::__private::leads_to(NAME, from, to)
            }
        }
    };
}

/// Puts a line into the custom section, which the linker joins from all object files, and defines `NAME`.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_property {
    ($kind:literal, $name:literal) => {
        const LINE: &str = ::core::concat!($kind, $name, "\n");
        #[used]
        #[cfg_attr(target_family = "wasm", unsafe(link_section = "spelunk:properties"))]
        static DECLARATION: [u8; LINE.len()] = $crate::__private::declaration(LINE);
        // Nothing can point at a custom section. The name is a static so that a generic function, which is
        // compiled into another crate, points into the object file of its declaration, and so links it.
        static NAME: &str = $name;
    };
}

/// The bytes of a declaration, whose length is `N`. Anything but one line does not compile.
#[doc(hidden)]
pub const fn declaration<const N: usize>(line: &str) -> [u8; N] {
    let bytes = *line.as_bytes().first_chunk().unwrap();
    let mut place = 0;
    while place + 1 < N {
        assert!(bytes[place] != b'\n', "the name of a property is one line");
        place += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use crate::abi::play;

    #[test]
    fn each_property_tells_the_host() {
        let ((), log) = play(&[], || {
            always!(1 < 2, "a");
            sometimes!(1 > 2, "b");
            reachable!("c");
            never!("d");
            eventually!("e", true);
            always_eventually!("f", false);
            leads_to!("g", true, false);
        });
        let said = ["always a true", "sometimes b false", "reachable c", "unreachable d"];
        assert_eq!(log[..4], said);
        assert_eq!(log[4..], ["eventually e true", "always-eventually f false", "leads-to g true false"]);
    }

    #[test]
    fn conditions_see_the_names_of_the_user() {
        const NAME: u8 = 1;
        let ((), log) = play(&[], || always!(NAME == 1, "a"));
        assert_eq!(log, ["always a true"]);
    }

    #[test]
    fn a_declaration_is_its_line() {
        assert_eq!(super::declaration::<12>("reachable a\n"), *b"reachable a\n");
    }

    #[test]
    #[should_panic = "one line"]
    fn a_declaration_is_one_line() {
        super::declaration::<8>("always\n\n");
    }
}
