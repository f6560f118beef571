//! Where the whole numbers of a C structure lie, from the types that the compiler left in the
//! object.

use std::ffi::OsStr;

use libbpf_rs::HasSize;
use libbpf_rs::btf::types::{Array, DataSec, Int, IntEncoding, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType, TypeId};

/// A number of a structure, with its name there; that of a structure inside has both names, with a
/// dot between, that of an array its index.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Value {
    pub name: String,
    pub value: i128,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    name: String,
    offset: usize,
    bytes: usize,
    signed: bool,
}

impl Field {
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<i128> {
        let own = bytes.get(self.offset..self.offset + self.bytes)?;
        let mut wide = [0; 16];
        wide.get_mut(..own.len())?.copy_from_slice(own);
        let value = u128::from_le_bytes(wide);
        let unused = 128 - 8 * self.bytes as u32;
        Some(if self.signed {
            (value << unused).cast_signed() >> unused
        } else {
            value.cast_signed()
        })
    }

    /// Puts `value` there; false if it does not fit.
    pub(crate) fn write(&self, bytes: &mut [u8], value: u64) -> bool {
        let value = value.to_le_bytes();
        let (low, high) = value.split_at(self.bytes.min(value.len()));
        match bytes.get_mut(self.offset..self.offset + low.len()) {
            Some(own) if high.iter().all(|&byte| byte == 0) => {
                own.copy_from_slice(low);
                true
            }
            _ => false,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    fields: Vec<Field>,
}

impl Layout {
    pub(crate) fn of_struct(btf: &Btf<'_>, name: &str) -> Option<Self> {
        let mut layout = Self::default();
        layout.add_struct(btf, &btf.type_by_name(name)?, "", 0);
        Some(layout)
    }

    /// The layout of a variable in a section as `.data`; the offsets are those in the section.
    pub(crate) fn of_variable(btf: &Btf<'_>, section: &str, variable: &str) -> Option<Self> {
        let section: DataSec<'_> = btf.type_by_name(section)?;
        let (offset, ty) = section.iter().find_map(|info| {
            let var: Var<'_> = btf.type_by_id(info.ty)?;
            (var.name() == Some(OsStr::new(variable)))
                .then(|| (info.offset as usize, var.referenced_type()))
        })?;
        let mut layout = Self::default();
        layout.add_struct(
            btf,
            &Struct::try_from(ty.skip_mods_and_typedefs()).ok()?,
            "",
            offset,
        );
        Some(layout)
    }

    fn add_struct(&mut self, btf: &Btf<'_>, structure: &Struct<'_>, outer: &str, offset: usize) {
        for member in structure.iter() {
            let MemberAttr::Normal { offset: bits } = member.attr else {
                continue;
            };
            let name = member.name.unwrap_or_default().to_string_lossy();
            let at = offset + bits as usize / 8;
            self.add(btf, member.ty, format!("{outer}{name}"), at);
        }
    }

    fn add(&mut self, btf: &Btf<'_>, ty: TypeId, name: String, offset: usize) {
        let Some(ty) = btf.type_by_id::<BtfType<'_>>(ty) else {
            return;
        };
        let ty = ty.skip_mods_and_typedefs();
        if let Ok(int) = Int::try_from(ty) {
            self.fields.push(Field {
                name,
                offset,
                bytes: int.size(),
                signed: matches!(int.encoding, IntEncoding::Signed),
            });
        } else if let Ok(inner) = Struct::try_from(ty) {
            self.add_struct(btf, &inner, &format!("{name}."), offset);
        } else if let Ok(array) = Array::try_from(ty)
            && let Ok(int) = Int::try_from(array.contained_type())
        {
            for index in 0..array.capacity() {
                self.fields.push(Field {
                    name: format!("{name}.{index}"),
                    offset: offset + index * int.size(),
                    bytes: int.size(),
                    signed: matches!(int.encoding, IntEncoding::Signed),
                });
            }
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|f| f.name.as_str()).collect();
        names.join(", ")
    }

    pub(crate) fn read(&self, bytes: &[u8]) -> Vec<Value> {
        self.fields
            .iter()
            .filter_map(|field| {
                Some(Value {
                    name: field.name.clone(),
                    value: field.read(bytes)?,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(bytes: usize, signed: bool) -> Field {
        Field {
            name: "x".to_owned(),
            offset: 4,
            bytes,
            signed,
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let mut memory = [0; 16];
        assert!(!field(4, false).write(&mut memory, 1 << 32));
        assert!(!field(8, false).write(&mut memory[..11], 1));
        assert_eq!(field(8, false).read(&memory[..11]), None);
        assert_eq!(memory, [0; 16]);
    }
}
