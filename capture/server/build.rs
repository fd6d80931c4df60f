//! Lists the files of the page, `web/dist`, so that they are embedded in the program. `web/build.mjs` builds the page,
//! and the result is committed, with a list of hashes for its tests, which is not embedded.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

#[expect(clippy::disallowed_methods, reason = "cargo says where to write in the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    list(&dist, "", &mut files)?;
    files.retain(|name| name != "SHA256SUMS");
    files.sort();
    let mut table = format!("/// The files, by name.\nstatic FILES: [Asset; {}] = [\n", files.len());
    for name in files {
        let file = dist.join(&name);
        writeln!(table, "    Asset::new({name:?}, include_bytes!({:?})),", file.display().to_string())?;
    }
    table.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("assets.rs"), table)?;
    Ok(())
}

/// Lists the files below a directory by their relative paths.
fn list(directory: &Path, prefix: &str, files: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}
