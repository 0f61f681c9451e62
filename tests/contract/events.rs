//! Cases about the engine's events.

use arenad_engine::{EngineEvent, EngineStream};

use crate::bed::{Bed, LABEL, PATIENCE, WantedContainer, script};

/// Listens, and waits until the stream delivers an event: Docker's stream begins some time after the request.
async fn listen(bed: &Bed) -> EngineStream<EngineEvent> {
    let mut events = bed.engine.events(LABEL, &bed.name);
    for attempt in 0.. {
        let part = format!("heard-{attempt}");
        let handle = bed.create(&part, WantedContainer::default()).await;
        bed.engine.remove(&handle).await.unwrap();
        let heard = async { while bed.next(&mut events, 1).await[0].labels["name"] != bed.named(&part) {} };
        if tokio::time::timeout(std::time::Duration::from_secs(1), heard).await.is_ok() {
            break;
        }
    }
    events
}

async fn actions(bed: &Bed, events: &mut EngineStream<EngineEvent>, count: usize) -> Vec<String> {
    bed.next(events, count).await.into_iter().map(|event| event.action).collect()
}

pub async fn every_step_of_a_life_is_told(bed: Bed) {
    bed.network("net").await;
    let mut events = listen(&bed).await;
    let handle = bed.start("one", script("exit 3")).await;
    bed.ended(&handle).await;
    bed.engine.remove(&handle).await.unwrap();
    let told = bed.next(&mut events, 3).await;
    assert_eq!(told.iter().map(|event| event.action.as_str()).collect::<Vec<_>>(), ["start", "die", "destroy"]);
    for event in &told {
        assert_eq!(event.handle, handle);
        assert_eq!((event.labels[LABEL].as_str(), event.labels["base"].as_str()), (bed.name.as_str(), "yes"));
        assert_eq!(event.labels["name"], bed.named("one"));
    }
    assert_eq!(told[1].labels["exitCode"], "3");
}

pub async fn freezing_is_told(bed: Bed) {
    let handle = bed.start("one", WantedContainer::default()).await;
    let mut events = listen(&bed).await;
    bed.engine.freeze(&handle).await.unwrap();
    bed.engine.thaw(&handle).await.unwrap();
    assert_eq!(actions(&bed, &mut events, 2).await, ["pause", "unpause"]);
}

pub async fn kills_are_told(bed: Bed) {
    let obedient = bed.obedient("one", WantedContainer::default()).await;
    let stubborn = bed.start("two", script("sleep 1000")).await;
    let mut events = listen(&bed).await;
    bed.engine.stop(&obedient, PATIENCE).await.unwrap();
    let told = bed.next(&mut events, 3).await;
    assert_eq!(told.iter().map(|event| event.action.as_str()).collect::<Vec<_>>(), ["kill", "die", "stop"]);
    assert_eq!((told[0].labels["signal"].as_str(), told[1].labels["exitCode"].as_str()), ("15", "0"));
    bed.engine.stop(&stubborn, std::time::Duration::from_secs(1)).await.unwrap();
    let told = bed.next(&mut events, 4).await;
    assert_eq!(told.iter().map(|event| event.action.as_str()).collect::<Vec<_>>(), ["kill", "kill", "die", "stop"]);
    assert_eq!((told[1].labels["signal"].as_str(), told[2].labels["exitCode"].as_str()), ("9", "137"));
}

pub async fn removals_of_running_containers_are_told(bed: Bed) {
    let handle = bed.start("one", script("sleep 1000")).await;
    let mut events = listen(&bed).await;
    bed.engine.remove(&handle).await.unwrap();
    assert_eq!(actions(&bed, &mut events, 3).await, ["kill", "die", "destroy"]);
}

pub async fn only_what_bears_the_label_is_told(bed: Bed) {
    bed.network("net").await;
    let mut events = bed.engine.events("own", &bed.name);
    // The first event shows that the stream has begun.
    let labels = bed.labels(&[("own", &bed.name)]);
    let heard = async {
        for attempt in 0.. {
            let other = bed.create(&format!("other-{attempt}"), WantedContainer::default()).await;
            bed.engine.remove(&other).await.unwrap();
            let handle = bed
                .create(
                    &format!("own-{attempt}"),
                    WantedContainer { labels: labels.clone(), ..WantedContainer::default() },
                )
                .await;
            bed.engine.remove(&handle).await.unwrap();
            let next = tokio::time::timeout(std::time::Duration::from_secs(1), bed.next(&mut events, 1)).await;
            if let Ok(told) = next {
                return (told[0].clone(), handle);
            }
        }
        unreachable!("it tries for ever")
    };
    let (told, handle) = heard.await;
    assert_eq!((told.handle, told.action.as_str()), (handle, "destroy"));
}
