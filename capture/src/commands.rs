//! placeholder
use std::process::ExitCode;
/// x
pub fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter("info").init();
    let mut args = std::env::args().skip(2);
    let mut data = None; let mut listen = "127.0.0.1:0".to_owned();
    while let Some(a) = args.next() { match a.as_str() { "--data-dir" => data = args.next(), "--listen" => listen = args.next().unwrap_or_default(), _ => {} } }
    let o = crate::serve::Options { listen: listen.parse().expect("addr"), exposed: false, data: crate::places::data_dir(data.as_deref().map(std::path::Path::new)).expect("d"), config: crate::config::Config::default() };
    match crate::serve::run(&o, &tokio_util::sync::CancellationToken::new()) { Ok(()) => ExitCode::SUCCESS, Err(e) => { eprintln!("{e:#}"); ExitCode::FAILURE } }
}
