use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// A call that hangs until its sender is dropped.
fn hang(gone: Receiver<()>) -> impl FnOnce() + Send {
    move || gone.recv().unwrap_or_default()
}

#[tokio::test]
async fn hung_calls_do_not_block_other_calls() {
    let pool = Arc::new(BlockingPool::with_patience(Duration::from_millis(1)));
    let (hanging, gone): (Vec<Sender<()>>, Vec<Receiver<()>>) = (0..AT_ONCE).map(|_| channel()).unzip();
    let calls: Vec<_> = gone
        .into_iter()
        .map(|gone| {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move { pool.run(hang(gone)).await })
        })
        .collect();
    assert_eq!(pool.run(|| 7).await.unwrap(), 7);
    // The calls end, and no longer count.
    drop(hanging);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!((pool.hung.available_permits(), pool.is_idle()), (HUNG, true));
}

#[tokio::test]
async fn calls_that_finish_in_time_do_not_count_as_hung() {
    let pool = BlockingPool::new();
    for n in 0..100 {
        assert_eq!(pool.run(move || n).await.unwrap(), n);
    }
    assert_eq!((pool.hung.available_permits(), pool.is_idle()), (HUNG, true));
}
