//! Hands values to an instance.

use super::super::interface::{Flat, Ty, Type, aligned, discriminant_bytes, payload_offset};
use super::super::value::{Value, canonical32, canonical64};
use super::{Passed, Passing};

impl Passing<'_> {
    /// Appends what a value is passed as to a core function, by its bits.
    pub(in super::super) fn lower_flat(&mut self, ty: Ty, value: &Value, flat: &mut Vec<u64>) -> Passed<()> {
        self.count(1, 0)?;
        let interface = self.interface.clone();
        match (&interface.types[ty].ty, value) {
            (Type::String, Value::String(text)) => {
                let (at, len) = self.lower_text(text)?;
                flat.extend([u64::from(at), u64::from(len)]);
            }
            (Type::List(element), value) => {
                let (at, len) = self.lower_list(*element, value)?;
                flat.extend([u64::from(at), u64::from(len)]);
            }
            (Type::Record(fields), Value::Record(values)) => {
                for ((_, ty), value) in fields.iter().zip(values) {
                    self.lower_flat(*ty, value, flat)?;
                }
            }
            (Type::Tuple(types), Value::Record(values)) => {
                for (ty, value) in types.iter().zip(values) {
                    self.lower_flat(*ty, value, flat)?;
                }
            }
            (Type::Variant(_, cases), Value::Variant(case, payload)) => {
                let end = flat.len() + interface.types[ty].flat.as_ref().map_or(0, Vec::len);
                flat.push(u64::from(*case));
                if let (Some(ty), Some(payload)) = (cases[*case as usize].1, payload) {
                    let before = flat.len();
                    self.lower_flat(ty, payload, flat)?;
                    // What is passed for another type is wider: with zeros, not with its sign.
                    let own = interface.types[ty].flat.iter().flatten();
                    for (value, own) in flat[before..].iter_mut().zip(own) {
                        if matches!(own, Flat::I32 | Flat::F32) {
                            *value &= u64::from(u32::MAX);
                        }
                    }
                }
                flat.resize(end, 0);
            }
            (_, value) => {
                let bits = self.bits(ty, value)?;
                flat.push(bits);
            }
        }
        Ok(())
    }

    /// Puts parameters in memory; where.
    pub(in super::super) fn lower_params<'v>(
        &mut self,
        params: impl Iterator<Item = (Ty, &'v Value)> + Clone,
    ) -> Passed<u32> {
        let (size, align) = self.interface.types.layout(params.clone().map(|(ty, _)| ty));
        let at = self.realloc((0, 0), align, size)?;
        self.lower_fields(params, at)?;
        Ok(at)
    }

    /// Writes a result to where an instance says.
    pub(in super::super) fn lower_result(&mut self, ty: Ty, value: &Value, at: u32) -> Passed<()> {
        let known = &self.interface.types[ty];
        self.check((known.size, known.align), at)?;
        self.lower(ty, value, at)
    }

    /// Writes values one behind the other.
    pub(in super::super) fn lower_fields<'v>(
        &mut self,
        fields: impl Iterator<Item = (Ty, &'v Value)>,
        mut at: u32,
    ) -> Passed<()> {
        for (ty, value) in fields {
            let known = &self.interface.types[ty];
            at = aligned(at, known.align);
            let size = known.size;
            self.lower(ty, value, at)?;
            at = at.wrapping_add(size);
        }
        Ok(())
    }

    /// Writes a value.
    pub(in super::super) fn lower(&mut self, ty: Ty, value: &Value, at: u32) -> Passed<()> {
        self.count(1, 0)?;
        let interface = self.interface.clone();
        match (&interface.types[ty].ty, value) {
            (Type::String, Value::String(text)) => {
                let (text, len) = self.lower_text(text)?;
                self.write_pair(at, text, len)
            }
            (Type::List(element), value) => {
                let (list, len) = self.lower_list(*element, value)?;
                self.write_pair(at, list, len)
            }
            (Type::Record(fields), Value::Record(values)) => {
                self.lower_fields(fields.iter().map(|(_, ty)| *ty).zip(values), at)
            }
            (Type::Tuple(types), Value::Record(values)) => {
                self.lower_fields(types.iter().copied().zip(values), at)
            }
            (Type::Variant(_, cases), Value::Variant(case, payload)) => {
                let bytes = discriminant_bytes(cases.len()) as usize;
                self.write(at, &case.to_le_bytes()[..bytes])?;
                match (cases[*case as usize].1, payload) {
                    (Some(ty), Some(payload)) => {
                        self.lower(ty, payload, at + payload_offset(&interface.types, cases))
                    }
                    _ => Ok(()),
                }
            }
            (_, value) => {
                let (bits, size) = (self.bits(ty, value)?, interface.types[ty].size as usize);
                self.write(at, &bits.to_le_bytes()[..size])
            }
        }
    }

    /// The bits of a value that is passed as one.
    fn bits(&mut self, ty: Ty, value: &Value) -> Passed<u64> {
        Ok(match value {
            Value::Bool(is) => u64::from(*is),
            Value::Signed(number) => match self.interface.types[ty].size {
                8 => *number as u64,
                _ => u64::from(*number as u32),
            },
            Value::Unsigned(number) => *number,
            Value::F32(bits) => u64::from(canonical32(*bits)),
            Value::F64(bits) => canonical64(*bits),
            Value::Char(letter) => u64::from(u32::from(*letter)),
            Value::Flags(bits) => u64::from(*bits),
            Value::Handle(handle) => {
                let Type::Handle(ty, is_own) = self.interface.types[ty].ty else {
                    unreachable!("a handle is of a type of handles")
                };
                u64::from(self.lower_handle(*handle, ty, is_own)?)
            }
            other => unreachable!("{other:?} is no value of its type"),
        })
    }

    fn lower_list(&mut self, element: Ty, value: &Value) -> Passed<(u32, u32)> {
        let known = &self.interface.types[element];
        let (size, align) = (known.size, known.align);
        match value {
            Value::Bytes(bytes) => {
                self.count(0, bytes.len())?;
                let at = self.realloc((0, 0), align, bytes.len() as u32)?;
                self.write(at, bytes)?;
                Ok((at, bytes.len() as u32))
            }
            Value::List(elements) => {
                let bytes = elements.len() as u64 * u64::from(size);
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                let at = self.realloc((0, 0), align, bytes)?;
                for (index, value) in elements.iter().enumerate() {
                    self.lower(element, value, at + index as u32 * size)?;
                }
                Ok((at, elements.len() as u32))
            }
            other => unreachable!("{other:?} is no list"),
        }
    }

    fn write_pair(&mut self, at: u32, first: u32, second: u32) -> Passed<()> {
        self.write(at, &first.to_le_bytes())?;
        self.write(at + 4, &second.to_le_bytes())
    }
}
