//! `capture man`: the manual pages, for packages.

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use clap_mangen::Man;
use client::failure::Failed;

use super::arguments::command_line;
use printing::safe;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The command, such as `policy explain` [default: the page of capture itself].
    #[arg(conflicts_with = "output")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory.
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let pages = pages();
    if let Some(dir) = &arguments.output {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        for page in &pages {
            let file = dir.join(format!("{}.1", page.name));
            fs::write(&file, &page.text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        return Ok(());
    }
    let name = [&["capture".to_owned()], arguments.command.as_slice()].concat().join("-");
    let Some(page) = pages.iter().find(|page| page.name == name) else {
        let given = arguments.command.join(" ");
        return Err(Failed::NotFound(format!("no command `{}`; `capture --help` lists them", safe(&given))).into());
    };
    use std::io::Write;
    Ok(printing::stdout().write_all(page.text.as_bytes())?)
}

/// A manual page of section 1.
struct Page {
    /// For example `capture-policy-explain`.
    name: String,
    text: String,
}

/// One page for each command that is not hidden, `capture` first.
fn pages() -> Vec<Page> {
    let mut command = command_line().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, "capture", &mut pages);
    pages
}

fn add(command: &clap::Command, name: &str, pages: &mut Vec<Page>) {
    let page = command.clone().display_name(name).bin_name(name.replace('-', " "));
    let mut text = Vec::new();
    let man = Man::new(page).manual("capture").source(format!("capture {}", env!("CARGO_PKG_VERSION")));
    // Writing into memory does not fail.
    if man.render(&mut text).is_ok() {
        pages.push(Page { name: name.to_owned(), text: String::from_utf8_lossy(&text).into_owned() });
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        add(below, &format!("{name}-{}", below.get_name()), pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options_and_examples() {
        let pages = pages();
        let page = |name: &str| pages.iter().find(|page| page.name == name).map(|page| page.text.as_str());
        assert!(page("capture").unwrap().contains("capture\\-approvals(1)"));
        let ps = page("capture-ps").unwrap();
        assert!(ps.contains("\\-\\-agent") && ps.contains("capture ps \\-\\-watch"), "{ps}");
        assert!(page("capture-policy-explain").is_some() && page("capture-man").is_none());
        assert!(pages.len() > 60, "{}", pages.len());
        for page in &pages {
            assert!(page.text.contains(".SH SYNOPSIS") && page.text.contains(".SH NAME"), "{}", page.name);
        }
    }
}
