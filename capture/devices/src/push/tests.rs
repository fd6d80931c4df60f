use std::{fs, os::unix::fs::PermissionsExt};

use super::{encrypt::tests::TestBrowser, *};

const ENDPOINT: &str = "https://fcm.googleapis.com/fcm/send/abc";

#[test]
fn only_known_browser_push_services_are_accepted() {
    for good in [
        ENDPOINT,
        "https://updates.push.services.mozilla.com/wpush/v2/x",
        "https://web.push.apple.com/x",
        "https://wns2-par02p.notify.windows.com/w/?token=x",
    ] {
        assert!(is_push_service(good), "{good}");
    }
    for bad in [
        "",
        "http://fcm.googleapis.com/x",
        "https://fcm.googleapis.com:8443/x",
        "https://fcm.googleapis.com.evil.test/x",
        "https://evil.test/fcm.googleapis.com",
        "https://user@fcm.googleapis.com/x",
        "https://notify.windows.com.evil.test/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://localhost/x",
        "https://169.254.169.254/latest",
        "file:///etc/passwd",
    ] {
        assert!(!is_push_service(bad), "{bad}");
    }
    assert!(!is_push_service(&format!("https://fcm.googleapis.com/{}", "x".repeat(ENDPOINT_BYTES))));
}

#[test]
fn a_subscription_receives_messages_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("push.json");
    let subscriptions = Subscriptions::new(&file);
    assert!(subscriptions.is_empty() && !file.exists(), "nothing is made before it is needed");
    let key = subscriptions.public_key().unwrap();
    let browser = TestBrowser::new();
    let (p256dh, auth) = browser.keys();
    subscriptions.subscribe("D1", ENDPOINT, &p256dh, &auth).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let again = Subscriptions::new(&file);
    assert_eq!((again.len(), again.public_key().unwrap()), (1, key.clone()));
    let requests = again.requests(b"{}", 1_000, "https://example.test").unwrap();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(request.endpoint, ENDPOINT);
    let header = |name: &str| request.headers.iter().find(|(known, _)| *known == name).unwrap().1.as_str();
    assert_eq!((header("content-encoding"), header("ttl"), header("urgency")), ("aes128gcm", "3600", "high"));
    assert!(header("authorization").ends_with(&format!(", k={key}")));
    assert!(!format!("{request:?}").contains("fcm"), "an endpoint is not printed");
    assert_eq!(browser.decrypt(&request.body), b"{}");
}

#[test]
fn a_device_has_at_most_one_subscription() {
    let directory = tempfile::tempdir().unwrap();
    let subscriptions = Subscriptions::new(&directory.path().join("push.json"));
    let (p256dh, auth) = TestBrowser::new().keys();
    let subscribe = |device: &str, endpoint: &str| subscriptions.subscribe(device, endpoint, &p256dh, &auth);
    subscribe("D1", ENDPOINT).unwrap();
    subscribe("D1", &format!("{ENDPOINT}2")).unwrap();
    assert_eq!(subscriptions.len(), 1);
    subscribe("D2", &format!("{ENDPOINT}2")).unwrap();
    assert_eq!(subscriptions.len(), 1, "an endpoint is one browser's");
    assert!(matches!(subscribe("D3", "https://evil.test/"), Err(PushError::Endpoint)));
    assert!(matches!(subscriptions.subscribe("D3", ENDPOINT, "x", &auth), Err(PushError::Keys)));
    for n in 0..MOST_SUBSCRIPTIONS - 1 {
        subscribe(&format!("M{n}"), &format!("{ENDPOINT}/{n}")).unwrap();
    }
    assert!(matches!(subscribe("D4", ENDPOINT), Err(PushError::TooMany)));
    subscriptions.unsubscribe("D2").unwrap();
    subscribe("D4", ENDPOINT).unwrap();
    subscriptions.forget(|device, endpoint| device != "D4" || endpoint.is_empty()).unwrap();
    assert_eq!(subscriptions.len(), 1);
}

#[test]
fn an_unreadable_subscription_file_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("push.json");
    for text in
        ["", "{", r#"{"version":2,"key":"","subscriptions":[]}"#, r#"{"version":1,"key":"AAAA","subscriptions":[]}"#]
    {
        fs::write(&file, text).unwrap();
        let subscriptions = Subscriptions::new(&file);
        assert!(subscriptions.public_key().is_err(), "{text}");
        assert_eq!(subscriptions.len(), 0);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}
