//! The fields of a message in protobuf's wire format, borrowed from its bytes: nothing is set aside
//! for them, however many there are, and text may be no UTF-8.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtoValue<'a> {
    /// A number, of whatever width.
    Number(u64),
    /// Text, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MalformedMessage;

impl<'a> ProtoValue<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], MalformedMessage> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err(MalformedMessage),
        }
    }

    pub(super) fn number(self) -> Result<u64, MalformedMessage> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) => Err(MalformedMessage),
        }
    }

    /// A thread's number.
    pub(super) fn tid(self) -> Result<u32, MalformedMessage> {
        u32::try_from(self.number()?).map_err(|_| MalformedMessage)
    }
}

/// The fields of a message: their numbers and what they hold. After an error there are no more.
pub(super) struct MessageFields<'a>(&'a [u8]);

impl<'a> MessageFields<'a> {
    pub(super) const fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn read(&mut self) -> Result<(u32, ProtoValue<'a>), MalformedMessage> {
        let (number, wire_type) = key(varint(&mut self.0)?)?;
        let value = match wire_type {
            0 => ProtoValue::Number(varint(&mut self.0)?),
            1 => ProtoValue::Number(self.fixed::<8>().map(u64::from_le_bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).map_err(|_| MalformedMessage)?;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(MalformedMessage)?;
                self.0 = rest;
                ProtoValue::Bytes(bytes)
            }
            5 => ProtoValue::Number(self.fixed::<4>().map(u32::from_le_bytes)?.into()),
            _ => return Err(MalformedMessage),
        };
        Ok((number, value))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], MalformedMessage> {
        let (&bytes, rest) = self.0.split_first_chunk::<N>().ok_or(MalformedMessage)?;
        self.0 = rest;
        Ok(bytes)
    }
}

impl<'a> Iterator for MessageFields<'a> {
    type Item = Result<(u32, ProtoValue<'a>), MalformedMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// A field's number and wire type.
pub(super) fn key(key: u64) -> Result<(u32, u8), MalformedMessage> {
    let number = u32::try_from(key >> 3).map_err(|_| MalformedMessage)?;
    if number == 0 || number >= 1 << 29 {
        return Err(MalformedMessage);
    }
    Ok((number, (key & 7) as u8))
}

/// The number at the beginning of `bytes`, which begin behind it afterwards.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64, MalformedMessage> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(MalformedMessage)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(MalformedMessage)
}

/// Adds the numbers of a repeated field, packed or not, to `column`.
pub(super) fn extend(column: &mut Vec<u64>, value: ProtoValue<'_>) -> Result<(), MalformedMessage> {
    match value {
        ProtoValue::Number(number) => column.push(number),
        ProtoValue::Bytes(mut packed) => {
            while !packed.is_empty() {
                column.push(varint(&mut packed)?);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_width_are_read_and_what_is_left_of_one_is_malformed() {
        let message = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 0, 0, 0, 0, 0, 0, 0, // 2: fixed 64
            0x1a, 2, b'h', b'i', // 3: bytes
            0x25, 7, 0, 0, 0, // 4: fixed 32
        ];
        let fields: Result<Vec<_>, _> = MessageFields::new(&message).collect();
        assert_eq!(
            fields.unwrap(),
            [
                (1, ProtoValue::Number(150)),
                (2, ProtoValue::Number(1)),
                (3, ProtoValue::Bytes(b"hi")),
                (4, ProtoValue::Number(7)),
            ]
        );
        for cut in [1, 2, 5, 13, 14, 17, 20] {
            let last = MessageFields::new(&message[..cut]).last();
            assert_eq!(last, Some(Err(MalformedMessage)), "cut at {cut}");
        }
    }

    #[test]
    fn a_number_of_more_than_ten_bytes_and_the_field_zero_are_malformed() {
        assert_eq!(varint(&mut &[0xff; 11][..]), Err(MalformedMessage));
        assert_eq!(
            MessageFields::new(&[0x00, 1]).last(),
            Some(Err(MalformedMessage))
        );
    }
}
