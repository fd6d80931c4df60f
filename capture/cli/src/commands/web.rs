//! `capture web`

use super::Context;

pub(super) use web_command::Arguments;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let json = |value: &serde_json::Value| context.print_json(value);
    web_command::run(arguments, &context.client()?, context.json.then_some(&json))
}
