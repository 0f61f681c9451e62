//! Sums up progress: the engine reports each layer separately, but people want the progress of the whole image.

use std::collections::HashMap;

use bollard::models::ProgressDetail;

/// The progress of the layers of one pull or load.
#[derive(Default)]
pub(super) struct LayerProgress {
    /// The bytes done and the bytes in total, by action and layer.
    layers: HashMap<(String, String), (i64, i64)>,
}

impl LayerProgress {
    /// Records one report, and returns the action with its progress, summed over all layers that undergo it.
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
