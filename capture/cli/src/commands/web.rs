//! `capture web`: opens the page in the browser, signed in; pairs other devices; lists and revokes them.
//!
//! The server creates the codes and refuses them to processes that an agent started. This command stores no secrets,
//! and no address contains a token: an address contains a code that pairs once, within a minute, after its `#`, which
//! browsers do not send.

mod open;
mod qr;

use std::{fmt::Write as _, io::Write as _, path::Path};

use api::{
    Client,
    devices::{CodeScope, DeviceList, PairingCode, PairingRequest},
    routes::{CreatePairingCode, ListDevices, NoQuery, RevokeDevice},
};
use clap::{Args, Subcommand, ValueEnum};
use client::failure::Failed;
use home::{clock, paths};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::context::Context;
use printing::{safe, style};

/// The arguments of `capture web`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Option<WebCommand>,
    /// Permissions of the browser: `read` to see sessions, `control` to also decide permission requests and type.
    #[arg(long, value_enum, default_value_t = DeviceScope::Control)]
    scope: DeviceScope,
    /// Print the address instead of opening the browser.
    #[arg(long)]
    print: bool,
    /// The browser reaches the server through an SSH tunnel (`ssh -L`).
    #[arg(long)]
    tunnel: bool,
    /// The address at which the browser reaches the server, such as `https://box.tailnet.ts.net`.
    #[arg(long, value_parser = url)]
    url: Option<String>,
}

#[derive(Debug, Subcommand)]
enum WebCommand {
    /// Print a code that pairs another device, or makes a paired device an administrator for ten minutes.
    ///
    /// The code is valid for one minute and for one device. `--qr` shows it as a QR code for a phone's camera. The
    /// phone must be able to reach the server: pass the server's address with `--url`.
    #[command(after_help = "Examples:
  capture web pair --qr --url https://box.tailnet.ts.net
  capture web pair --scope control
  capture web pair --scope admin --device 7K3M9QXT")]
    Pair(PairArguments),
    /// List the paired devices.
    Devices,
    /// Revoke a device: sign it out and close its connections.
    Revoke {
        /// The device: its id, or at least 3 characters from the start of its id.
        id: String,
    },
}

#[derive(Debug, Args)]
struct PairArguments {
    /// Permissions of the device: `read` to see sessions, `control` to also decide permission requests and type, or,
    /// with `--device`, `admin` to change rules and settings for ten minutes.
    #[arg(long, value_enum, default_value_t = PairScope::Read)]
    scope: PairScope,
    /// Show a QR code.
    #[arg(long)]
    qr: bool,
    /// With `--scope admin`: the paired device that enters the code.
    #[arg(long, value_name = "ID", required_if_eq("scope", "admin"))]
    device: Option<String>,
    /// The device reaches the server through an SSH tunnel, or a proxy that runs as your user.
    #[arg(long)]
    tunnel: bool,
    /// The address at which the device reaches the server, such as https://box.tailnet.ts.net.
    #[arg(long, value_parser = url)]
    url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeviceScope {
    Read,
    Control,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PairScope {
    Read,
    Control,
    Admin,
}

/// The number of devices paired with the server of a data directory, according to its file.
pub(super) fn paired(data: &Path) -> usize {
    #[derive(Default, Deserialize)]
    struct DevicesFile {
        devices: Vec<IgnoredAny>,
    }
    let text = std::fs::read_to_string(data.join(paths::DEVICES)).unwrap_or_default();
    serde_json::from_str::<DevicesFile>(&text).unwrap_or_default().devices.len()
}

/// Prints a value for programs; set if JSON was requested.
type PrintJson<'a> = &'a dyn Fn(&Value) -> anyhow::Result<()>;

/// Runs the command.
pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let print_json = |value: &Value| context.print_json(value);
    let (client, json) = (context.client()?, context.json.then_some(&print_json as PrintJson<'_>));
    match &arguments.action {
        None => open_page(arguments, &client, json),
        Some(WebCommand::Pair(arguments)) => pair(arguments, &client, json),
        Some(WebCommand::Devices) => list(&client, json),
        Some(WebCommand::Revoke { id }) => revoke(id, &client, json),
    }
}

fn open_page(arguments: &Arguments, client: &Client, json: Option<PrintJson<'_>>) -> anyhow::Result<()> {
    let scope = match arguments.scope {
        DeviceScope::Read => CodeScope::Read,
        DeviceScope::Control => CodeScope::Control,
    };
    let browser = if arguments.print || json.is_some() || arguments.url.is_some() { None } else { open::browser() };
    // Other users of the machine can read the browser's arguments and could be the first to use the code.
    let local = browser.is_some();
    let wanted = PairingRequest { scope, device_id: None, tunnel: arguments.tunnel, local };
    let code = client.send::<CreatePairingCode>("", &wanted)?;
    let address = address(&code, arguments.url.as_deref());
    if let Some(json) = json {
        return json(&json!({ "url": address, "expires_at": code.expires_at }));
    }
    if let Some(browser) = browser {
        if open::open(&browser, &address) {
            let address = address.split('#').next().unwrap_or_default();
            return print(&format!("opened {} in the browser\n", safe(address)));
        }
        printing::print_error_line("capture: cannot start the browser; open the address yourself");
    }
    print(&format!("{}\n", safe(&address)))?;
    printing::print_error_line("capture: open it within a minute; it signs one browser in");
    Ok(())
}

fn pair(arguments: &PairArguments, client: &Client, json: Option<PrintJson<'_>>) -> anyhow::Result<()> {
    let scope = match arguments.scope {
        PairScope::Read => CodeScope::Read,
        PairScope::Control => CodeScope::Control,
        PairScope::Admin => CodeScope::Admin,
    };
    let device_id = arguments.device.as_deref().map(|given| find(client, given)).transpose()?;
    let wanted = PairingRequest { scope, device_id, tunnel: arguments.tunnel, local: false };
    let code = client.send::<CreatePairingCode>("", &wanted)?;
    let address = address(&code, arguments.url.as_deref());
    if let Some(json) = json {
        return json(&json!({ "code": code.code, "url": address, "scope": code.scope, "expires_at": code.expires_at }));
    }
    if arguments.qr {
        let Some(picture) = qr::of(&address) else {
            return Err(Failed::Usage("--url: the address is too long for a QR code".into()).into());
        };
        // The picture uses our own background colours, which the usual output would strip.
        std::io::stdout().write_all(picture.as_bytes())?;
    }
    let mut text = String::new();
    if arguments.scope == PairScope::Admin {
        let _ = writeln!(text, "{}", code.code);
        print(&text)?;
        printing::print_error_line("capture: enter the code on the device within a minute");
        return Ok(());
    }
    let _ = writeln!(text, "{}\ncode: {}", safe(&address), code.code);
    print(&text)?;
    let may = if arguments.scope == PairScope::Read { "see sessions" } else { "see sessions and act on them" };
    printing::print_error_line(&format!(
        "capture: open the address on the device within a minute, or enter the code there; it may then {may}"
    ));
    if arguments.url.is_none() {
        printing::print_error_line(
            "capture: only this machine can reach this address; `capture web --help` shows how another device can \
             reach the server",
        );
    }
    Ok(())
}

fn list(client: &Client, json: Option<PrintJson<'_>>) -> anyhow::Result<()> {
    let list = devices(client)?;
    if let Some(json) = json {
        return json(&serde_json::to_value(&list)?);
    }
    if list.devices.is_empty() {
        return print("no devices are paired\n");
    }
    let now = clock::now();
    let mut text = format!("{:<8}  {:<7}  {:>6}  {:>6}  NAME\n", "ID", "SCOPE", "PAIRED", "USED");
    for listed in &list.devices {
        let device = &listed.device;
        let (paired, used) = (style::age(device.paired_at, now), style::age(device.last_used_at, now));
        let (id, scope) = (safe(&device.id), device.scope.as_str());
        let _ = writeln!(text, "{id:<8}  {scope:<7}  {paired:>6}  {used:>6}  {}", safe(&device.name));
    }
    print(&text)
}

fn revoke(given: &str, client: &Client, json: Option<PrintJson<'_>>) -> anyhow::Result<()> {
    let id = find(client, given)?;
    let signed_out = client.delete::<RevokeDevice>(&id, &NoQuery {})?;
    match json {
        Some(json) => json(&serde_json::to_value(&signed_out)?),
        None => print(&format!("revoked {}\n", safe(&id))),
    }
}

fn devices(client: &Client) -> anyhow::Result<DeviceList> {
    Ok(client.one::<ListDevices>("")?)
}

/// The id of the device the user names by its id or a prefix of it.
fn find(client: &Client, given: &str) -> anyhow::Result<String> {
    let list = devices(client)?;
    let wanted = given.to_ascii_uppercase();
    let mut fitting = list
        .devices
        .into_iter()
        .map(|listed| listed.device.id)
        .filter(|id| *id == wanted || wanted.len() >= 3 && id.starts_with(&wanted));
    match (fitting.next(), fitting.next()) {
        (Some(id), None) => Ok(id),
        (Some(_), Some(_)) => {
            Err(Failed::Usage(format!("`{}` matches several devices; give more characters", safe(given))).into())
        }
        (None, _) => {
            let why = format!("no device `{}`; `capture web devices` lists them", safe(given));
            Err(Failed::NotFound(why).into())
        }
    }
}

/// The address of the page that accepts a code, relative to `base` if one is given.
fn address(code: &PairingCode, base: Option<&str>) -> String {
    let Some(base) = base else { return code.url.clone() };
    // http://ADDRESS/PAGE#CODE
    let page = code.url.splitn(4, '/').nth(3).unwrap_or_default();
    format!("{}/{page}", base.trim_end_matches('/'))
}

/// An address of a server: a scheme and a host, with or without a port.
fn url(given: &str) -> Result<String, String> {
    let wrong = || "expected an address such as https://box.tailnet.ts.net".to_owned();
    let host = given.strip_prefix("https://").or_else(|| given.strip_prefix("http://")).ok_or_else(wrong)?;
    let host = host.trim_end_matches('/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if host.is_empty() || !host.chars().all(is_plain) { Err(wrong()) } else { Ok(given.to_owned()) }
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(printing::stdout().write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use events::Timestamp;

    use super::*;

    fn code(page: &str) -> PairingCode {
        PairingCode {
            code: "7K3M-9QXT".into(),
            scope: CodeScope::Read,
            expires_at: Timestamp::from_millisecond(0),
            url: format!("http://127.0.0.1:4555/{page}#7K3M-9QXT"),
        }
    }

    #[test]
    fn a_base_url_replaces_the_server_address_in_the_link() {
        assert_eq!(address(&code("pair"), None), "http://127.0.0.1:4555/pair#7K3M-9QXT");
        let base = Some("https://box.tailnet.ts.net/");
        assert_eq!(address(&code("pair"), base), "https://box.tailnet.ts.net/pair#7K3M-9QXT");
        assert_eq!(address(&code("devices"), base), "https://box.tailnet.ts.net/devices#7K3M-9QXT");
    }

    #[test]
    fn a_base_url_has_only_a_scheme_and_a_host() {
        for right in ["https://box.tailnet.ts.net", "http://192.0.2.7:8080/", "http://[::1]:4555"] {
            assert_eq!(url(right).as_deref(), Ok(right));
        }
        for wrong in ["", "box.tailnet.ts.net", "https://", "ftp://x", "https://x/y", "https://user@x", "https://x#y"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
