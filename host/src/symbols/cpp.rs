//! The names of C++, as the Itanium ABI mangles them: `_ZN4bank6LedgerIiE2atEi` is `bank::Ledger::at`.
//!
//! Only the path of a function is of use here, without the arguments of templates and the types of parameters, which make
//! names of hundreds of characters. So this reads the path and passes over types, in one pass. Crates that print whole
//! names try several readings of a part, and of a part of that, so that a hostile name of 200 bytes keeps them busy for
//! ever.

/// How deep functions may be defined within functions.
const LOCAL_MAX: usize = 8;

/// The path of a mangled function; none where this is not one, or has parts that are not understood.
pub(super) fn demangled(name: &str) -> Option<String> {
    let mangled = name.strip_prefix("_Z").or_else(|| name.strip_prefix("__Z"))?;
    let mut reader = Reader { rest: mangled.as_bytes() };
    // A thunk to a function: an offset, and the function.
    while let Some(kind @ (b'h' | b'v')) = reader.rest.strip_prefix(b"T").and_then(|rest| rest.first()) {
        let offsets = if *kind == b'h' { 1 } else { 2 };
        reader.rest = &reader.rest[2..];
        (0..offsets).try_for_each(|_| reader.sequence())?;
    }
    let mut path = Vec::new();
    reader.name(&mut path, LOCAL_MAX)?;
    (!path.is_empty()).then(|| path.join("::"))
}

/// What a letter opens that a later `E` closes.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    /// A path, in which small letters are operators.
    Path,
    /// The parameters of a closure, after which its number follows.
    Closure,
    Other,
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (&next, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(next)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.next();
        }
        is_next
    }

    fn eat_all(&mut self, bytes: &[u8]) {
        while self.peek().is_some_and(|byte| bytes.contains(&byte)) {
            self.next();
        }
    }

    /// A number or an index, and the `_` behind it.
    fn sequence(&mut self) -> Option<()> {
        while let Some(b'0'..=b'9' | b'A'..=b'Z' | b'n') = self.peek() {
            self.next();
        }
        self.eat(b'_').then_some(())
    }

    /// `4bank`.
    fn word(&mut self) -> Option<&'a str> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(digits);
        let length: usize = str::from_utf8(digits).ok()?.parse().ok()?;
        let (word, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        str::from_utf8(word).ok()
    }

    /// A whole name, added to a path.
    fn name(&mut self, path: &mut Vec<String>, local_left: usize) -> Option<()> {
        if self.eat(b'N') {
            self.eat_all(b"rVK");
            self.eat_all(b"RO");
            while !self.eat(b'E') {
                self.part(path)?;
            }
            return Some(());
        }
        if self.eat(b'Z') {
            self.name(path, local_left.checked_sub(1)?)?;
            self.pass(Open::Other)?;
            return match self.peek()? {
                b's' | b'd' => None,
                _ => self.name(path, local_left - 1),
            };
        }
        if self.rest.starts_with(b"St") {
            self.part(path)?;
        }
        self.eat(b'L');
        self.part(path)
    }

    /// A part of a path.
    fn part(&mut self, path: &mut Vec<String>) -> Option<()> {
        let next = self.peek()?;
        if next.is_ascii_digit() {
            let word = self.word()?;
            let is_unnamed = word.starts_with("_GLOBAL__N");
            path.push(if is_unnamed { "(anonymous namespace)" } else { word }.to_string());
            return Some(());
        }
        self.next();
        let part = match (next, self.peek()) {
            (b'I', _) => return self.pass(Open::Other),
            (b'L', _) => return Some(()),
            (b'B', _) => return self.word().map(drop),
            (b'C', Some(b'1'..=b'5')) => path.last()?.clone(),
            (b'D', Some(b'0'..=b'5')) => format!("~{}", path.last()?),
            (b'S', Some(of_std)) => of_std_namespace(of_std)?.to_string(),
            (b'U', Some(b'l')) => {
                self.next();
                path.push("{lambda}".to_string());
                return self.pass(Open::Closure);
            }
            (b'U', Some(b't')) => {
                self.next();
                path.push("{unnamed}".to_string());
                return self.sequence();
            }
            (b'a'..=b'z', Some(second)) => operator([next, second])?,
            _ => return None,
        };
        self.next();
        path.push(part);
        Some(())
    }

    /// Passes over what is open, to the `E` that closes it.
    fn pass(&mut self, open: Open) -> Option<()> {
        let mut opened = vec![open];
        while let Some(&innermost) = opened.last() {
            let next = self.peek()?;
            if next.is_ascii_digit() {
                self.word()?;
                continue;
            }
            self.next();
            match next {
                b'E' => {
                    opened.pop();
                    if innermost == Open::Closure {
                        self.sequence()?;
                    }
                }
                b'N' => {
                    opened.push(Open::Path);
                    self.eat_all(b"rVK");
                    self.eat_all(b"RO");
                }
                b'I' | b'J' | b'F' | b'Z' => opened.push(Open::Other),
                b'L' if innermost != Open::Path => self.literal(&mut opened)?,
                b'S' | b'T' if self.peek()?.is_ascii_lowercase() => drop(self.next()),
                b'S' | b'T' => self.sequence()?,
                b'A' => self.sequence()?,
                b'C' if innermost == Open::Path => drop(self.next()),
                b'D' => match self.next()? {
                    b'T' | b't' | b'O' | b'w' => return None,
                    b'v' | b'F' | b'B' | b'U' => self.sequence()?,
                    _ => {}
                },
                b'U' if self.eat(b'l') => opened.push(Open::Closure),
                b'U' if self.eat(b't') => self.sequence()?,
                // Behind a local name: which of several.
                b'_' => self.eat_all(b"_0123456789"),
                b'X' | b'Q' | b'W' => return None,
                b'a'..=b'z' if innermost == Open::Path => drop(self.next()),
                _ => {}
            }
        }
        Some(())
    }

    /// `Lb1E`, `L4Kind2E`, `LN4bank4KindE2E` or `L_Z3addiiE`, behind the `L`.
    fn literal(&mut self, opened: &mut Vec<Open>) -> Option<()> {
        match self.peek()? {
            b'_' => {
                opened.push(Open::Other);
                self.next();
                self.eat(b'Z');
                return Some(());
            }
            b'0'..=b'9' => drop(self.word()?),
            b'N' => {
                self.next();
                self.word()?;
                while !self.eat(b'E') {
                    self.word()?;
                }
            }
            _ => drop(self.next()),
        }
        while !self.eat(b'E') {
            let digit = self.next()?;
            (digit.is_ascii_digit() || digit.is_ascii_lowercase()).then_some(())?;
        }
        Some(())
    }
}

fn of_std_namespace(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b't' => "std",
        b'a' => "std::allocator",
        b'b' => "std::basic_string",
        b's' => "std::string",
        b'i' => "std::istream",
        b'o' => "std::ostream",
        b'd' => "std::iostream",
        _ => return None,
    })
}

/// Two letters for each operator, and the operator.
const OPERATORS: &str = "
    nwnew nanew[] dldelete dadelete[] awco_await ps+ ng- ad& de* co~ pl+ mi- ml* dv/ rm% an& or| eo^ aS= pL+= mI-= mL*=
    dV/= rM%= aN&= oR|= eO^= ls<< rs>> lS<<= rS>>= eq== ne!= lt< gt> le<= ge>= ss<=> nt! aa&& oo|| pp++ mm-- cm, pm->* pt->
    cl() ix[] qu?
";

/// `operator+`; none for those that convert, which a type follows.
fn operator(letters: [u8; 2]) -> Option<String> {
    let operator =
        OPERATORS.split_whitespace().find_map(|known| known.strip_prefix(str::from_utf8(&letters).ok()?))?;
    let space = if operator.starts_with(char::is_alphabetic) { " " } else { "" };
    Some(format!("operator{space}{operator}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        assert_eq!(demangled(name).as_deref(), Some(expected));
    }

    #[track_caller]
    fn refuse(name: &str) {
        assert_eq!(demangled(name), None);
    }

    #[test]
    fn paths() {
        check("_Z3diePKc", "die");
        check("_ZL3diePKc", "die");
        check("_ZN4bank4postEi", "bank::post");
        check("_ZN4bankL3dieEv", "bank::die");
        check("_ZNK4bank6LedgerIiE2atEi", "bank::Ledger::at");
        check("_ZN4bank6LedgerC2Ev", "bank::Ledger::Ledger");
        check("_ZN4bank6LedgerD0Ev", "bank::Ledger::~Ledger");
        check("_ZN12_GLOBAL__N_13dieEv", "(anonymous namespace)::die");
        check("_ZNSt3__26vectorIiNS_9allocatorIiEEE2atB9nin220108Em", "std::__2::vector::at");
        check("_ZSt9terminatev", "std::terminate");
        check("_ZSt4sortIPiEvT_S1_", "std::sort");
        check("_ZThn16_N4bank6Ledger4postEv", "bank::Ledger::post");
        check("_ZTv0_n24_N4bank6Ledger4postEv", "bank::Ledger::post");
    }

    #[test]
    fn operators() {
        check("_Znwm", "operator new");
        check("_ZN4bank6LedgeraSERKS0_", "bank::Ledger::operator=");
        check("_ZN4bank6LedgerclEv", "bank::Ledger::operator()");
        check("_ZlsRSoi", "operator<<");
    }

    #[test]
    fn functions_in_functions() {
        check("_ZZN4bank4postEiENKUlvE_clEv", "bank::post::{lambda}::operator()");
        check("_ZZ4mainENK3$_0clEv", "main::$_0::operator()");
        check("_ZZN1AIiE1fEvEN1B1gEv", "A::f::B::g");
        check("_ZN1AUt_1fEv", "A::{unnamed}::f");
    }

    #[test]
    fn arguments_of_templates_are_passed_over() {
        check("_ZN1AILi5ELb1ELN1B4KindE2EL4Kind1EE1fEv", "A::f");
        check("_ZN1AIL_Z1giEE1fEv", "A::f");
        check("_ZN1AIFvPKcEA10_iM1BiJS0_DpT_EE1fEv", "A::f");
        check("_ZN1AIZN1B1gEvEUlvE0_E1fEv", "A::f");
        check("_ZN1AINS_1BclIiEEE1fEv", "A::f");
    }

    #[test]
    fn what_is_not_understood_is_left() {
        for name in ["_Z", "_ZN", "_ZN4ban", "die", "_ZTV4Bank", "_ZGVZ4mainE1a", "_ZN1AIXsz1BEE1fEv"] {
            refuse(name);
        }
        refuse("_ZN4bankcviEv");
        refuse("_ZN99999999999999999999bankE");
        refuse(&format!("_Z{}", "Z".repeat(100_000)));
        refuse(&format!("_ZN1A{}", "I".repeat(100_000)));
    }
}
