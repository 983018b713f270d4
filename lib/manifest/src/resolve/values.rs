//! The `config` tables: values of the command line, of app.toml and of board.toml, and defaults.

use std::net::Ipv4Addr;

use abi::config::Value;

use super::Resolver;
use super::devices::Devices;
use crate::diagnostic::Problem;
use crate::load::word;
use crate::read::Raw;
use crate::suggest::suggest;
use crate::system::At;
use crate::task_manifest::TaskManifest;

/// Role of the task that `--mac` is for.
const ETHERNET: &str = "ethernet";

type Entry = (String, At<Raw>);

impl Resolver<'_> {
    /// The values of a task.
    pub(super) fn values(&self, index: usize, manifest: &TaskManifest, devices: &Devices) -> Vec<(String, Value)> {
        let member = &self.members[index];
        let given = self.overrides_for(index);
        let board =
            devices.peripherals[index].iter().filter_map(|own| self.board.config.get(&own.board_name)).flatten();
        let board: Vec<&(At<String>, At<Raw>)> = board.collect();
        for (name, _) in member.app.config.iter().chain(board.iter().copied()) {
            if !manifest.config.iter().any(|decl| decl.name.value == name.value) {
                let known = manifest.config.iter().map(|decl| decl.name.value.as_str()).collect();
                self.unknown(name, "config key", known, member.package);
            }
        }
        let mut values = Vec::new();
        for decl in &manifest.config {
            let name = &decl.name.value;
            let given = given.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            // A gateway belongs to the network of the address: with a new address the old one is void.
            let void = given.is_none()
                && name == "gateway"
                && self.overrides.address.is_some()
                && (decl.default.is_some() || decl.optional);
            let written = member.app.config.iter().chain(board.iter().copied()).find(|(key, _)| key.value == *name);
            let written = written.map(|(_, value)| value).filter(|_| !void);
            let value = match given.or(written) {
                Some(raw) => match decl.value(raw) {
                    Ok(value) => Some(value),
                    Err(problem) => {
                        self.log.add(*problem);
                        None
                    }
                },
                None => decl.default.clone(),
            };
            if value.is_none() && given.or(written).is_none() && !decl.optional {
                let message = format!("`{name}` is missing in the config of `{}`", member.app.name.value);
                let problem = Problem::new(
                    &member.app.name.at,
                    message,
                    format!("tasks.{}.config.{name}", member.app.name.value),
                );
                self.log.add(problem.help(decl.example()));
            }
            if let (Some(value), Some(raw)) = (&value, given.or(written)) {
                self.check_gateway(name, value, raw, &values);
            }
            values.extend(value.map(|value| (name.clone(), value)));
        }
        values
    }

    /// Checks that a gateway is in the network of the address before it.
    fn check_gateway(&self, name: &str, value: &Value, raw: &At<Raw>, before: &[(String, Value)]) {
        let address = before.iter().find(|(key, _)| key == "address").map(|(_, value)| value);
        let (Value::Bytes(gateway), Some(Value::Bytes(address))) = (value, address) else { return };
        let (&[a, b, c, d], &[e, f, g, h, prefix], "gateway") = (gateway.as_slice(), address.as_slice(), name) else {
            return;
        };
        let (gateway, own) = (Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h));
        let host = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
        if gateway.to_bits() | host != own.to_bits() | host {
            let message = format!("the gateway {gateway} is not in the network of {own}/{prefix}");
            self.log.add(
                Problem::new(&raw.at, message, "out of reach")
                    .help("give a gateway of the same network, or a shorter prefix"),
            );
        } else if gateway == own {
            self.log.add(
                Problem::new(&raw.at, "the gateway is the board itself", "the own address")
                    .help("give another address, or leave out `gateway`"),
            );
        }
    }

    /// What the command line says about a task's values.
    fn overrides_for(&self, index: usize) -> Vec<Entry> {
        let member = &self.members[index];
        let has = |key: &str| {
            member.manifest.is_some_and(|manifest| manifest.config.iter().any(|decl| decl.name.value == key))
        };
        let mut entries = Vec::new();
        if has("address") && has("gateway") {
            entries.extend(self.address_override());
            entries.extend(self.gateway_override());
        }
        if has("mac") && member.app.role.as_ref().is_some_and(|role| role.value == ETHERNET) {
            entries.extend(self.mac_override());
        }
        entries
    }

    fn address_override(&self) -> Option<Entry> {
        self.overrides.address.as_ref().map(|address| entry("address", "--ip", address.clone()))
    }

    fn gateway_override(&self) -> Option<Entry> {
        self.overrides.gateway.map(|address| entry("gateway", "--gateway", address.to_string()))
    }

    fn mac_override(&self) -> Option<Entry> {
        let text = |mac: &[u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
        self.overrides.mac.as_ref().map(|mac| entry("mac", "--mac", text(mac)))
    }

    /// Checks that every value of the command line has a task that takes it.
    pub(super) fn check_overrides(&self) {
        if self.members.iter().any(|member| member.manifest.is_none()) {
            return;
        }
        let taken: Vec<Entry> = (0..self.members.len()).flat_map(|index| self.overrides_for(index)).collect();
        let given = [self.address_override(), self.gateway_override(), self.mac_override()];
        for (key, value) in given.into_iter().flatten().filter(|(key, _)| !taken.iter().any(|(taken, _)| taken == key))
        {
            let known = self.members.iter().filter_map(|member| member.manifest).flat_map(|manifest| &manifest.config);
            let help = suggest(&key, known.map(|decl| decl.name.value.as_str()), "config keys");
            let message = format!("no task of this image takes `{key}`");
            self.log.add(Problem::new(&value.at, message, "for nobody").help(help));
        }
    }
}

/// A value of an option, which is also the place that errors show.
fn entry(key: &str, option: &str, value: String) -> Entry {
    (key.to_owned(), At { at: word("command line", &format!("{option} {value}")), value: Raw::Text(value) })
}
