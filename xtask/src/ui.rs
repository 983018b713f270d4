//! What the user sees while work goes on.

use std::fmt::Display;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Says something about the progress; to standard error, so that results can be piped.
pub fn say(message: impl Display) {
    eprintln!("{message}");
}

/// A line that turns while something takes time. Nothing of it reaches a pipe or a log: what should, is said with [`say`].
#[derive(Debug)]
pub struct Activity(ProgressBar);

impl Activity {
    /// Starts to show `message`.
    #[must_use]
    pub fn start(message: impl Display) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.set_message(message.to_string());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// Changes the message.
    pub fn update(&self, message: impl Display) {
        self.0.set_message(message.to_string());
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
