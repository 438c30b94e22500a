//! Reads values of an instance.

use super::super::interface::{Ty, Type, aligned, discriminant_bytes, payload_offset};
use super::super::value::{Value, canonical32, canonical64};
use super::{Passed, Passing, broken};

/// What a core function was given or returned, by its bits.
pub(crate) struct FlatReader<'f> {
    pub(crate) values: &'f [u64],
}

impl FlatReader<'_> {
    fn next(&mut self) -> u64 {
        let (first, rest) = self.values.split_first().expect("there are as many values as the types have");
        self.values = rest;
        *first
    }
}

impl Passing<'_> {
    /// A value out of those that a core function was given or returned.
    pub(in super::super) fn lift_flat(&mut self, ty: Ty, from: &mut FlatReader<'_>) -> Passed<Value> {
        self.count(1, 0)?;
        let interface = self.interface.clone();
        Ok(match &interface.types[ty].ty {
            Type::Bool => Value::Bool(from.next() as u32 != 0),
            Type::Integer(bytes, is_signed) => integer(from.next(), *bytes, *is_signed),
            Type::F32 => Value::F32(canonical32(from.next() as u32)),
            Type::F64 => Value::F64(canonical64(from.next())),
            Type::Char => Value::Char(char_of(from.next() as u32)?),
            Type::String => {
                let (at, len) = (from.next() as u32, from.next() as u32);
                Value::String(self.lift_text(at, len)?)
            }
            Type::List(element) => {
                let (at, len) = (from.next() as u32, from.next() as u32);
                self.lift_list(*element, at, len)?
            }
            Type::Record(fields) => {
                let fields = fields.iter().map(|(_, ty)| self.lift_flat(*ty, from));
                Value::Record(fields.collect::<Passed<_>>()?)
            }
            Type::Tuple(types) => {
                let fields = types.iter().map(|ty| self.lift_flat(*ty, from));
                Value::Record(fields.collect::<Passed<_>>()?)
            }
            Type::Variant(_, cases) => {
                let case = from.next() as u32;
                // All cases are passed as many values.
                let many = interface.types[ty].flat.as_ref().map_or(0, Vec::len) - 1;
                let (payload, rest) = from.values.split_at(many);
                from.values = rest;
                let Some((_, ty)) = cases.get(case as usize) else { return no_case(case, cases.len()) };
                let payload = ty.map(|ty| self.lift_flat(ty, &mut FlatReader { values: payload }));
                Value::Variant(case, payload.transpose()?.map(Box::new))
            }
            Type::Flags(names) => Value::Flags(flags(from.next() as u32, names.len())),
            Type::Handle(handle, is_own) => {
                Value::Handle(self.lift_handle(from.next() as u32, *handle, *is_own)?)
            }
        })
    }

    /// Values one behind the other in memory.
    pub(in super::super) fn lift_fields(
        &mut self,
        types: impl Iterator<Item = Ty>,
        mut at: u32,
    ) -> Passed<Vec<Value>> {
        let mut fields = Vec::new();
        for ty in types {
            let known = &self.interface.types[ty];
            at = aligned(at, known.align);
            let size = known.size;
            fields.push(self.lift(ty, at)?);
            at = at.wrapping_add(size);
        }
        Ok(fields)
    }

    /// A value that an instance says is there.
    pub(in super::super) fn lift_result(&mut self, ty: Ty, at: u32) -> Passed<Value> {
        let known = &self.interface.types[ty];
        self.check((known.size, known.align), at)?;
        self.lift(ty, at)
    }

    /// The parameters of an import that are not passed as values of a core function.
    pub(in super::super) fn lift_params(&mut self, params: &[(String, Ty)], at: u32) -> Passed<Vec<Value>> {
        self.check(self.interface.types.layout(params.iter().map(|(_, ty)| *ty)), at)?;
        self.lift_fields(params.iter().map(|(_, ty)| *ty), at)
    }

    /// Whether so many bytes may be there.
    pub(super) fn check(&self, (size, align): (u32, u32), at: u32) -> Passed<()> {
        if !at.is_multiple_of(align) {
            return broken(format!("values are at {at:#x}, which is not aligned to {align} bytes"));
        }
        if u64::from(at) + u64::from(size) > self.memory().len() as u64 {
            return broken(format!("values of {size} bytes at {at:#x} end outside of memory"));
        }
        Ok(())
    }

    /// A value in memory that is there.
    pub(in super::super) fn lift(&mut self, ty: Ty, at: u32) -> Passed<Value> {
        self.count(1, 0)?;
        let interface = self.interface.clone();
        Ok(match &interface.types[ty].ty {
            Type::Bool => Value::Bool(self.number(at, 1)? != 0),
            Type::Integer(bytes, is_signed) => {
                integer(self.number(at, u32::from(*bytes))?, *bytes, *is_signed)
            }
            Type::F32 => Value::F32(canonical32(self.number(at, 4)? as u32)),
            Type::F64 => Value::F64(canonical64(self.number(at, 8)?)),
            Type::Char => Value::Char(char_of(self.number(at, 4)? as u32)?),
            Type::String => {
                let [at, len] = self.pair(at)?;
                Value::String(self.lift_text(at, len)?)
            }
            Type::List(element) => {
                let [at, len] = self.pair(at)?;
                self.lift_list(*element, at, len)?
            }
            Type::Record(fields) => Value::Record(self.lift_fields(fields.iter().map(|(_, ty)| *ty), at)?),
            Type::Tuple(types) => Value::Record(self.lift_fields(types.iter().copied(), at)?),
            Type::Variant(_, cases) => {
                let case = self.number(at, discriminant_bytes(cases.len()))? as u32;
                let Some((_, ty)) = cases.get(case as usize) else { return no_case(case, cases.len()) };
                let payload = at + payload_offset(&interface.types, cases);
                let payload = ty.map(|ty| self.lift(ty, payload)).transpose()?;
                Value::Variant(case, payload.map(Box::new))
            }
            Type::Flags(names) => {
                Value::Flags(flags(self.number(at, interface.types[ty].size)? as u32, names.len()))
            }
            Type::Handle(handle, is_own) => {
                let index = self.number(at, 4)? as u32;
                Value::Handle(self.lift_handle(index, *handle, *is_own)?)
            }
        })
    }

    fn lift_list(&mut self, element: Ty, at: u32, len: u32) -> Passed<Value> {
        let known = &self.interface.types[element];
        let (size, align) = (known.size, known.align);
        let is_bytes = known.ty == Type::Integer(1, false);
        if !at.is_multiple_of(align) {
            return broken(format!("a list begins at {at:#x}, which is not aligned to {align} bytes"));
        }
        let bytes = u64::from(len) * u64::from(size);
        if u64::from(at) + bytes > self.memory().len() as u64 {
            return broken(format!("a list of {len} elements at {at:#x} ends outside of memory"));
        }
        if is_bytes {
            self.count(0, len as usize)?;
            return Ok(Value::Bytes(self.read(at, len as usize)?.to_vec()));
        }
        let mut elements = Vec::new();
        for index in 0..len {
            elements.push(self.lift(element, at + index * size)?);
        }
        Ok(Value::List(elements))
    }

    fn pair(&self, at: u32) -> Passed<[u32; 2]> {
        Ok([self.number(at, 4)? as u32, self.number(at + 4, 4)? as u32])
    }

    /// A number of so many bytes.
    fn number(&self, at: u32, bytes: u32) -> Passed<u64> {
        Ok(match bytes {
            1 => u64::from(self.read_array::<1>(at)?[0]),
            2 => u64::from(u16::from_le_bytes(self.read_array(at)?)),
            4 => u64::from(u32::from_le_bytes(self.read_array(at)?)),
            _ => u64::from_le_bytes(self.read_array(at)?),
        })
    }
}

fn integer(bits: u64, bytes: u8, is_signed: bool) -> Value {
    match (bytes, is_signed) {
        (1, false) => Value::Unsigned(u64::from(bits as u8)),
        (2, false) => Value::Unsigned(u64::from(bits as u16)),
        (4, false) => Value::Unsigned(u64::from(bits as u32)),
        (_, false) => Value::Unsigned(bits),
        (1, true) => Value::Signed(i64::from(bits as i8)),
        (2, true) => Value::Signed(i64::from(bits as i16)),
        (4, true) => Value::Signed(i64::from(bits as i32)),
        (_, true) => Value::Signed(bits as i64),
    }
}

fn char_of(code: u32) -> Passed<char> {
    match char::from_u32(code) {
        Some(letter) => Ok(letter),
        None => broken(format!("{code:#x} is no character")),
    }
}

fn flags(bits: u32, many: usize) -> u32 {
    if many >= 32 { bits } else { bits & ((1 << many) - 1) }
}

fn no_case<T>(case: u32, many: usize) -> Passed<T> {
    broken(format!("a value is of the case {case}, and there are {many}"))
}
