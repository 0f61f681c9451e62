//! Shows the progress of work on images: a bar on a terminal; elsewhere a line for each stage and each tenth of it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use arenad_images::watch::{ProgressReading, WorkProgress};

/// The interval at which the progress is polled.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Shows the progress until the work has ended.
pub async fn follow<T>(name: &str, is_silent: bool, watch: &Arc<WorkProgress>, work: impl Future<Output = T>) -> T {
    let mut board = ItemBoard::new(is_silent);
    let mut work = std::pin::pin!(work);
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            done = &mut work => {
                board.show(name, &watch.look());
                board.bar.finish_and_clear();
                return done;
            }
            _ = look.tick() => board.show(name, &watch.look()),
        }
    }
}

struct ItemBoard {
    bar: ProgressBar,
    is_terminal: bool,
    is_silent: bool,
    said: (String, u64),
}

impl ItemBoard {
    fn new(is_silent: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(
            None,
            match is_terminal && !is_silent {
                true => ProgressDrawTarget::stderr(),
                false => ProgressDrawTarget::hidden(),
            },
        );
        Self { bar, is_terminal, is_silent, said: (String::new(), 0) }
    }

    fn show(&mut self, name: &str, look: &ProgressReading) {
        if self.is_silent || look.stage.is_empty() {
            return;
        }
        if self.is_terminal {
            self.draw(look);
        } else {
            self.say(name, look);
        }
    }

    fn draw(&mut self, look: &ProgressReading) {
        if self.said.0 != look.stage {
            let template = match look.total_bytes {
                Some(_) => {
                    "{spinner} {wide_msg} {bytes:>10} of {total_bytes:>10} {percent:>3} % {bytes_per_sec:>12} {eta:>4}"
                }
                None => "{spinner} {wide_msg} {bytes:>10}",
            };
            self.bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.bar.reset_eta();
            self.said.0.clone_from(&look.stage);
        }
        let colon = if look.detail.is_empty() { "" } else { ": " };
        self.bar.set_message(format!("{}{colon}{}", look.stage, look.detail));
        match look.total_bytes {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        self.bar.set_position(look.done_bytes);
        self.bar.tick();
    }

    fn say(&mut self, name: &str, look: &ProgressReading) {
        for stage in &look.begun {
            errln!("{name}: {stage}");
            self.said = (stage.clone(), 0);
        }
        let tenths = look.total_bytes.map_or(0, |total| look.done_bytes.min(total) * 10 / total.max(1));
        if tenths > self.said.1 {
            errln!("{name}: {} {} %", look.stage, tenths * 10);
            self.said.1 = tenths;
        }
    }
}
