//! The files of the page, built into the program from `web/dist`. They contain no data, so they need no sign-in; the
//! page loads its data through the routes of the API.

use std::{borrow::Cow, io::Write as _, sync::OnceLock};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// The page itself, which chooses its view by its address.
const INDEX: &str = "index.html";
/// First path segments of the page's views, as in `web/src/router.ts`.
const VIEWS: &[&str] = &["approvals", "devices", "overview", "pair", "recordings", "s", "terminal"];
/// Files that browsers request from the root directory. A service worker applies to the directory it is in.
const BESIDE: &[&str] = &["manifest.webmanifest", "sw.js", "favicon.ico", "favicon.svg"];
/// Minimum size of a compressed file, bytes.
const COMPRESSED_FROM: usize = 1 << 10;

/// The page may only load files from this server and send requests to it. The single trusted-types policy creates the
/// address of the service worker.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
     connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types capture",
);
/// Browser features that the page does not use.
const PERMISSIONS: HeaderValue =
    HeaderValue::from_static("camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()");

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A file of the page.
pub(crate) struct Asset {
    /// The path in `web/dist`.
    name: &'static str,
    bytes: &'static [u8],
    /// The bytes to send, created on the first request.
    content: OnceLock<Bytes>,
    /// The compressed file, created on the first request.
    gzip: OnceLock<Option<Bytes>>,
    hash: OnceLock<String>,
}

impl Asset {
    const fn new(name: &'static str, bytes: &'static [u8]) -> Self {
        Self { name, bytes, content: OnceLock::new(), gzip: OnceLock::new(), hash: OnceLock::new() }
    }

    fn media_type(&self) -> &'static str {
        match self.name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "ico" => "image/x-icon",
            "webmanifest" => "application/manifest+json",
            "json" => "application/json",
            "woff2" => "font/woff2",
            "txt" => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }

    /// The file as it is sent. The page names its script and its style with the hashes of their contents, so that a
    /// browser caches them until they change.
    fn content(&self) -> &Bytes {
        self.content.get_or_init(|| match std::str::from_utf8(self.bytes) {
            Ok(page) if self.name == INDEX => Bytes::from(named_with_hashes(page).into_owned()),
            _ => Bytes::from_static(self.bytes),
        })
    }

    /// The compressed file; `None` if compression saves nothing.
    fn gzip(&self) -> Option<Bytes> {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(self.content()).ok()?;
            let bytes = encoder.finish().ok()?;
            (bytes.len() < self.content().len()).then(|| Bytes::from(bytes))
        };
        self.gzip.get_or_init(|| if self.content().len() < COMPRESSED_FROM { None } else { compress() }).clone()
    }

    /// The hash of the content.
    fn hash(&self) -> &str {
        self.hash.get_or_init(|| blake3::hash(self.content()).to_hex()[..32].to_owned())
    }

    /// The entity tag of the content, the same with and without compression.
    fn tag(&self) -> HeaderValue {
        HeaderValue::try_from(format!("W/\"{}\"", self.hash())).unwrap_or(HeaderValue::from_static("W/\"0\""))
    }

    /// How long a browser may cache the file: forever under an address that contains its hash; otherwise the browser
    /// must revalidate it.
    fn caching(&self, query: Option<&str>) -> HeaderValue {
        let named = query.and_then(|query| query.strip_prefix("v=")).is_some_and(|hash| hash == self.hash());
        HeaderValue::from_static(if named { "public, max-age=31536000, immutable" } else { "no-cache" })
    }
}

/// The page, with the hash of each file appended to the file's address.
fn named_with_hashes(page: &str) -> Cow<'_, str> {
    FILES.iter().filter(|file| file.name != INDEX).fold(Cow::Borrowed(page), |page, file| {
        let address = format!("\"/assets/{}\"", file.name);
        if page.contains(&address) {
            Cow::Owned(page.replace(&address, &format!("\"/assets/{}?v={}\"", file.name, file.hash())))
        } else {
            page
        }
    })
}

/// The file for a path: the page for each of its views, or one of its files.
pub(crate) fn at(path: &str) -> Option<&'static Asset> {
    let path = path.strip_prefix('/')?;
    let first = path.split('/').next().unwrap_or_default();
    let name = if path.is_empty() || VIEWS.contains(&first) {
        INDEX
    } else if BESIDE.contains(&path) {
        path
    } else {
        path.strip_prefix("assets/").filter(|name| *name != INDEX && !BESIDE.contains(name))?
    };
    FILES.iter().find(|file| file.name == name)
}

/// Answers with a file unless the browser has it cached. `query` is the query of the address.
pub(crate) fn answer(asset: &'static Asset, query: Option<&str>, asked: &HeaderMap) -> Response {
    let tag = asset.tag();
    let is_known = asked.get_all(header::IF_NONE_MATCH).iter().any(|tags| is_among(tags, &tag));
    let mut response = Response::new(Body::empty());
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else if let Some(gzip) = asset.gzip().filter(|_| takes_gzip(asked)) {
        *response.body_mut() = Body::from(gzip);
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    } else {
        *response.body_mut() = Body::from(asset.content().clone());
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media_type()));
    headers.insert(header::ETAG, tag);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::CACHE_CONTROL, asset.caching(query));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("permissions-policy"), PERMISSIONS);
    response
}

/// Whether a header's list of tags contains this one.
fn is_among(tags: &HeaderValue, tag: &HeaderValue) -> bool {
    tags.as_bytes().split(|byte| *byte == b',').any(|given| given.trim_ascii() == tag.as_bytes())
}

fn takes_gzip(asked: &HeaderMap) -> bool {
    let codings = asked.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = codings.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings.any(|coding| {
        let mut parts = coding.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"gzip"));
        is_gzip && !parts.any(|part| part == b"q=0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_paths_serve_the_page_and_asset_paths_their_files() {
        for path in ["/", "/pair", "/s/7K3M9QXT", "/s/7K3M9QXT/timeline", "/approvals", "/terminal/fix-login"] {
            assert_eq!(at(path).map(|asset| asset.name), Some(INDEX), "{path}");
        }
        for path in ["/assets/app.js", "/assets/app.css"] {
            assert_eq!(at(path).map(|asset| asset.name), path.strip_prefix("/assets/"), "{path}");
        }
        for path in ["", "/nowhere", "/index.html", "/assets/index.html", "/assets/../app.js", "/app.js", "/api/v1/me"]
        {
            assert!(at(path).is_none(), "{path}");
        }
    }

    #[test]
    fn every_asset_has_a_media_type_and_the_total_is_small() {
        assert!(FILES.iter().any(|file| file.name == INDEX));
        for file in &FILES {
            assert_ne!(file.media_type(), "application/octet-stream", "{}", file.name);
        }
        let sent = |file: &Asset| file.gzip().map_or(file.bytes.len(), |gzip| gzip.len());
        let total: usize = FILES.iter().map(sent).sum();
        assert!(total < 110_000, "{total} bytes over the wire");
    }

    #[test]
    fn asset_urls_with_the_content_hash_are_cached_as_immutable() {
        let file = |name: &str| FILES.iter().find(|file| file.name == name).unwrap();
        let page = std::str::from_utf8(file(INDEX).content()).unwrap();
        for name in ["app.js", "app.css", "icon.svg"] {
            let file = file(name);
            let query = format!("v={}", file.hash());
            assert!(page.contains(&format!("\"/assets/{name}?{query}\"")), "{page}");
            assert_eq!(file.caching(Some(&query)), "public, max-age=31536000, immutable");
            for other in [None, Some(""), Some("v="), Some("v=0123456789abcdef0123456789abcdef"), Some("x=1")] {
                assert_eq!(file.caching(other), "no-cache", "{other:?}: it may be another content");
            }
        }
        assert_eq!(file(INDEX).caching(None), "no-cache");
        // A service worker applies to the directory of its address.
        assert!(!page.contains("sw.js?") && page.contains("\"/manifest.webmanifest\""));
    }

    #[test]
    fn gzip_is_used_only_for_clients_that_accept_it() {
        let takes = |value: &str| {
            let mut asked = HeaderMap::new();
            asked.insert(header::ACCEPT_ENCODING, HeaderValue::try_from(value).unwrap());
            takes_gzip(&asked)
        };
        assert!(takes("gzip") && takes("br, gzip;q=0.5") && takes("deflate,GZIP"));
        assert!(!takes("br") && !takes("gzip;q=0") && !takes("x-gzip"));
    }
}
