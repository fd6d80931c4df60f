//! `capture agent session export`: writes the tree as a web page, with secrets of a known form removed.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use export::tree_html::{self, PageOptions};
use session_tree::Object;

use super::{At, SessionOutput, file::Loaded};
use crate::commands::export::to_file;
use printing::safe;

#[derive(Debug, clap::Args)]
pub(super) struct Export {
    #[command(flatten)]
    pub(super) at: At,
    /// Write the page to this file [default: the file's name with `.html`, in the current directory].
    #[arg(long, short, alias = "out", value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Overwrite the page if it exists.
    #[arg(long)]
    force: bool,
}

pub(super) fn export(arguments: &Export) -> anyhow::Result<SessionOutput> {
    let At { file, leaf } = &arguments.at;
    let loaded = Loaded::read(file)?.at(leaf.as_ref())?;
    let out = match &arguments.output {
        Some(out) => out.clone(),
        None => beside_us(file)?,
    };
    let options = PageOptions { leaf: loaded.leaf(), title: loaded.title.as_deref(), redact: &redact::text };
    to_file(&out, arguments.force, |page| {
        tree_html::write(&loaded.tree, &options, page)?;
        Ok(page.flush()?)
    })?;
    let entries = loaded.tree.entries().len();
    let json =
        Object::new().with("ok", true).with("page", out.to_string_lossy().into_owned()).with("entries", entries as u64);
    Ok(SessionOutput { json, text: format!("{entries} entries in {}", safe(&out.to_string_lossy())) })
}

fn beside_us(file: &Path) -> anyhow::Result<PathBuf> {
    let name = file.file_name().with_context(|| format!("{} is not a file name", file.display()))?;
    Ok(Path::new(name).with_extension("html"))
}
