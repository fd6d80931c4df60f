//! Connects a session to the server: how the server lists it, who decides about its calls, and which commands it
//! accepts.

use std::sync::Arc;

use client::{DeltaSender, SessionDescription, SessionLink};
use crossbeam_channel::Receiver;
use engine::EngineInput;
use events::{Provider, RunId};
use executor::{ModelRoutes, PermissionBroker, SessionHandle, SessionTools};
use host_protocol::link::PendingRequest;
use settings::{ModelName, ThinkingLevel};
use tokio::{runtime::Handle, sync::Notify};

use crate::{
    broker::{LocalBroker, PermissionAsker},
    commands::{ChooseModel, CommandedSession},
    model::ModelCatalog,
    open::SessionOpener,
    permission::InProcess,
    server_broker::{BrokerPlace, ServerBroker},
    status::SessionStatus,
};

/// The environment in which the sessions of a process are opened.
#[derive(Debug, Clone)]
pub struct SessionPlace {
    /// The command that runs them, as words.
    pub command: &'static [&'static str],
    /// The name of the run.
    pub name: Option<String>,
    /// The commands they accept.
    pub takes: &'static [&'static str],
    /// Notified when the process is to end.
    pub end: Option<Arc<Notify>>,
    /// Whether the user can be asked in this process.
    pub at_terminal: bool,
    /// Reports a problem to the user, as one line.
    pub warn: fn(&str),
    /// The refusal of a mode that only a user at the terminal can grant, with the possible action.
    pub no_person: &'static str,
}

/// A session's connection to the server, if there is one.
pub(crate) struct PlacedSession {
    pub(crate) status: Arc<SessionStatus>,
    pub(crate) run: Option<RunId>,
    requests: Option<Receiver<PendingRequest>>,
}

impl SessionOpener {
    /// Connects a session. The session also works without a connection.
    pub(crate) fn place(&self, session: &str) -> PlacedSession {
        let place = &self.session_place;
        let described = SessionDescription {
            provider: Provider::Capture,
            session: Some(session.to_owned()),
            process: None,
            name: place.name.clone(),
            command: place.command.iter().map(|&word| word.to_owned()).collect(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            cwd: self.cwd_text().to_owned(),
            takes: place.takes,
        };
        let (link, requests) = match SessionLink::start(self.data(), described) {
            Ok((link, requests)) => (Some(link), Some(requests)),
            Err(error) => {
                (place.warn)(&format!("cannot connect to the server: {error}"));
                (None, None)
            }
        };
        let run = link.as_ref().map(SessionLink::run);
        let deltas = link.is_some().then(|| DeltaSender::new(self.data().to_owned(), Provider::Capture));
        PlacedSession { status: SessionStatus::new(link, deltas, session.to_owned()), run, requests }
    }

    /// The broker for the session's calls.
    pub(crate) fn broker(
        &self,
        session: &str,
        placed: &PlacedSession,
        in_process: InProcess,
        asker: Option<Arc<dyn PermissionAsker>>,
        tools: Arc<SessionTools>,
    ) -> Arc<dyn PermissionBroker> {
        if placed.run.is_none() {
            return Arc::new(LocalBroker::new(in_process, asker, tools, self.wait()));
        }
        let place = BrokerPlace {
            data: self.data().to_owned(),
            session: session.to_owned(),
            cwd: self.cwd_text().to_owned(),
            warn: self.session_place.warn,
        };
        Arc::new(ServerBroker::new(in_process, place, Arc::clone(&placed.status), asker, tools, self.wait()))
    }

    /// Reports the activity of the session, and processes commands of the server.
    pub(crate) fn serve(&self, placed: &mut PlacedSession, handle: &SessionHandle, routes: &ModelRoutes) {
        placed.status.follow(handle, &Handle::current());
        let Some(requests) = placed.requests.take() else { return };
        let commanded = CommandedSession {
            session: handle.clone(),
            clock: Arc::clone(&self.clock),
            choose_model: choose_model(Arc::clone(&self.models), self.thinking, routes.clone()),
            end: self.session_place.end.clone(),
            at_terminal: self.session_place.at_terminal,
        };
        if let Err(error) = commanded.answer_all(requests, Handle::current()) {
            (self.session_place.warn)(&format!("cannot receive commands from the server: {error}"));
        }
    }
}

fn choose_model(models: Arc<ModelCatalog>, thinking: Option<ThinkingLevel>, routes: ModelRoutes) -> ChooseModel {
    Arc::new(move |name| {
        let name: ModelName = name.parse()?;
        let model = models.model(&name, thinking).map_err(|error| error.to_string())?;
        routes.add(model.route);
        Ok(EngineInput::SetModel(model.choice))
    })
}
