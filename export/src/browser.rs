//! Runs pages in a real browser, with a server that counts their requests. Needs `chromium` on the PATH.

use std::{
    io::Read,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread::JoinHandle,
};

/// The page's document after its script has run, opened with `address` appended to its path.
pub(crate) fn document(dir: &Path, page: &str, address: &str) -> String {
    let file = dir.join("page.html");
    std::fs::write(&file, page).unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--virtual-time-budget=8000"])
        .args(["--window-size=1200,900", "--allow-file-access-from-files", "--dump-dom"])
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("file://{}{address}", file.display()))
        .stderr(Stdio::null())
        .output()
        .expect("chromium runs");
    String::from_utf8(output.stdout).unwrap()
}

/// The width of a page's document in a window of this width, CSS pixels.
pub(crate) fn width_within(dir: &Path, page: &str, width: u32) -> u32 {
    std::fs::write(dir.join("inner.html"), page).unwrap();
    // A top-level window cannot be as narrow as a telephone's.
    let frame = format!(
        "<!doctype html><iframe src=inner.html style=\"border:0;width:{width}px;height:800px\"></iframe><script>\
         onload = () => {{ document.title = 'width ' + frames[0].document.documentElement.scrollWidth; }}</script>"
    );
    let shown = document(dir, &frame, "");
    let title = shown.split("<title>width ").nth(1).unwrap_or_else(|| panic!("no title: {shown}"));
    title.split('<').next().unwrap().parse().unwrap()
}

/// Listens, and counts connections. Each is closed immediately, so that the browser continues.
pub(crate) fn canary() -> (String, JoinHandle<u32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let count = move || {
        let mut asked = 0;
        for connection in listener.incoming() {
            let mut first = [0];
            // The test's own connection sends nothing.
            if connection.unwrap().read(&mut first).unwrap_or(1) == 0 {
                break;
            }
            asked += 1;
        }
        asked
    };
    (address, std::thread::spawn(count))
}

/// The number of requests that a canary counted.
pub(crate) fn told(address: &str, asked: JoinHandle<u32>) -> u32 {
    drop(TcpStream::connect(address).unwrap());
    asked.join().unwrap()
}
