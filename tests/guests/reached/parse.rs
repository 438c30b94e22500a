//! Reads numbers and words.

#[derive(PartialEq)]
enum Kind {
    Number,
    Word,
    Other,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: i32,
}

fn kind_of(byte: u8) -> Kind {
    match byte {
        b'0'..=b'9' => Kind::Number,
        b'a'..=b'z' | b'_' => Kind::Word,
        _ => Kind::Other,
    }
}

/// One function of the source, several of the module.
fn largest<T: PartialOrd + Copy>(all: &[T], least: T) -> T {
    let mut largest = least;
    for one in all {
        if *one > largest {
            largest = *one;
        }
    }
    largest
}

impl Reader<'_> {
    fn next(&self) -> Option<Kind> {
        self.bytes.get(self.at).copied().map(kind_of)
    }

    fn number(&mut self) -> u32 {
        let mut value: u32 = 0;
        while self.next() == Some(Kind::Number) {
            let digit = u32::from(self.bytes[self.at] - b'0');
            value = value.wrapping_mul(10).wrapping_add(digit);
            self.at += 1;
        }
        value
    }

    fn word(&mut self) {
        let start = self.at;
        while self.next() == Some(Kind::Word) {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        match word[0] {
            b'a' => self.depth += 1,
            b'b' => {
                self.depth -= 1;
                if largest(word, 0) == b'y' {
                    self.depth = 0;
                }
            }
            b'z' if word == b"zz" => {
                panic!("zz");
            }
            _ => {}
        }
    }
}

#[allow(dead_code)]
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn never(x: i32) -> i32 {
    x + 1
}

pub fn parse(bytes: &[u8]) -> u32 {
    let mut reader = Reader { bytes, at: 0, depth: 0 };
    let mut numbers = Vec::new();
    while let Some(kind) = reader.next() {
        match kind {
            Kind::Number => {
                let number = reader.number();
                if number > 99 {
                    return number;
                }
                numbers.push(number);
            }
            Kind::Word => reader.word(),
            Kind::Other => {
                reader.at += 1;
                continue;
            }
        }
        if reader.depth > 3 {
            reader.depth = never(reader.depth);
        }
    }
    largest(&numbers, 0)
}
