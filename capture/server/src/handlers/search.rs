//! Full-text search; the daemon owns the index.

use api::routes::{GetIndex, RebuildIndex, SearchTexts};

use crate::{answer::HandlerResult, call::Call, lookup::named};

/// `GET /api/v1/search`
pub(crate) async fn texts(call: Call<SearchTexts>) -> HandlerResult {
    let session = named(&call.app, call.query.session.as_deref()).await?;
    call.app.commit_shown().await;
    let page = call.app.ask(call.app.control.search(call.query.clone(), session)).await?;
    call.answer(&page)
}

/// `GET /api/v1/search/index`
pub(crate) async fn index(call: Call<GetIndex>) -> HandlerResult {
    let status = call.app.ask(call.app.control.index_status()).await?;
    call.answer(&status)
}

/// `POST /api/v1/search/index/rebuild`
pub(crate) async fn rebuild(call: Call<RebuildIndex>) -> HandlerResult {
    let status = call.app.ask(call.app.control.rebuild_index()).await?;
    call.answer(&status)
}
