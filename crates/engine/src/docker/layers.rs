//! The engine tells of each layer by itself; people want to know how far the image is.

use std::collections::HashMap;

use bollard::models::ProgressDetail;

/// What is known of the layers of one pull or load.
#[derive(Default)]
pub(super) struct LayerProgress {
    /// By what is being done to which layer: bytes done, bytes in all.
    layers: HashMap<(String, String), (i64, i64)>,
}

impl LayerProgress {
    /// What is being done, and how far it is over all layers that this is done to.
    pub(super) fn tell(&mut self, status: &str, layer: Option<String>, detail: Option<ProgressDetail>) -> String {
        let counts = detail.and_then(|detail| Some((detail.current?, detail.total.filter(|total| *total > 0)?)));
        let (Some(layer), Some(counts)) = (layer, counts) else {
            return status.to_owned();
        };
        self.layers.insert((status.to_owned(), layer), counts);
        let of_status = self.layers.iter().filter(|((known, _), _)| known == status);
        let (done, total) = of_status.fold((0, 0), |sum, (_, counts)| (sum.0 + counts.0, sum.1 + counts.1));
        format!("{status} {} of {} MB", done / 1_000_000, total / 1_000_000)
    }
}
