//! The commands of a client and their answers.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use engine::{EngineActivity, EngineInput, MessageOrigin, QueueKind, SpendLimits, TurnSettings, UserMessage, cache};
use rpc::{RpcCommand, RpcImage, StreamingBehavior, session};
use session_setup::{BY_COMMAND, SessionChoice, nano_usd};
use session_tree::{Json, Object, Session, Tree};
use settings::{ModelName, ThinkingLevel};

use super::{CommandAnswer, RpcServer, SentMessage, answer_model, model};

/// Refusals of commands that are unsuitable for this mode or not implemented.
const NO_SHELL: &str = "capture does not run commands for the client; run them yourself, or ask the agent to run them";
const NO_HTML: &str = "not available here; `capture export SESSION --format html` writes the session as HTML";
const NO_TASKS: &str = "undo is not implemented, so there are no tasks";

impl RpcServer {
    /// Runs a command. Returns `None` if the answer follows with the session's events.
    pub(super) async fn command(
        &mut self,
        id: &Option<Json>,
        name: &str,
        command: RpcCommand,
    ) -> Option<CommandAnswer> {
        let done = match command {
            RpcCommand::Prompt { message, images, streaming_behavior } => {
                let kind = streaming_behavior.map(|behavior| match behavior {
                    StreamingBehavior::Steer => QueueKind::Steer,
                    StreamingBehavior::FollowUp => QueueKind::FollowUp,
                });
                return self.send(id, name, kind, message, &images).await.err().map(Err);
            }
            RpcCommand::Steer { message, images } => {
                return self.send(id, name, Some(QueueKind::Steer), message, &images).await.err().map(Err);
            }
            RpcCommand::FollowUp { message, images } => {
                return self.send(id, name, Some(QueueKind::FollowUp), message, &images).await.err().map(Err);
            }
            RpcCommand::Abort => self.abort().await,
            RpcCommand::ClearQueue => self.clear_queue().await,
            RpcCommand::NewSession { parent_session } => {
                let file = self.opener.new_file(parent_session.as_deref());
                self.switch_to(file).await.map(|()| Some(not_cancelled().to_text()))
            }
            RpcCommand::SwitchSession { session_path } => self.switch_session(session_path).await,
            RpcCommand::Fork { entry_id } => self.fork(entry_id).await,
            RpcCommand::Clone => self.copy().await,
            RpcCommand::GetState => self.state().await,
            RpcCommand::GetMessages => self.look_up(session::messages).await,
            RpcCommand::GetEntries { since } => {
                let found = self.look_up_or(move |file| session::entries(&*whole(file)?, since.as_deref())).await;
                found.map(Some)
            }
            RpcCommand::GetTree => self.look_up(session::tree).await,
            RpcCommand::GetForkMessages => self.look_up(session::fork_messages).await,
            RpcCommand::GetLastAssistantText => self.look_up(session::last_text).await,
            RpcCommand::GetSessionStats => self.stats().await,
            RpcCommand::SetSessionName { name } if name.trim().is_empty() => {
                Err("Session name cannot be empty".to_owned())
            }
            RpcCommand::SetSessionName { name } => {
                self.ask(EngineInput::SetName(name.trim().to_owned())).await.map(|()| None)
            }
            RpcCommand::GetCommands => Ok(Some(r#"{"commands":[]}"#.to_owned())),
            RpcCommand::SetModel { provider, model_id } => {
                self.set_model(ModelName { provider, model: model_id }).await
            }
            RpcCommand::CycleModel => self.cycle_model().await,
            RpcCommand::GetAvailableModels => {
                let models: Vec<Json> =
                    self.available().iter().map(|name| Json::from(model::object(&self.opener.models, name))).collect();
                Ok(Some(Object::new().with("models", models).to_text()))
            }
            RpcCommand::SetThinkingLevel { level } => match level.parse() {
                Ok(level) => self.set_thinking(level).await.map(|()| None),
                Err(error) => Err(error),
            },
            RpcCommand::CycleThinkingLevel => self.cycle_thinking().await,
            RpcCommand::GetAvailableThinkingLevels => {
                let levels = self.levels().into_iter().map(|level| Json::from(level.name())).collect::<Vec<Json>>();
                Ok(Some(Object::new().with("levels", levels).to_text()))
            }
            RpcCommand::SetSteeringMode { mode } => only(&mode, "all"),
            RpcCommand::SetFollowUpMode { mode } => only(&mode, "one-at-a-time"),
            RpcCommand::Compact { custom_instructions } => {
                self.ask(EngineInput::Compact { focus: custom_instructions }).await.map(|()| None)
            }
            RpcCommand::SetAutoCompaction { enabled } => {
                self.turns = TurnSettings { compacts: enabled, ..self.turns };
                self.ask(EngineInput::SetTurns(self.turns)).await.map(|()| None)
            }
            RpcCommand::SetAutoRetry { enabled } => {
                let retries = if enabled { self.opener.turns().retries } else { 0 };
                self.turns = TurnSettings { retries, ..self.turns };
                self.ask(EngineInput::SetTurns(self.turns)).await.map(|()| None)
            }
            RpcCommand::AbortRetry => self.abort_retry().await,
            RpcCommand::Bash { .. } => Err(NO_SHELL.to_owned()),
            RpcCommand::AbortBash => Ok(None),
            RpcCommand::ExportHtml { .. } => Err(NO_HTML.to_owned()),
            RpcCommand::Pause => self.ask(EngineInput::Pause).await.map(|()| None),
            RpcCommand::Resume => self.ask(EngineInput::Resume).await.map(|()| None),
            RpcCommand::Limit { tokens, cost_usd, minutes, calls } => {
                self.limit(tokens, cost_usd, minutes, calls).await
            }
            RpcCommand::Cache => self.cache().await,
            RpcCommand::Undo => self.ask(EngineInput::Undo).await.map(|()| None),
            RpcCommand::Redo => self.ask(EngineInput::Redo).await.map(|()| None),
            RpcCommand::Tasks => Err(NO_TASKS.to_owned()),
        };
        Some(done)
    }

    // Messages

    async fn send(
        &mut self,
        id: &Option<Json>,
        name: &str,
        kind: Option<QueueKind>,
        message: String,
        images: &[RpcImage],
    ) -> Result<(), String> {
        check_images(images)?;
        self.session.refresh(&self.opener).await;
        let message = UserMessage {
            id: format!("{:032x}", self.opener.clock.random()),
            content: content_of(message, images),
            origin: MessageOrigin::Person,
        };
        let sent = SentMessage { id: id.clone(), command: name.to_owned(), begins: kind.is_none(), has_begun: false };
        self.sent.insert(message.id.clone(), sent);
        let input = match kind {
            None => EngineInput::Prompt(message),
            Some(kind) => EngineInput::Queue { kind, message },
        };
        self.input(input).await.map_err(|error| error.to_string())
    }

    /// As in pi, queued messages run afterwards.
    async fn abort(&mut self) -> CommandAnswer {
        self.ask(EngineInput::Abort).await?;
        if self.events.queued().next().is_some() {
            self.input(EngineInput::Resume).await.map_err(|error| error.to_string())?;
        }
        Ok(None)
    }

    async fn clear_queue(&mut self) -> CommandAnswer {
        self.settle().await?;
        let queued = self.events.queued().map(|(id, kind, text)| (id.to_owned(), kind, text.to_owned()));
        let queued: Vec<_> = queued.collect();
        self.withdrawn.clear();
        self.ask(EngineInput::Unqueue { id: None }).await?;
        let of = |of: QueueKind| -> Vec<Json> {
            let withdrawn = queued.iter().filter(|(id, kind, _)| *kind == of && self.withdrawn.contains(id));
            withdrawn.map(|(_, _, text)| Json::from(text.as_str())).collect()
        };
        let told = Object::new().with("steering", of(QueueKind::Steer)).with("followUp", of(QueueKind::FollowUp));
        Ok(Some(told.to_text()))
    }

    async fn abort_retry(&mut self) -> CommandAnswer {
        let snapshot = self.session.handle.snapshot().await.map_err(|error| error.to_string())?;
        if matches!(snapshot.activity, EngineActivity::Retrying { .. }) {
            self.ask(EngineInput::Abort).await?;
        }
        Ok(None)
    }

    async fn limit(
        &mut self,
        tokens: Option<u64>,
        cost_usd: Option<f64>,
        minutes: Option<u64>,
        calls: Option<u64>,
    ) -> CommandAnswer {
        if let Some(cost) = cost_usd.filter(|cost| !cost.is_finite() || *cost < 0.0) {
            return Err(format!("costUsd: expected US dollars, got {cost}"));
        }
        let limits = SpendLimits {
            tokens,
            cost_nano_usd: cost_usd.map(nano_usd),
            wall_ms: minutes.map(|minutes| minutes.saturating_mul(60_000)),
            calls,
        };
        self.ask(EngineInput::SetLimits { limits, by: BY_COMMAND.to_owned() }).await.map(|()| None)
    }

    // Sessions

    async fn switch_session(&mut self, path: String) -> CommandAnswer {
        let current = self.look_up_or(|file| Ok(file.path().to_owned())).await?;
        // A file that is already open cannot be opened again.
        if current != std::path::Path::new(&path) {
            let file = self.opener.file(&SessionChoice::Named(path)).map_err(|error| error.to_string())?;
            self.switch_to(file).await?;
        }
        Ok(Some(not_cancelled().to_text()))
    }

    async fn fork(&mut self, entry: String) -> CommandAnswer {
        let stamp = self.opener.stamp();
        let forked =
            self.switch_from(move |file| file.forked(&entry, stamp).map(|forked| (forked.session, forked.text)));
        let text = forked.await?;
        Ok(Some(Object::new().with("text", text).with("cancelled", false).to_text()))
    }

    async fn copy(&mut self) -> CommandAnswer {
        let leaf = self.look_up_or(|file| Ok(file.tree().leaf_id().map(str::to_owned))).await?;
        let leaf = leaf.ok_or("Cannot clone session: no current entry selected")?;
        let stamp = self.opener.stamp();
        self.switch_from(move |file| Ok((file.branched(&leaf, stamp)?, ()))).await?;
        Ok(Some(not_cancelled().to_text()))
    }

    // Queries

    async fn look_up(&self, look_up: fn(&Tree) -> String) -> CommandAnswer {
        self.look_up_or(move |file| Ok(look_up(&*whole(file)?))).await.map(Some)
    }

    async fn look_up_or<T: Send + 'static>(
        &self,
        look_up: impl FnOnce(&Session) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        self.session.handle.read(look_up).await.map_err(|error| error.to_string())?
    }

    async fn state(&mut self) -> CommandAnswer {
        let snapshot = self.session.handle.snapshot().await.map_err(|error| error.to_string())?;
        let (name, count) = self
            .look_up_or(|file| Ok((file.tree().name().map(str::to_owned), session::message_count(file.tree()))))
            .await?;
        let state = Object::new()
            .with("model", model::object(&self.opener.models, &self.model))
            .with("thinkingLevel", self.session.choice.thinking.as_str())
            .with("isStreaming", snapshot.activity != EngineActivity::Idle)
            .with("isCompacting", snapshot.activity == EngineActivity::Compacting)
            .with("steeringMode", "all")
            .with("followUpMode", "one-at-a-time")
            .with("sessionFile", snapshot.path.to_string_lossy().into_owned())
            .with("sessionId", snapshot.session)
            .with_some("sessionName", name)
            .with("autoCompactionEnabled", self.turns.compacts)
            .with("messageCount", count as u64)
            .with("pendingMessageCount", snapshot.queued as u64)
            .with("mode", snapshot.mode.name());
        Ok(Some(state.to_text()))
    }

    async fn stats(&mut self) -> CommandAnswer {
        let window = self.opener.models.facts(&self.model).context_window;
        let found = self.look_up_or(move |file| {
            let head = Object::new()
                .with("sessionFile", file.path().to_string_lossy().into_owned())
                .with("sessionId", file.tree().header().id());
            let stats = session::stats(&*whole(file)?, window);
            let fields = head.iter().chain(stats.iter()).map(|(key, value)| (key.to_owned(), value.clone()));
            Ok(fields.collect::<Object>().to_text())
        });
        found.await.map(Some)
    }

    async fn cache(&mut self) -> CommandAnswer {
        let requests = self.look_up_or(|file| Ok(cache::requests(&*whole(file)?))).await?;
        let told = serde_json::json!({ "hitRate": cache::hit_rate(&requests), "requests": requests });
        Ok(Some(told.to_string()))
    }

    // Models

    async fn set_model(&mut self, name: ModelName) -> CommandAnswer {
        self.use_model(name).await?;
        Ok(Some(model::object(&self.opener.models, &self.model).to_text()))
    }

    async fn use_model(&mut self, name: ModelName) -> Result<(), String> {
        // If the model does not support the level, the vendor's default applies.
        let facts = self.opener.models.facts(&name);
        self.thinking = self.thinking.filter(|level| facts.thinking(*level).is_some());
        self.session.set_model(&self.opener, &name, self.thinking).await.map_err(|error| error.to_string())?;
        self.model = name;
        self.events.set_model(answer_model(&self.session));
        Ok(())
    }

    /// The models to choose from: the current one, the configured one, and the listed ones.
    fn available(&self) -> Vec<ModelName> {
        let mut all = vec![self.model.clone()];
        for name in self.opener.models.known() {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all.sort_by_key(ToString::to_string);
        all
    }

    async fn cycle_model(&mut self) -> CommandAnswer {
        let all = self.available();
        let at = all.iter().position(|name| *name == self.model).unwrap_or_default();
        let next = all[(at + 1) % all.len()].clone();
        if next == self.model {
            return Ok(Some("null".to_owned()));
        }
        self.use_model(next).await?;
        let told = Object::new()
            .with("model", model::object(&self.opener.models, &self.model))
            .with("thinkingLevel", self.session.choice.thinking.as_str())
            .with("isScoped", false);
        Ok(Some(told.to_text()))
    }

    /// The model's thinking levels.
    fn levels(&self) -> Vec<ThinkingLevel> {
        let levels: Vec<ThinkingLevel> = self.opener.models.facts(&self.model).levels().collect();
        if levels.is_empty() { vec![ThinkingLevel::Off] } else { levels }
    }

    async fn set_thinking(&mut self, level: ThinkingLevel) -> Result<(), String> {
        let is_without = self.levels() == [ThinkingLevel::Off];
        let thinking = Some(level).filter(|level| !is_without || *level != ThinkingLevel::Off);
        let name = self.model.clone();
        self.session.set_model(&self.opener, &name, thinking).await.map_err(|error| error.to_string())?;
        self.thinking = thinking;
        let line = Object::new().with("type", "thinking_level_changed").with("level", level.name()).to_text();
        super::write(&line).map_err(|error| error.to_string())
    }

    async fn cycle_thinking(&mut self) -> CommandAnswer {
        let levels = self.levels();
        if levels.len() < 2 {
            return Ok(Some("null".to_owned()));
        }
        let at = levels.iter().position(|level| Some(*level) == self.thinking);
        let next = levels[at.map_or(0, |at| (at + 1) % levels.len())];
        self.set_thinking(next).await?;
        Ok(Some(Object::new().with("level", next.name()).to_text()))
    }
}

/// The entries with complete texts.
fn whole(file: &Session) -> Result<Cow<'_, Tree>, String> {
    file.whole_tree().map_err(|error| error.to_string())
}

fn not_cancelled() -> Object {
    Object::new().with("cancelled", false)
}

/// Accepts only the single available mode.
fn only(mode: &str, there_is: &str) -> CommandAnswer {
    if mode == there_is { Ok(None) } else { Err(format!("only the mode `{there_is}` is available, got `{mode}`")) }
}

/// Checks that vendors would accept the images. A refused image would stay in the session and in every later request.
fn check_images(images: &[RpcImage]) -> Result<(), String> {
    const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    for (at, image) in images.iter().enumerate() {
        if !KINDS.contains(&image.mime_type.as_str()) {
            return Err(format!("images[{at}].mimeType: expected {}, got `{}`", KINDS.join(", "), image.mime_type));
        }
        match STANDARD.decode(&image.data) {
            Ok(bytes) if bytes.is_empty() => return Err(format!("images[{at}].data: the image is empty")),
            Ok(bytes) => match kind_of_image(&bytes) {
                Some(kind) if kind == image.mime_type => {}
                Some(kind) => {
                    return Err(format!("images[{at}].mimeType: the image is {kind}, got `{}`", image.mime_type));
                }
                None => return Err(format!("images[{at}].data: expected {}, got something else", KINDS.join(", "))),
            },
            Err(error) => return Err(format!("images[{at}].data: not base64: {error}")),
        }
    }
    Ok(())
}

/// The type of an image, detected from its first bytes.
fn kind_of_image(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// A text with the images next to it.
fn content_of(message: String, images: &[RpcImage]) -> Json {
    if images.is_empty() {
        return Json::from(message);
    }
    let text = Object::new().with("type", "text").with("text", message);
    let image = |image: &RpcImage| {
        let block = Object::new().with("type", "image").with("data", image.data.as_str());
        Json::from(block.with("mimeType", image.mime_type.as_str()))
    };
    Json::from([Json::from(text)].into_iter().chain(images.iter().map(image)).collect::<Vec<Json>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_must_match_its_declared_mime_type() {
        let check = |bytes: &[u8], mime_type: &str| {
            check_images(&[RpcImage { data: STANDARD.encode(bytes), mime_type: mime_type.to_owned() }])
        };
        let images: [(&[u8], &str); 5] = [
            (b"\x89PNG\r\n\x1a\n....", "image/png"),
            (b"\xff\xd8\xff\xe0....", "image/jpeg"),
            (b"GIF87a....", "image/gif"),
            (b"GIF89a....", "image/gif"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        ];
        for (bytes, kind) in images {
            assert_eq!(check(bytes, kind), Ok(()));
            let other = if kind == "image/png" { "image/jpeg" } else { "image/png" };
            let error = format!("images[0].mimeType: the image is {kind}, got `{other}`");
            assert_eq!(check(bytes, other), Err(error));
        }
        for bytes in [&b"<svg/>"[..], b"RIFF\x10\0\0\0WAVE", b"\x89PN", b"GIF90a", b"%PDF-1.7"] {
            let error = check(bytes, "image/png").unwrap_err();
            assert!(error.starts_with("images[0].data: expected image/png"), "{error}");
        }
        assert!(check(b"", "image/png").unwrap_err().contains("empty"));
        assert!(check(b"GIF89a", "image/tiff").unwrap_err().contains("mimeType: expected"));
    }
}
