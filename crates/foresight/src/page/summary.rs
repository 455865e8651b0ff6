//! The last line of `plan`: everything in one sentence, and the exit code that goes with it.

use super::{Page, Style};
use crate::child::Fate;
use crate::forecast::{Forecast, Outcome};
use crate::words::count;

/// Counts over all forecasts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Resources that are new.
    pub new: usize,
    /// Resources that change.
    pub changed: usize,
    /// Resources that do not.
    pub unchanged: usize,
    /// Resources that do not, and whose children are not as declared.
    pub disturbed: usize,
    /// Resources that are being deleted.
    pub deleting: usize,
    /// Resources that are refused.
    pub refused: usize,
    /// Resources that are paused, among the others.
    pub held: usize,
    /// Resources for which there is no forecast, since something failed.
    pub failed: usize,
    /// Documents of kinds that are not ours.
    pub others: usize,
    /// Children that are created, changed or deleted.
    pub children: usize,
    /// Pods that restart.
    pub restarts: usize,
    /// Services that are interrupted.
    pub interrupted: usize,
}

impl Summary {
    /// Adds a forecast.
    pub fn add(&mut self, forecast: &Forecast) {
        match forecast.outcome {
            Outcome::New => self.new += 1,
            Outcome::Changed => self.changed += 1,
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::Disturbed => self.disturbed += 1,
            Outcome::Deleting => self.deleting += 1,
            Outcome::Refused => self.refused += 1,
        }
        if forecast.held.is_some() {
            // Nothing of what is foreseen comes before the pause ends.
            self.held += 1;
            return;
        }
        let touched = |fate| matches!(fate, Fate::Create | Fate::Change | Fate::Delete);
        self.children += forecast.children.iter().filter(|child| touched(child.fate)).count();
        let restarts =
            forecast.pods.iter().filter(|one| matches!(one.what, "restart" | "replaced"));
        self.restarts += restarts.map(|one| one.pods.len()).sum::<usize>();
        self.interrupted += forecast.service.iter().filter(|one| one.interrupted).count();
    }

    /// 0 nothing to do, 1 error, 2 changes, 3 refused: the worst of all.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self { failed: 1.., .. } => 1,
            Self { refused: 1.., .. } => 3,
            Self { new: 1.., .. } | Self { changed: 1.., .. } => 2,
            Self { disturbed: 1.., .. } | Self { deleting: 1.., .. } => 2,
            _ => 0,
        }
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        let others = self.disturbed + self.deleting + self.failed;
        let total = self.new + self.changed + self.unchanged + self.refused + others;
        let mut parts = Vec::new();
        for (number, what) in [
            (self.new, "new"),
            (self.changed, "changed"),
            (self.unchanged, "unchanged"),
            (self.disturbed, "not as declared"),
            (self.deleting, "being deleted"),
            (self.refused, "refused"),
            (self.failed, "not foreseen"),
        ] {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        let mut text = format!("Plan: {}", count(total, "resource"));
        if !parts.is_empty() {
            text.push_str(&format!(" ({})", parts.join(", ")));
        }
        if self.held > 0 {
            text.push_str(&format!("; {} paused", self.held));
        }
        if self.children > 0 {
            text.push_str(&format!("; {} to write", count(self.children, "child")));
        }
        if self.restarts > 0 {
            let verb = if self.restarts == 1 { "restarts" } else { "restart" };
            text.push_str(&format!("; {} {verb}", count(self.restarts, "pod")));
        }
        if self.interrupted > 0 {
            text.push_str(&format!("; {} interrupted", count(self.interrupted, "Service")));
        }
        if self.others > 0 {
            text.push_str(&format!("; {} of other kinds left out", count(self.others, "document")));
        }
        format!("{text}. Nothing was written.")
    }

    /// Puts it on the page.
    pub fn show(&self, page: &mut Page) {
        let style = match self.exit_code() {
            0 => Style::Good,
            2 => Style::Care,
            _ => Style::Bad,
        };
        page.gap();
        page.item(0, (Style::Plain, ""), &[(style, &self.sentence())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_that_of_the_worst() {
        let with = |failed, refused, changed, unchanged| Summary {
            failed,
            refused,
            changed,
            unchanged,
            ..Summary::default()
        };
        let codes = [with(1, 1, 1, 1), with(0, 1, 1, 1), with(0, 0, 1, 1), with(0, 0, 0, 1)];
        assert_eq!(codes.map(|summary| summary.exit_code()), [1, 3, 2, 0]);
    }
}
