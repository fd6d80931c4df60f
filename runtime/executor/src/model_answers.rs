//! Encodes and sends the requests of a session through `models`.

use std::{
    collections::HashMap,
    fmt::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use engine::{
    AnswerEnd, AnswerEvent, AnswerFailure, AnswerUsage, RequestNumber, RequestPlan, RequestPurpose, SummaryForm,
    SummaryRequest,
    cache::{BlockDigest, BlockOrigin, RequestDigest},
    wire::{self, WireOutline},
};
use models::{
    BlockKind, CacheTtl, EncodedRequest, EndReason, FailureKind, Marker, MarkerPlace, Prefix, SpillFile, StreamEvent,
    Target, Transcript, Usage,
    transport::{Exchange, ModelClient, ModelEndpoint},
};
use prices::Prices;
use session_tree::{Object, Tree};

use crate::ports::{AnswerSource, AnswerStream, BoxFuture, PrepareFailure, SessionClock};

/// A model and the host that serves it.
#[derive(Debug, Clone)]
pub struct ModelRoute {
    /// The model. Its `provider` and `model` match those of [`engine::ModelChoice`].
    pub target: Target,
    /// The host.
    pub endpoint: ModelEndpoint,
    /// The client that connects to the host.
    pub client: ModelClient,
    /// The source of its key, as text for the user: a variable, a file or a program.
    pub key_source: String,
}

/// The models that a session can use. Clones share them, so that a model can be added while the session is open.
#[derive(Debug, Clone, Default)]
pub struct ModelRoutes(Arc<Mutex<Vec<ModelRoute>>>);

impl ModelRoutes {
    /// Adds a model. Replaces one with the same provider and name.
    pub fn add(&self, route: ModelRoute) {
        let mut routes = self.lock();
        routes.retain(|known| !known.serves(&route.target.provider, &route.target.model));
        routes.push(route);
    }

    fn find(&self, provider: &str, model: &str) -> Option<ModelRoute> {
        self.lock().iter().find(|route| route.serves(provider, model)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ModelRoute>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelRoute {
    fn serves(&self, provider: &str, model: &str) -> bool {
        self.target.provider == provider && self.target.model == model
    }
}

/// Saves the body of a request that a vendor called invalid, which usually is a defect of capture. Returns its path.
pub type KeepRequest = Arc<dyn Fn(&[u8]) -> Option<PathBuf> + Send + Sync>;

/// The models of a session.
pub struct ModelAnswers {
    keep: Option<KeepRequest>,
    /// A file for encoded text that exceeds the memory limit.
    spill: Option<Arc<SpillFile>>,
    routes: ModelRoutes,
    /// The key by which vendors route the requests of a session to one cache.
    cache_key: String,
    prices: Arc<Prices>,
    clock: Arc<dyn SessionClock>,
    /// The encoded transcript for the model of the last request.
    transcript: Option<Transcript>,
    prepared: Option<PreparedRequest>,
}

struct PreparedRequest {
    request: RequestNumber,
    encoded: EncodedRequest,
    route: ModelRoute,
}

impl ModelAnswers {
    /// The models of a session; `cache_key` is its id.
    #[must_use]
    pub fn new(routes: ModelRoutes, cache_key: String, prices: Arc<Prices>, clock: Arc<dyn SessionClock>) -> Self {
        Self { keep: None, spill: None, routes, cache_key, prices, clock, transcript: None, prepared: None }
    }

    /// Saves requests that were called invalid with this function.
    #[must_use]
    pub fn keeping(self, keep: KeepRequest) -> Self {
        Self { keep: Some(keep), ..self }
    }

    /// Writes encoded text that exceeds the memory limit to this file.
    #[must_use]
    pub fn spilling_to(self, spill: SpillFile) -> Self {
        Self { spill: Some(Arc::new(spill)), ..self }
    }

    /// The transcript for a model; a new one if the model changed.
    fn transcript(&mut self, target: &Target, outline: &WireOutline<'_>) -> Result<&mut Transcript, AnswerFailure> {
        let fits = |transcript: &Transcript| transcript.target() == target;
        let kept = self.transcript.take_if(|transcript| fits(transcript));
        let transcript = match kept {
            Some(transcript) => transcript,
            None => {
                let new = Transcript::new(target.clone(), &prefix_of(outline));
                let new = new.map_err(|error| refused(error.to_string()))?;
                if let Some(spill) = &self.spill { new.spilling_to(Arc::clone(spill)) } else { new }
            }
        };
        Ok(self.transcript.insert(transcript))
    }
}

impl AnswerSource for ModelAnswers {
    fn prepare(&mut self, plan: &RequestPlan, tree: &Tree) -> Result<RequestDigest, PrepareFailure> {
        let (provider, id) = (&plan.model.provider, &plan.model.id);
        let Some(route) = self.routes.find(provider, id) else {
            return Err(refused(format!("the model `{id}` of `{provider}` is not configured")).into());
        };
        let outline = wire::outline_for(tree, &plan.purpose);
        let cache_key = self.cache_key.clone();
        let is_flattened = |request: &SummaryRequest| request.form == SummaryForm::Flattened;
        let mut separate = match &plan.purpose {
            // It shares nothing with the conversation.
            RequestPurpose::Compaction(request) if is_flattened(request) => Some(
                Transcript::new(route.target.clone(), &prefix_of(&outline))
                    .map_err(|error| refused(error.to_string()))?,
            ),
            RequestPurpose::Compaction(_) | RequestPurpose::Turn => None,
        };
        let transcript = match &mut separate {
            Some(transcript) => transcript,
            None => self.transcript(&route.target, &outline)?,
        };
        let keys = message_keys(&outline);
        let known = transcript.known(keys.iter().map(Option::as_deref));
        if outline.messages[known..].iter().any(|message| message.entry.is_released()) {
            return Err(PrepareFailure::Released);
        }
        let messages = outline.messages.iter().map(|message| &*message.message);
        let messages = keys.iter().map(Option::as_deref).zip(messages);
        transcript.sync(messages.chain(outline.order.as_ref().map(|order| (None, order))));
        let markers = markers(&outline, plan.long_system_cache);
        let encoded = transcript.request(Some(&cache_key), &markers).map_err(|error| refused(error.to_string()))?;
        let digest = digest(transcript, &outline, &markers, &encoded.markers);
        self.prepared = Some(PreparedRequest { request: plan.request, encoded, route });
        Ok(digest)
    }

    fn send(&mut self, request: RequestNumber) -> Option<Box<dyn AnswerStream>> {
        let prepared = self.prepared.take_if(|prepared| prepared.request == request)?;
        let route = &prepared.route;
        let exchange = route.client.exchange(&route.endpoint, &prepared.encoded, &request.to_string());
        let prices = PricedModel {
            prices: Arc::clone(&self.prices),
            clock: Arc::clone(&self.clock),
            model: route.target.model.clone(),
        };
        let key_source = route.key_source.clone();
        Some(Box::new(match exchange {
            Ok(exchange) => {
                let sent = SentRequest {
                    keep: self.keep.clone(),
                    request: prepared.encoded,
                    key_source,
                    provider: route.target.provider.clone(),
                    model: route.target.model.clone(),
                };
                ModelStream::Open(Box::new(exchange), prices, Some(sent))
            }
            Err(error) => ModelStream::Failed(Some(refused(error.to_string()))),
        }))
    }
}

/// The system prompt and tools in the form of `models`.
fn prefix_of(outline: &WireOutline<'_>) -> Prefix {
    let tools: Vec<session_tree::Json> = outline.tools.iter().cloned().map(Into::into).collect();
    Prefix::of_message(&Object::new().with("content", outline.system.as_str()).with("toolsAdded", tools))
}

/// A key for each message that identifies its content: the id of its entry, and its index among the entry's messages.
fn message_keys(outline: &WireOutline<'_>) -> Vec<Option<String>> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let key = |message: &wire::WireMessage<'_>| {
        let id = message.entry.id()?.to_owned();
        let count = counts.entry(id.clone()).or_default();
        *count += 1;
        let made_up = message.message.text("role") == Some("toolResult") && message.entry.role() == Some("assistant");
        Some(format!("{id}/{}{count}", if made_up { "lost " } else { "" }))
    };
    outline.messages.iter().map(key).collect()
}

fn markers(outline: &WireOutline<'_>, long_system_cache: bool) -> Vec<Marker> {
    let ttl = if long_system_cache { CacheTtl::Hour } else { CacheTtl::FiveMinutes };
    let of_message = |marker: &wire::CacheMarker| {
        let is_result = outline.messages[marker.message].message.text("role") == Some("toolResult");
        let place = if is_result {
            MarkerPlace::Entry(marker.message)
        } else {
            MarkerPlace::Block { entry: marker.message, block: marker.block }
        };
        Marker { place, ttl: CacheTtl::FiveMinutes }
    };
    [Marker { place: MarkerPlace::System, ttl }].into_iter().chain(outline.markers.iter().map(of_message)).collect()
}

/// The blocks of the request, with the placed marks.
fn digest(
    transcript: &Transcript,
    outline: &WireOutline<'_>,
    markers: &[Marker],
    placed: &[MarkerPlace],
) -> RequestDigest {
    let chain: Vec<_> = transcript.chain().collect();
    let origin = |kind: BlockKind, entry: Option<usize>| match kind {
        BlockKind::Settings => BlockOrigin::Settings,
        BlockKind::Tools => BlockOrigin::Tools,
        BlockKind::System => BlockOrigin::System,
        BlockKind::Message => {
            let entry = entry.and_then(|entry| outline.messages.get(entry)).and_then(|message| message.entry.id());
            BlockOrigin::Entry(entry.unwrap_or_default().to_owned())
        }
    };
    let mut blocks: Vec<BlockDigest> = chain
        .iter()
        .map(|block| BlockDigest {
            hash: block.hash.0,
            bytes: block.bytes as u64,
            origin: origin(block.kind, block.entry),
            is_marked: false,
            is_long: false,
        })
        .collect();
    for marker in markers.iter().filter(|marker| placed.contains(&marker.place)) {
        // The last block that can be marked, as the encoder places it.
        let of_place = |(_, block): &(usize, &models::ChainBlock)| match marker.place {
            MarkerPlace::System => block.entry.is_none(),
            MarkerPlace::Entry(entry) | MarkerPlace::Block { entry, .. } => block.entry == Some(entry),
        };
        let reach = if let MarkerPlace::Block { block, .. } = marker.place { block + 1 } else { usize::MAX };
        let bearing = chain.iter().enumerate().filter(of_place).take(reach).filter(|(_, block)| block.markable).last();
        if let Some((at, _)) = bearing {
            blocks[at].is_marked = true;
            blocks[at].is_long = marker.ttl == CacheTtl::Hour;
        }
    }
    RequestDigest { blocks }
}

fn refused(message: String) -> AnswerFailure {
    AnswerFailure { kind: FailureKind::BadRequest, retry_after_ms: None, should_retry: None, message }
}

/// The prices of a model's tokens.
struct PricedModel {
    prices: Arc<Prices>,
    clock: Arc<dyn SessionClock>,
    model: String,
}

impl PricedModel {
    fn usage(&self, usage: &Usage) -> AnswerUsage {
        AnswerUsage {
            input: usage.input,
            cache_read: usage.read,
            cache_write_5m: usage.write_5m,
            cache_write_1h: usage.write_1h,
            output: usage.output,
            reasoning: usage.reasoning.unwrap_or_default(),
            cost_nano_usd: self.prices.cost_nano_usd(&self.model, self.clock.now().wall_ms, &usage.tokens()),
        }
    }
}

/// A sent request: the data needed to explain a failure to the user.
struct SentRequest {
    keep: Option<KeepRequest>,
    request: EncodedRequest,
    key_source: String,
    provider: String,
    model: String,
}

impl SentRequest {
    /// Adds to the message of a failure: the source of a refused key, the name of a missing model, or the path of a
    /// request called invalid.
    async fn explained(self, mut failure: AnswerFailure) -> AnswerFailure {
        if failure.kind == FailureKind::Auth {
            let _ = write!(failure.message, " ({})", self.key_source);
        }
        if failure.kind == FailureKind::NoModel {
            let (provider, model) = (&self.provider, &self.model);
            failure.message = format!("the provider `{provider}` has no model `{model}`; `--model` chooses another");
        }
        if failure.kind == FailureKind::BadRequest
            && let Some(keep) = self.keep
        {
            let kept = tokio::task::spawn_blocking(move || keep(&self.request.body.to_vec().ok()?)).await;
            if let Ok(Some(path)) = kept {
                let _ = write!(failure.message, " (the request is kept in {})", path.display());
            }
        }
        failure
    }
}

enum ModelStream {
    Open(Box<Exchange>, PricedModel, Option<SentRequest>),
    Failed(Option<AnswerFailure>),
}

impl AnswerStream for ModelStream {
    fn next(&mut self) -> BoxFuture<'_, Option<AnswerEvent>> {
        Box::pin(async move {
            match self {
                Self::Failed(failure) => failure.take().map(AnswerEvent::Failed),
                Self::Open(exchange, prices, sent) => loop {
                    match event_of(exchange.next().await?, prices) {
                        Some(AnswerEvent::Failed(failure)) => {
                            let Some(sent) = sent.take() else { return Some(AnswerEvent::Failed(failure)) };
                            return Some(AnswerEvent::Failed(sent.explained(failure).await));
                        }
                        Some(event) => return Some(event),
                        None => {}
                    }
                },
            }
        })
    }
}

/// Converts an event for the engine; `None` for events that only a decoder needs.
fn event_of(event: StreamEvent, prices: &PricedModel) -> Option<AnswerEvent> {
    Some(match event {
        StreamEvent::Began { model, .. } => AnswerEvent::Began { model: model? },
        StreamEvent::Text(text) => AnswerEvent::Text(text),
        StreamEvent::Thinking(text) => AnswerEvent::Thinking(text),
        StreamEvent::ToolOpened { name, .. } => AnswerEvent::CallOpened { tool: name },
        StreamEvent::ToolInput { .. } => return None,
        StreamEvent::Block(block) => AnswerEvent::Block(block),
        StreamEvent::Usage(usage) => AnswerEvent::Usage(prices.usage(&usage)),
        StreamEvent::Ended(reason) => AnswerEvent::Ended(match reason {
            EndReason::Stop | EndReason::Other(_) => AnswerEnd::Stop,
            EndReason::ToolUse => AnswerEnd::ToolUse,
            EndReason::Length => AnswerEnd::Length,
        }),
        StreamEvent::Failed(failure) => AnswerEvent::Failed(AnswerFailure {
            kind: failure.kind,
            retry_after_ms: failure.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            should_retry: failure.should_retry,
            message: failure.to_string(),
        }),
    })
}

#[cfg(test)]
mod tests;
