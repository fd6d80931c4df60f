//! With default settings the program sends nothing beyond the machine.
//!
//! It runs in a network namespace that has a loopback interface and no route. There the kernel counts packets without a
//! route and every datagram that was sent, such as a DNS query.

use std::{collections::BTreeMap, fs, process::Command};

use super::{PROGRAM, RequirementsMachine, SESSION};

/// Kernel counters that increase when a process tries to reach another machine.
const COUNTERS: [&str; 4] = ["IpOutNoRoutes", "UdpOutDatagrams", "Ip6OutNoRoutes", "Udp6OutDatagrams"];

/// Uses the program as a user with an agent would, then makes connections that the counters must show.
const SCRIPT: &str = r#"
set -e
ip link set lo up
count() { cat /proc/net/snmp /proc/net/snmp6; }
count > before
"$PROGRAM" ps
"$PROGRAM" --tcp ps
"$PROGRAM" hooks install --yes --approver
for event in SessionStart PermissionRequest Stop; do
    "$PROGRAM" hook claude --approver 0 < "$event.json"
done
"$PROGRAM" run --detach --record --name one -- sh -c 'echo hello; exec sleep 8888'
"$PROGRAM" ps --all --json
"$PROGRAM" wait "$SESSION" --until waiting,waiting_approval,idle,running,unknown --timeout 20
"$PROGRAM" show "$SESSION"
"$PROGRAM" findings --all
"$PROGRAM" standup
"$PROGRAM" handoff "$SESSION"
"$PROGRAM" doctor
"$PROGRAM" audit verify
"$PROGRAM" telemetry env claude
"$PROGRAM" notify test || true
"$PROGRAM" send one --interrupt || true
"$PROGRAM" serve --stop
while [ -e data/endpoint.json ]; do :; done
count > after
# The counters are alive: this is noticed.
exec 3<> /dev/udp/192.0.2.1/53 || true
count > control
"#;

/// The counters of `/proc/net/snmp` and `/proc/net/snmp6` by name.
fn counters(text: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut names: Option<(&str, Vec<&str>)> = None;
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            // Names and values are in two lines with the same prefix.
            [group, rest @ ..] if group.ends_with(':') => match names.take() {
                Some((of, keys)) if of == *group => {
                    for (key, value) in keys.iter().zip(rest) {
                        found.insert(format!("{}{key}", of.trim_end_matches(':')), value.parse().unwrap_or(0));
                    }
                }
                _ => names = Some((group, rest.to_vec())),
            },
            [name, value] => drop(found.insert((*name).to_owned(), value.parse().unwrap_or(0))),
            _ => {}
        }
    }
    found
}

/// A shell in a new network namespace; root is not needed where users may create namespaces.
fn namespace(arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--", "bash", "-c"]).args(arguments);
    command
}

#[test]
fn no_network_traffic_leaves_the_machine_by_default() {
    let possible = namespace(&["ip link set lo up"]).output();
    if !possible.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped: network namespaces cannot be made here (needs unshare, ip and bash): {possible:?}");
        return;
    }
    let here = RequirementsMachine::new();
    let root = here.root();
    for event in ["SessionStart", "PermissionRequest", "Stop"] {
        let mut payload = here.request("curl https://example.test/");
        payload["hook_event_name"] = event.into();
        fs::write(root.join(format!("{event}.json")), payload.to_string()).unwrap();
    }
    let template = here.machine.command(&[]);
    let mut command = namespace(&[SCRIPT]);
    command.env_clear().current_dir(&root).stdin(std::process::Stdio::null());
    command.envs(template.get_envs().map(|(name, value)| (name, value.unwrap_or_default())));
    let path = format!("{}:/usr/sbin:/sbin:/usr/bin:/bin", here.machine.agents().display());
    let output = command.env("PROGRAM", PROGRAM).env("SESSION", SESSION).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| counters(&fs::read_to_string(root.join(name)).unwrap());
    let (before, after, control) = (read("before"), read("after"), read("control"));
    let value = |of: &BTreeMap<String, u64>, name: &str| of.get(name).copied().unwrap_or(0);
    for name in COUNTERS {
        assert_eq!(value(&after, name), value(&before, name), "{name}: somebody tried to reach another machine");
    }
    let total = |of: &BTreeMap<String, u64>| COUNTERS.iter().map(|name| value(of, name)).sum::<u64>();
    assert!(total(&control) > total(&after), "the counters notice nothing: {control:?}");
    assert!(value(&after, "TcpActiveOpens") > value(&before, "TcpActiveOpens"), "nobody spoke with the server");
}
