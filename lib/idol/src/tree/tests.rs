//! The reader against the `ron` crate.

use proptest::prelude::*;

use super::{Field, Node, Value, parse};

/// What `ron` makes of a text, and what we do, in a form that both have.
#[derive(Clone, PartialEq, Debug)]
enum Plain {
    Text(String),
    Integer(i128),
    Truth(bool),
    List(Vec<Plain>),
    Map(Vec<(String, Plain)>),
}

fn ours(node: &Node) -> Option<Plain> {
    let fields = |fields: &[Field]| {
        fields.iter().map(|field| Some((field.key.clone(), ours(&field.value)?))).collect::<Option<Vec<_>>>()
    };
    Some(match &node.value {
        Value::Text(text) => Plain::Text(text.clone()),
        Value::Integer(number) => Plain::Integer(*number),
        Value::Name(name) => Plain::Truth(name.parse().ok()?),
        Value::List(values) => Plain::List(values.iter().map(ours).collect::<Option<_>>()?),
        Value::Map(map) => Plain::Map(fields(map)?),
        Value::Struct(_, map) => Plain::Map(fields(map)?),
        Value::Tuple(_, values) => Plain::List(values.iter().map(ours).collect::<Option<_>>()?),
    })
}

fn theirs(value: ron::Value) -> Option<Plain> {
    Some(match value {
        ron::Value::String(text) => Plain::Text(text),
        ron::Value::Bool(truth) => Plain::Truth(truth),
        ron::Value::Number(number) => Plain::Integer(number.into_f64() as i128),
        ron::Value::Seq(values) => Plain::List(values.into_iter().map(theirs).collect::<Option<_>>()?),
        ron::Value::Map(map) => {
            let entry = |(key, value)| match key {
                ron::Value::String(key) => Some((key, theirs(value)?)),
                _ => None,
            };
            Plain::Map(map.into_iter().map(entry).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Sorted, as `ron` keeps no order of entries.
fn sorted(plain: Plain) -> Plain {
    match plain {
        Plain::Map(mut entries) => {
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Plain::Map(entries.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Plain::List(values) => Plain::List(values.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// Values written out with comments and odd spacing, as people do.
fn written() -> impl Strategy<Value = String> {
    let space = prop_oneof![
        4 => Just(String::new()),
        2 => Just(" ".to_owned()),
        1 => Just("\n\t".to_owned()),
        1 => Just(" // a \"remark\" (\n".to_owned()),
        1 => Just("/* one /* in */ another */".to_owned()),
    ];
    let text = prop_oneof![
        "[ -!#-\\[\\]-~é]{0,12}".prop_map(|text| format!("\"{text}\"")),
        Just(r#""a\n\t\"b\"\\\u{e9}\x41""#.to_owned()),
        "[ -!$-~]{0,12}".prop_map(|text| format!("r##\"{text}\"##")),
    ];
    let number = prop_oneof![
        any::<i32>().prop_map(|number| number.to_string()),
        any::<u16>().prop_map(|number| format!("{number:#x}")),
        (1u8..=255).prop_map(|number| format!("{number:#b}")),
        Just("1_000".to_owned()),
    ];
    let leaf = prop_oneof![text, number, Just("true".to_owned()), Just("false".to_owned())];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let value =
            (space.clone(), inner, space.clone()).prop_map(|(before, value, after)| format!("{before}{value}{after}"));
        let values = (prop::collection::vec(value.clone(), 0..4), any::<bool>());
        let list = values.prop_map(|(values, comma)| {
            let end = if comma && !values.is_empty() { "," } else { "" };
            format!("[{}{end}]", values.join(","))
        });
        let keys = prop::collection::btree_map("[a-z][a-z0-9_]{0,5}", value, 0..4);
        let map = keys.prop_map(|entries| {
            let entries: Vec<String> = entries.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            format!("{{{}}}", entries.join(","))
        });
        prop_oneof![list, map]
    })
}

proptest! {
    #[test]
    fn reads_what_ron_reads(text in written()) {
        let reference: ron::Value = ron::from_str(&text).map_err(|error| TestCaseError::reject(error.to_string()))?;
        let tree = parse(&text).map_err(|problem| TestCaseError::fail(format!("{problem:?} in {text}")))?;
        prop_assert_eq!(ours(&tree).map(sorted), theirs(reference).map(sorted), "{}", text);
    }

    #[test]
    fn accepts_nothing_that_ron_refuses(text in "[(){}\\[\\]:,\"a-c0-2x#r/*\\\\ \n-]{0,24}") {
        if let Ok(tree) = parse(&text)
            && ours(&tree).is_some()
            && !names_or_structs(&tree)
        {
            prop_assert!(ron::from_str::<ron::Value>(&text).is_ok(), "{}", text);
        }
    }

    #[test]
    fn never_panics_and_points_into_the_text(text in "\\PC{0,40}", cut in any::<prop::sample::Index>()) {
        let good = include_str!("../../../mac-api/mac.idol");
        let boundary = (0..=cut.index(good.len())).rev().find(|at| good.is_char_boundary(*at)).unwrap_or(0);
        for text in [text.clone(), format!("{}{text}", &good[..boundary]), good.replacen("type", &text, 1)] {
            if let Err(problem) = parse(&text) {
                prop_assert!(problem.span.end <= text.len());
                prop_assert!(text.is_char_boundary(problem.span.start) && text.is_char_boundary(problem.span.end));
            }
        }
    }
}

/// Enum names and structs, which `ron`'s untyped value does not hold or holds in other ways.
fn names_or_structs(node: &Node) -> bool {
    match &node.value {
        Value::Name(name) => name != "true" && name != "false",
        Value::Struct(..) | Value::Tuple(..) => true,
        Value::List(values) => values.iter().any(names_or_structs),
        Value::Map(fields) => fields.iter().any(|field| names_or_structs(&field.value)) || keys_are_names(fields),
        Value::Text(_) | Value::Integer(_) => false,
    }
}

fn keys_are_names(fields: &[Field]) -> bool {
    fields.iter().any(|field| field.key_span.len() == field.key.len())
}

#[test]
fn spans_are_exact() {
    let text = "Interface( // remark\n    name : \"Mac\", list: [ 1 , two ],\n)";
    let tree = parse(text).expect("good");
    assert_eq!(&text[tree.span.clone()], text);
    let Value::Struct(Some(name), fields) = &tree.value else { panic!("{tree:?}") };
    assert_eq!(name, "Interface");
    assert_eq!(&text[fields[0].key_span.clone()], "name");
    assert_eq!(&text[fields[0].value.span.clone()], "\"Mac\"");
    let Value::List(values) = &fields[1].value.value else { panic!("{tree:?}") };
    assert_eq!(&text[values[1].span.clone()], "two");
}

#[test]
fn deep_nesting_is_refused() {
    assert!(parse(&"[".repeat(100_000)).is_err());
    assert!(parse(&"/*".repeat(100_000)).is_err());
}
