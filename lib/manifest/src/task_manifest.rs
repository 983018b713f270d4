//! Task manifests: what a task needs, said by its author in `tasks/NAME/task.toml`.

use std::sync::Arc;

use abi::config::Value;
use abi::image::Privileges;

use crate::diagnostic::{Problem, Source};
use crate::limits::{check_name, check_stack, limit};
use crate::read::{Log, Raw, Size, Table, one_of, parse};
use crate::suggest::list;
use crate::system::{At, MemoryAccess};
use crate::value;

/// Names of the privileges.
pub const PRIVILEGES: [(&str, Privileges); 5] = [
    ("supervise", Privileges::SUPERVISE),
    ("stats", Privileges::STATS),
    ("power", Privileges::POWER),
    ("log", Privileges::LOG),
    ("inject", Privileges::INJECT),
];

/// A task.toml.
#[derive(Debug)]
pub struct TaskManifest {
    pub description: String,
    pub stack: Option<At<u64>>,
    pub floating_point: bool,
    pub privileges: Vec<At<&'static str>>,
    pub notifications: Vec<At<String>>,
    pub slots: Vec<SlotDecl>,
    /// Interfaces that it serves; `None` if it does not say.
    pub serves: Option<Vec<String>>,
    pub notifies: Vec<At<String>>,
    pub peripherals: Vec<PeripheralDecl>,
    pub memory: Vec<MemoryDecl>,
    pub pool: Option<PoolDecl>,
    pub config: Vec<ConfigDecl>,
}

#[derive(Debug)]
pub struct SlotDecl {
    pub name: At<String>,
    /// What the called task must serve; without it any task will do.
    pub interface: Option<At<String>>,
    pub optional: bool,
}

#[derive(Debug)]
pub struct PeripheralDecl {
    pub name: At<String>,
    pub kind: At<String>,
    /// Notification that its interrupt posts.
    pub interrupt: Option<At<String>>,
}

#[derive(Debug)]
pub struct MemoryDecl {
    pub name: At<String>,
    pub size: At<u64>,
    pub access: MemoryAccess,
}

#[derive(Debug)]
pub struct PoolDecl {
    /// Own notification.
    pub returned: At<String>,
}

/// A key of the `config` table.
#[derive(Debug)]
pub struct ConfigDecl {
    pub name: At<String>,
    kind: ConfigType,
    /// Words that are allowed beside values of the type.
    words: Vec<String>,
    pub default: Option<Value>,
    pub optional: bool,
}

#[derive(Debug)]
enum ConfigType {
    Integer { min: i64, max: i64 },
    Bool,
    Text { one_of: Vec<String> },
    MacAddress,
    Ipv4,
    Ipv4Prefix,
}

const TYPES: [&str; 6] = ["integer", "bool", "text", "mac-address", "ipv4", "ipv4-prefix"];

/// Reads a task.toml.
pub fn read(source: &Arc<Source>, log: &Log) -> Option<TaskManifest> {
    parse(source, log, |table| read_table(table, log)).flatten()
}

fn read_table(table: Table<'_>, log: &Log) -> Option<TaskManifest> {
    let problems = log.len();
    let description = table.required::<String>("description", "say in one line what the task is for");
    let stack = table.optional::<Size>("stack").and_then(|size| check_stack(log, size));
    let floating_point = table.optional("floating-point").is_none_or(|value: At<bool>| value.value);
    let privileges = table.optional::<Vec<At<String>>>("privileges").map_or_else(Vec::new, |list| list.value);
    let privileges = privileges.iter().filter_map(|name| privilege(log, name)).collect();
    let notifications = texts(log, &table, "notifications", "notification");
    limit(log, &notifications, 16, "notifications of one task");
    let slots =
        table.tables("slots").into_iter().filter_map(|(name, table)| slot(log, name, table)).collect::<Vec<_>>();
    let serves = table.optional::<Vec<At<String>>>("serves");
    let serves = serves.map(|names| names.value.into_iter().map(|name| name.value).collect());
    let notifies = texts(log, &table, "notifies", "notify");
    let peripherals: Vec<PeripheralDecl> = table
        .tables("peripherals")
        .into_iter()
        .filter_map(|(name, table)| peripheral(log, name, table, &notifications))
        .collect();
    let memory: Vec<MemoryDecl> =
        table.tables("memory").into_iter().filter_map(|(name, table)| memory(log, name, table)).collect();
    let pool = table.table("pool").and_then(|table| pool(log, table, &notifications));
    let config: Vec<ConfigDecl> =
        table.tables("config").into_iter().filter_map(|(name, table)| config(log, name, table)).collect();
    limit(log, config.iter().map(|decl| &decl.name), 16, "keys of one `config` table");
    limit(log, peripherals.iter().map(|decl| &decl.name), 4, "peripherals of one task");
    table.finish();
    // What is left out because it is wrong would be missed elsewhere, and reported once more.
    (log.len() == problems).then_some(())?;
    Some(TaskManifest {
        description: description?.value,
        stack,
        floating_point,
        privileges,
        notifications,
        slots,
        serves,
        notifies,
        peripherals,
        memory,
        pool,
        config,
    })
}

/// A privilege by its name.
pub fn privilege(log: &Log, name: &At<String>) -> Option<At<&'static str>> {
    let known = PRIVILEGES.map(|(name, _)| name);
    one_of(log, name, "privilege", &known).map(|found| At { value: found, at: name.at.clone() })
}

/// The names of a table whose values are descriptions.
fn texts(log: &Log, table: &Table<'_>, key: &'static str, what: &str) -> Vec<At<String>> {
    let mut names = Vec::new();
    for (name, cell) in table.entries(key) {
        // The text is for people; only that there is one matters.
        let described: Option<At<String>> = cell.read();
        if check_name(log, &name, what) && described.is_some() {
            names.push(name);
        }
    }
    names
}

fn slot(log: &Log, name: At<String>, table: Table<'_>) -> Option<SlotDecl> {
    let interface = table.optional("interface");
    let optional = table.optional("optional").is_some_and(|value: At<bool>| value.value);
    table.finish();
    check_name(log, &name, "slot").then_some(SlotDecl { name, interface, optional })
}

fn peripheral(log: &Log, name: At<String>, table: Table<'_>, notifications: &[At<String>]) -> Option<PeripheralDecl> {
    let kind =
        table.required("kind", "the kind must be that of a peripheral in board.toml, as in { kind = \"cadence-gem\" }");
    let interrupt = table.optional("interrupt");
    if let Some(interrupt) = &interrupt {
        check_own(log, interrupt, notifications);
    }
    table.finish();
    (check_name(log, &name, "peripheral")).then_some(())?;
    Some(PeripheralDecl { name, kind: kind?, interrupt })
}

/// Checks that a notification is one that the same file declares.
fn check_own(log: &Log, name: &At<String>, notifications: &[At<String>]) {
    if notifications.iter().any(|own| own.value == name.value) {
        return;
    }
    let known = notifications.iter().map(|own| own.value.as_str());
    let help = if notifications.is_empty() {
        format!("declare it: [notifications] {} = \"what it means\"", name.value)
    } else {
        crate::suggest::suggest(&name.value, known, "notifications of this task")
    };
    let message = format!("unknown notification `{}`", name.value);
    log.add(Problem::new(&name.at, message, "not declared under [notifications]").help(help));
}

fn memory(log: &Log, name: At<String>, table: Table<'_>) -> Option<MemoryDecl> {
    let size = table.required::<Size>("size", "as in { size = \"16 KiB\", access = \"uncached\" }");
    let access = table.required::<String>("access", "\"uncached\" for descriptor rings, \"cached\" for buffers");
    table.finish();
    let access = match one_of(log, &access?, "access", &["uncached", "cached"])? {
        "cached" => MemoryAccess::Cached,
        _ => MemoryAccess::Uncached,
    };
    let size = crate::limits::check_pages(log, size?, "memory")?;
    check_name(log, &name, "memory").then_some(MemoryDecl { name, size, access })
}

fn pool(log: &Log, table: Table<'_>, notifications: &[At<String>]) -> Option<PoolDecl> {
    let returned = table.required("returned", "name the own notification that tells of frames that came back");
    table.finish();
    let returned = returned?;
    check_own(log, &returned, notifications);
    Some(PoolDecl { returned })
}

fn config(log: &Log, name: At<String>, table: Table<'_>) -> Option<ConfigDecl> {
    let kind = table.required::<String>("type", &format!("types: {}", list(&TYPES)));
    let words = table.optional::<Vec<At<String>>>("or").map_or_else(Vec::new, |words| words.value);
    let kind = kind.and_then(|kind| config_type(log, &kind, &table));
    let default = table.optional::<Raw>("default");
    let optional = table.optional("optional").is_some_and(|value: At<bool>| value.value);
    table.finish();
    let words = words.into_iter().map(|word| word.value).collect();
    let mut decl = ConfigDecl { name, kind: kind?, words, default: None, optional };
    if let Some(default) = default {
        match decl.value(&default) {
            Ok(value) => decl.default = Some(value),
            Err(problem) => log.add(*problem),
        }
    }
    check_name(log, &decl.name, "config key").then_some(decl)
}

fn config_type(log: &Log, kind: &At<String>, table: &Table<'_>) -> Option<ConfigType> {
    Some(match one_of(log, kind, "type", &TYPES)? {
        "integer" => {
            let bound = |key, open| table.optional(key).map_or(open, |bound: At<i64>| bound.value);
            let (min, max) = (bound("min", i64::MIN), bound("max", i64::MAX));
            if min > max {
                log.add(Problem::new(&table.at, "no value is allowed", format!("min is {min}, max is {max}")));
                return None;
            }
            ConfigType::Integer { min, max }
        }
        "bool" => ConfigType::Bool,
        "text" => {
            let allowed = table.optional::<Vec<At<String>>>("one-of").map_or_else(Vec::new, |words| words.value);
            ConfigType::Text { one_of: allowed.into_iter().map(|word| word.value).collect() }
        }
        "mac-address" => ConfigType::MacAddress,
        "ipv4" => ConfigType::Ipv4,
        _ => ConfigType::Ipv4Prefix,
    })
}

impl ConfigDecl {
    /// The value that was written, in the form that the task reads.
    ///
    /// # Errors
    /// If it is of another type or out of range.
    pub fn value(&self, raw: &At<Raw>) -> Result<Value, Box<Problem>> {
        let name = &self.name.value;
        let refuse = |label: String| {
            let problem = Problem::new(&raw.at, format!("bad value for `{name}`"), label);
            Box::new(problem.help(self.example()))
        };
        if let Raw::Text(text) = &raw.value
            && self.words.contains(text)
        {
            return text_value(text).ok_or_else(|| refuse("longer than 64 bytes".to_owned()));
        }
        let bytes = |bytes: &[u8]| Value::Bytes(bytes.iter().copied().collect());
        match (&self.kind, &raw.value) {
            (ConfigType::Integer { min, max }, Raw::Integer(value)) if (min..=max).contains(&value) => {
                Ok(Value::Integer(*value))
            }
            (ConfigType::Integer { .. }, Raw::Integer(_)) => Err(refuse("out of range".to_owned())),
            (ConfigType::Bool, Raw::Bool(value)) => Ok(Value::Bool(*value)),
            (ConfigType::Text { one_of }, Raw::Text(text)) if one_of.is_empty() || one_of.contains(text) => {
                text_value(text).ok_or_else(|| refuse("longer than 64 bytes".to_owned()))
            }
            (ConfigType::Text { .. }, Raw::Text(_)) => Err(refuse("not one of the allowed words".to_owned())),
            (ConfigType::MacAddress, Raw::Text(text)) => {
                value::mac_address(text).map(|value| bytes(&value)).map_err(refuse)
            }
            (ConfigType::Ipv4, Raw::Text(text)) => value::ipv4(text).map(|value| bytes(&value)).map_err(refuse),
            (ConfigType::Ipv4Prefix, Raw::Text(text)) => {
                value::ipv4_prefix(text).map(|value| bytes(&value)).map_err(refuse)
            }
            (_, other) => Err(refuse(format!("this is {}", other.what()))),
        }
    }

    /// What would be right.
    pub fn example(&self) -> String {
        let kind = match &self.kind {
            ConfigType::Integer { min: i64::MIN, max: i64::MAX } => "a whole number".to_owned(),
            ConfigType::Integer { min, max: i64::MAX } => format!("a whole number from {min}"),
            ConfigType::Integer { min: i64::MIN, max } => format!("a whole number up to {max}"),
            ConfigType::Integer { min, max } => format!("a whole number from {min} to {max}"),
            ConfigType::Bool => "true or false".to_owned(),
            ConfigType::Text { one_of } if one_of.is_empty() => "a text of at most 64 bytes".to_owned(),
            ConfigType::Text { one_of } => {
                format!("one of {}", list(&one_of.iter().map(String::as_str).collect::<Vec<_>>()))
            }
            ConfigType::MacAddress => "a MAC address of one interface, like \"02:00:00:12:34:56\"".to_owned(),
            ConfigType::Ipv4 => "an IPv4 address, like \"10.0.2.2\"".to_owned(),
            ConfigType::Ipv4Prefix => {
                "an IPv4 address and the length of its network's prefix, like \"10.0.2.15/24\"".to_owned()
            }
        };
        let words: Vec<String> = self.words.iter().map(|word| format!(", or \"{word}\"")).collect();
        format!("`{}` is {kind}{}", self.name.value, words.concat())
    }
}

fn text_value(text: &str) -> Option<Value> {
    text.try_into().ok().map(Value::Text)
}
