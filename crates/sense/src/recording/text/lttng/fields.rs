//! The fields of an event in babeltrace's text:
//! `{ cpu_id = 2 }, { tid = 7 }, { comm = "a, b", state = ( "X" : container = 1 ), list = [ [0] = 1 ] }`.

use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LttngValue<'a>(&'a str);

impl<'a> LttngValue<'a> {
    /// A number, or an enumeration's: `( "TASK_RUNNING" : container = 0 )`.
    pub(super) fn number(self) -> Option<i64> {
        let number = match self.0.strip_prefix('(') {
            Some(label) => label.strip_suffix(')')?.rsplit_once("container = ")?.1,
            None => self.0,
        };
        number.trim().parse().ok()
    }

    /// A text, without its quotes and escapes.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        let quoted = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if !quoted.contains('\\') {
            return Some(Cow::Borrowed(quoted));
        }
        let mut text = String::with_capacity(quoted.len());
        let mut chars = quoted.chars();
        while let Some(next) = chars.next() {
            text.push(match next {
                '\\' => match chars.next()? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                },
                other => other,
            });
        }
        Some(Cow::Owned(text))
    }
}

/// The fields of an event: of the packet, of the contexts, and its own.
#[derive(Debug)]
pub(super) struct LttngFields<'a>(Vec<Vec<(&'a str, LttngValue<'a>)>>);

impl<'a> LttngFields<'a> {
    /// None if the braces, brackets and quotes do not match.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let mut scopes = Vec::new();
        let mut rest = text.trim();
        loop {
            let (scope, after) = take(rest)?;
            let inner = scope.strip_prefix('{')?.strip_suffix('}')?;
            scopes.push(in_scope(inner)?);
            rest = match after.trim_start() {
                "" => return Some(Self(scopes)),
                after => after.strip_prefix(',')?.trim_start(),
            };
        }
    }

    pub(super) fn cpu(&self) -> Option<u32> {
        let value = find(self.0.first()?, "cpu_id")?;
        u32::try_from(value.number()?).ok()
    }

    pub(super) fn event(&self, name: &str) -> Option<LttngValue<'a>> {
        find(self.0.last()?, name)
    }

    /// A field of a context: of what runs where the event was written.
    pub(super) fn context(&self, name: &str) -> Option<LttngValue<'a>> {
        let (_, contexts) = self.0.split_last()?;
        contexts.iter().find_map(|fields| find(fields, name))
    }
}

fn find<'a>(fields: &[(&str, LttngValue<'a>)], name: &str) -> Option<LttngValue<'a>> {
    let found = fields.iter().find(|(key, _)| *key == name);
    found.map(|&(_, value)| value)
}

fn in_scope(text: &str) -> Option<Vec<(&str, LttngValue<'_>)>> {
    let mut fields = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once(" = ")?;
        let (value, after) = take(after)?;
        fields.push((name, LttngValue(value)));
        rest = match after.trim_start() {
            "" => "",
            after => after.strip_prefix(',')?.trim_start(),
        };
    }
    Some(fields)
}

/// The value at the beginning of `text`, and what follows it: up to a comma or a closing brace that
/// is not its own.
fn take(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' | b'(' => depth += 1,
            b',' if depth == 0 => return text.split_at_checked(at).map(trimmed),
            b'}' | b']' | b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return text.split_at_checked(at + 1).map(trimmed);
                }
            }
            _ => {}
        }
    }
    (depth == 0 && !quoted).then_some((text.trim_end(), ""))
}

fn trimmed<'a>((value, after): (&'a str, &'a str)) -> (&'a str, &'a str) {
    (value.trim_end(), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_braces_lists_and_enumerations_are_told_apart() {
        let fields = LttngFields::read(
            r#"{ cpu_id = 2 }, { tid = 7 }, { comm = "a, }\"b\\", state = ( "RUNNING" : container = 0 ), vtids = [ [0] = 5, [1] = 6 ], n = -3 }"#,
        )
        .unwrap();
        assert_eq!(fields.cpu(), Some(2));
        assert_eq!(fields.context("tid").unwrap().number(), Some(7));
        assert_eq!(fields.event("comm").unwrap().text().unwrap(), r#"a, }"b\"#);
        assert_eq!(fields.event("state").unwrap().number(), Some(0));
        assert_eq!(fields.event("n").unwrap().number(), Some(-3));
        assert_eq!(fields.event("tid"), None);
        assert!(LttngFields::read("{ cpu_id = 0 }, { }").is_some());
    }
}
