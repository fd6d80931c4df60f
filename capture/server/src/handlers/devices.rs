//! Signing in: pairing codes, the cookies of devices, and the list of devices.

use std::sync::Arc;

use api::{
    ErrorCode, Operation, Scope,
    devices::{
        COOKIE, CodeScope, DeviceList, ListedDevice, Me, PairRequest, Paired, PairingCode, PairingRequest, SignedOut,
        SteppedUp,
    },
    push::{PushKey, PushState},
    routes::{
        CreatePairingCode, GetMe, GetPush, ListDevices, PairDevice, RevokeDevice, SignOut, StepUp, SubscribePush,
        UnsubscribePush,
    },
};
use axum::response::Response;
use devices::{Caller, CodeError, Devices, PairError, SignedIn};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::{
    answer::{self, HandlerResult},
    app::App,
    call::Call,
    connection::Transport,
    error::ApiError,
};

/// Lifetime of the cookie in the browser, seconds: the maximum that browsers allow. The device may be signed out
/// earlier.
const COOKIE_SECONDS: u32 = 400 * 24 * 3_600;

fn devices_of(app: &App) -> Result<Devices, ApiError> {
    app.devices.clone().ok_or_else(|| ApiError::unavailable("this server does not pair devices"))
}

/// The signed-in device; fails for a request with a token.
fn signed_in<O: Operation>(call: &Call<O>) -> Result<SignedIn, ApiError> {
    call.device.clone().ok_or_else(|| {
        ApiError::not_found("no device is signed in: the request was sent with a token, not with a device's cookie")
    })
}

/// Runs a write of the devices' file on a blocking thread.
async fn blocking<T: Send + 'static>(
    app: &App,
    devices: Devices,
    task: impl FnOnce(&Devices) -> T + Send + 'static,
) -> Result<T, ApiError> {
    app.tasks.spawn_blocking(move || task(&devices)).await.map_err(|cause| ApiError::internal(&cause))
}

/// `POST /api/v1/pairing`
pub(crate) async fn create_code(mut call: Call<CreatePairingCode>) -> HandlerResult {
    if call.device.is_some() {
        return Err(ApiError::new(ErrorCode::WrongScope, "only a token can create codes, not a device")
            .hint("run `capture web pair`"));
    }
    let wanted: PairingRequest = call.body().await?;
    let made = devices_of(&call.app)?.make_code(&wanted).map_err(|error| match error {
        CodeError::UnknownDevice => ApiError::not_found("no device has this id; `capture web devices` lists them"),
        CodeError::NoDevice | CodeError::NotForDevice | CodeError::ReadOnly => ApiError::body(error),
        CodeError::Random(_) => ApiError::internal(&error),
    });
    let (code, expires_at) = made?;
    let scope = wanted.scope;
    let page = match scope {
        CodeScope::Read | CodeScope::Control => "pair",
        CodeScope::Admin => "devices",
    };
    let url = format!("{}/{page}#{code}", call.app.url);
    let mut response = call.answer(&PairingCode { code, scope, expires_at, url })?;
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// `POST /api/v1/pair`
pub(crate) async fn pair(mut call: Call<PairDevice>) -> HandlerResult {
    let app = Arc::clone(&call.app);
    app.gate.check_own_page(&call.parts.headers)?;
    let PairRequest { code, name } = call.body().await?;
    let caller = app.gate.pairing_caller(&call.connection.transport)?;
    let paired = blocking(&app, devices_of(&app)?, move |devices| devices.pair(&code, &name, caller)).await?;
    let (device, cookie) = paired.map_err(|error| {
        let refused = refused(&app, &call.connection.transport, &error);
        if matches!(error, PairError::Wrong) && caller == Caller::Unidentified {
            return refused.hint(
                "a browser that connects through an SSH tunnel, or through a proxy that runs as your user, needs a \
                 code from `capture web pair --tunnel`",
            );
        }
        refused
    })?;
    tracing::info!(device = %device.id, scope = device.scope.as_str(), "a device was paired");
    let mut response = call.answer(&Paired { device })?;
    set_cookie(&mut response, &call.parts.headers, cookie.as_str(), COOKIE_SECONDS)?;
    Ok(response)
}

fn refused(app: &App, transport: &Transport, error: &PairError) -> ApiError {
    match error {
        PairError::Wrong => app.gate.wrong_code(transport),
        PairError::Expired => ApiError::new(ErrorCode::CodeExpired, error.to_string())
            .hint("`capture web pair` prints a new code, which is valid for one minute"),
        PairError::TooMany => ApiError::new(ErrorCode::Conflict, error.to_string()),
        PairError::Random(_) | PairError::File(_) => ApiError::internal(error),
    }
}

/// Sets the cookie of a device. Scripts cannot read it, pages of other sites cannot have it sent, and a cookie set over
/// TLS is sent only over TLS.
fn set_cookie(response: &mut Response, asked: &HeaderMap, value: &str, seconds: u32) -> Result<(), ApiError> {
    let over_tls = asked.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    let secure = if over_tls { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut cookie =
        HeaderValue::try_from(cookie).map_err(|_| ApiError::internal(&"a cookie that cannot be a header"))?;
    cookie.set_sensitive(true);
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(())
}

/// `GET /api/v1/me`
pub(crate) async fn me(call: Call<GetMe>) -> HandlerResult {
    let SignedIn { device, raised_until, .. } = signed_in(&call)?;
    let started_at = devices_of(&call.app)?.started_at();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    call.answer(&Me { device, elevated_until: raised_until, version, started_at })
}

/// `POST /api/v1/step-up`
pub(crate) async fn step_up(mut call: Call<StepUp>) -> HandlerResult {
    let code = call.body().await?.code;
    let (signed_in, devices) = (signed_in(&call)?, devices_of(&call.app)?);
    call.app.gate.check_device_peer(&signed_in, Scope::Admin, &call.connection.transport)?;
    let device = signed_in.device;
    let raised = devices.step_up(&device.id, &code);
    let elevated_until = raised.map_err(|error| refused(&call.app, &call.connection.transport, &error))?;
    tracing::info!(device = %device.id, "a device was elevated");
    call.answer(&SteppedUp { elevated_until })
}

/// `GET /api/v1/devices`
pub(crate) async fn list(call: Call<ListDevices>) -> HandlerResult {
    let own = call.device.as_ref().map(|signed_in| signed_in.device.id.as_str());
    let devices = devices_of(&call.app)?.list().into_iter();
    let devices = devices.map(|device| ListedDevice { current: own == Some(&device.id), device }).collect();
    call.answer(&DeviceList { devices })
}

/// `DELETE /api/v1/devices/{id}`
pub(crate) async fn revoke(call: Call<RevokeDevice>) -> HandlerResult {
    let id = call.segment.to_ascii_uppercase();
    revoke_one(&call.app, &id).await?;
    let mut response = answer::json_of(&SignedOut { id: id.clone() })?;
    if call.device.as_ref().is_some_and(|own| own.device.id == id) {
        set_cookie(&mut response, &call.parts.headers, "", 0)?;
    }
    Ok(response)
}

/// `POST /api/v1/sign-out`
pub(crate) async fn sign_out(call: Call<SignOut>) -> HandlerResult {
    let id = signed_in(&call)?.device.id;
    revoke_one(&call.app, &id).await?;
    let mut response = call.answer(&SignedOut { id })?;
    set_cookie(&mut response, &call.parts.headers, "", 0)?;
    Ok(response)
}

async fn revoke_one(app: &App, id: &str) -> Result<(), ApiError> {
    let revoked = id.to_owned();
    match blocking(app, devices_of(app)?, move |devices| devices.revoke(&revoked)).await? {
        Ok(true) => {
            app.revocations.send_replace(());
            tracing::info!(device = %id, "a device was revoked");
            Ok(())
        }
        Ok(false) => Err(ApiError::not_found("no device has this id; `capture web devices` lists them")),
        Err(cause) => Err(ApiError::internal(&cause)),
    }
}

/// `GET /api/v1/push`
pub(crate) async fn push_key(call: Call<GetPush>) -> HandlerResult {
    let public_key = call.app.ask(call.app.control.push_key()).await?;
    call.answer(&PushKey { public_key })
}

/// `POST /api/v1/push/subscriptions`
pub(crate) async fn subscribe(mut call: Call<SubscribePush>) -> HandlerResult {
    let subscription = call.body().await?;
    let device = signed_in(&call)?.device.id;
    call.app.ask(call.app.control.subscribe_push(device, subscription)).await?;
    call.answer(&PushState { subscribed: true })
}

/// `DELETE /api/v1/push/subscriptions`
pub(crate) async fn unsubscribe(mut call: Call<UnsubscribePush>) -> HandlerResult {
    call.body().await?;
    let device = signed_in(&call)?.device.id;
    call.app.ask(call.app.control.unsubscribe_push(device)).await?;
    call.answer(&PushState { subscribed: false })
}
