//! Streams that own their source, because bollard's streams borrow the client.

use futures_util::{Stream, stream};

/// Returns a stream that a task feeds. The task ends with the stream, because its next send fails.
pub(super) fn owned<T, F, Fut>(feed: F) -> impl Stream<Item = T> + Send
where
    T: Send + 'static,
    F: FnOnce(tokio::sync::mpsc::Sender<T>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = tokio::sync::mpsc::channel(16);
    let task = tokio::spawn(feed(sender));
    stream::unfold((receiver, AbortOnDrop(task)), |(mut receiver, task)| async move {
        receiver.recv().await.map(|item| (item, (receiver, task)))
    })
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
