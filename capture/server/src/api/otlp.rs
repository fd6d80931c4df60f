//! OpenTelemetry of agents, over OTLP/HTTP. Here a body is received and inflated, within limits;
//! capture understands and stores it, and its sender is answered when that is done.
//!
//! An exporter keeps what is answered with 429 and 503, and sends it again; 400 and 413 it drops.

use std::{io::Write, sync::Arc};

use flate2::write::MultiGzDecoder;
use http::{HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use tokio::{sync::oneshot, time::timeout};

use crate::{
    Command, Telemetry, TelemetryKind, TelemetryRefusal,
    app::App,
    body,
    call::{self, Answer, Call, Coding, MediaType, Reply},
    error::ApiError,
};

/// A sender that was told to come again waits so long, seconds.
const RETRY_AFTER_S: u32 = 2;

/// `POST /v1/logs`
pub(crate) fn logs(app: &App, call: Call) -> Reply {
    take(app, call, TelemetryKind::Logs)
}

/// `POST /v1/traces`
pub(crate) fn traces(app: &App, call: Call) -> Reply {
    take(app, call, TelemetryKind::Traces)
}

/// `POST /v1/metrics`
pub(crate) fn metrics(app: &App, call: Call) -> Reply {
    take(app, call, TelemetryKind::Metrics)
}

fn take(app: &App, call: Call, kind: TelemetryKind) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        // Held until the answer: it bounds the memory all bodies take together.
        let _place = Arc::clone(&app.telemetry).try_acquire_owned().map_err(|_| busy())?;
        let protobuf = call::media_type(&call.parts.headers) == Some(MediaType::Protobuf);
        let body = receive(&app, call).await?;
        hand_over(&app, Telemetry { kind, protobuf, body }).await
    })
}

/// Reads the body, inflating it as it comes: what grows beyond the limit is not read further.
async fn receive(app: &App, mut call: Call) -> Result<Vec<u8>, ApiError> {
    let limit = app.limits.telemetry_bytes;
    let coding = call::coding(&call.parts.headers)?;
    let Some(mut upload) = call.upload.take() else { return Ok(Vec::new()) };
    let mut inflating = Inflating::new(coding, limit);
    let read = async {
        let mut sent = 0;
        while let Some(frame) = upload.frame().await {
            let Ok(data) = frame.map_err(ApiError::body)?.into_data() else { continue };
            sent += data.len();
            if sent > limit {
                return Err(ApiError::too_large(limit));
            }
            inflating.add(&data)?;
        }
        inflating.finish()
    };
    match timeout(app.limits.read, read).await {
        Ok(read) => read,
        Err(_) => Err(ApiError::timeout("the body did not arrive in time")),
    }
}

/// A body on its way through the decoder.
enum Inflating {
    Plain(Capped),
    Gzip(Box<MultiGzDecoder<Capped>>),
}

/// Bytes up to a limit.
struct Capped {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            self.full = true;
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Inflating {
    fn new(coding: Coding, limit: usize) -> Self {
        let capped = Capped { bytes: Vec::new(), limit, full: false };
        match coding {
            Coding::Identity => Self::Plain(capped),
            Coding::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(capped))),
        }
    }

    fn add(&mut self, data: &[u8]) -> Result<(), ApiError> {
        let written = match self {
            Self::Plain(capped) => capped.write_all(data),
            Self::Gzip(decoder) => decoder.write_all(data),
        };
        written.map_err(|why| self.refused(&why))
    }

    fn finish(&mut self) -> Result<Vec<u8>, ApiError> {
        if let Self::Gzip(decoder) = self {
            let ended = decoder.try_finish();
            ended.map_err(|why| self.refused(&why))?;
        }
        Ok(std::mem::take(&mut self.capped().bytes))
    }

    fn capped(&mut self) -> &mut Capped {
        match self {
            Self::Plain(capped) => capped,
            Self::Gzip(decoder) => decoder.get_mut(),
        }
    }

    fn refused(&mut self, why: &std::io::Error) -> ApiError {
        let capped = self.capped();
        if capped.full { ApiError::too_large(capped.limit) } else { ApiError::body(format!("gzip: {why}")) }
    }
}

/// Gives a message to capture and waits until what it tells is stored.
async fn hand_over(app: &App, message: Telemetry) -> Answer {
    let protobuf = message.protobuf;
    let stuck = || ApiError::unavailable("nothing can be stored at the moment").header(header::RETRY_AFTER, later());
    let commands = app.commands.as_ref().ok_or_else(stuck)?;
    let (reply, answer) = oneshot::channel();
    commands.try_send(Command::Telemetry { message, reply }).map_err(|_| busy())?;
    match timeout(app.limits.telemetry_wait, answer).await {
        Ok(Ok(Ok(answer))) if protobuf => Ok(body::protobuf(answer)),
        Ok(Ok(Ok(answer))) => Ok(body::json(answer)),
        Ok(Ok(Err(TelemetryRefusal::Malformed(why)))) => Err(ApiError::body(why)),
        Ok(Ok(Err(TelemetryRefusal::Busy))) => Err(busy()),
        Ok(Ok(Err(TelemetryRefusal::Stuck)) | Err(_)) => Err(stuck()),
        Err(_) if (app.health.ready)() => Err(busy()),
        Err(_) => Err(stuck()),
    }
}

fn busy() -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", "too much is to be stored at the moment")
        .header(header::RETRY_AFTER, later())
}

fn later() -> HeaderValue {
    HeaderValue::from(RETRY_AFTER_S)
}
