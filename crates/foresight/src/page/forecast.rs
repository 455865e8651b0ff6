//! A forecast as a page.

use super::{Page, Style};
use crate::change::Change;
use crate::child::{Child, Fate};
use crate::consequence::{Interruption, Restart};
use crate::forecast::{Forecast, Outcome, Said};
use crate::storage::Storage;
use crate::words::{count, folded, sentence};

/// The most items of a list before it is folded.
const LONGEST: usize = 12;
/// The most pods named in a line.
const PODS: usize = 6;
/// The most lines shown of a text with several lines.
const LINES: usize = 6;

/// Puts a forecast on the page.
pub fn add(page: &mut Page, forecast: &Forecast) {
    page.gap();
    let (style, what) = match forecast.outcome {
        Outcome::New => (Style::Good, "is new"),
        Outcome::Changed => (Style::Care, "changes"),
        Outcome::Unchanged => (Style::Dim, "is unchanged"),
        Outcome::Disturbed => (Style::Care, "is unchanged, and not as declared"),
        Outcome::Deleting => (Style::Bad, "is being deleted; what is applied now goes with it"),
        Outcome::Refused => (Style::Bad, "is refused"),
    };
    let source = format!("({})", forecast.source);
    let words =
        [(Style::Strong, forecast.resource.as_str()), (style, what), (Style::Dim, source.as_str())];
    page.item(0, (Style::Plain, ""), &words);
    for note in &forecast.notes {
        page.item(2, (Style::Care, "note:"), &[(Style::Plain, &sentence(note))]);
    }
    if let Some(held) = &forecast.held {
        page.item(2, (Style::Care, "held:"), &[(Style::Plain, &sentence(held))]);
    }
    refusals(page, &forecast.refused);
    if !forecast.edit.is_empty() {
        page.heading(2, "Edit");
        page.list(&forecast.edit, LONGEST, |page, change| field(page, 4, change));
    }
    if forecast.end.is_none() || forecast.is_quiet() {
        return;
    }
    children(page, &forecast.children);
    consequences(page, forecast);
    phases(page, forecast);
    if !forecast.supposes.is_empty() {
        let text = format!("Supposing that {}.", forecast.supposes.join("; "));
        page.item(2, (Style::Plain, ""), &[(Style::Dim, &text)]);
    }
}

fn refusals(page: &mut Page, refused: &[Said]) {
    for said in refused {
        let text = sentence(&said.message);
        let reason = format!("{}:", said.reason);
        page.item(2, (Style::Bad, "x"), &[(Style::Bad, &reason), (Style::Plain, &text)]);
        if !said.remedy.is_empty() {
            page.item(4, (Style::Strong, "->"), &[(Style::Plain, &sentence(&said.remedy))]);
        }
    }
}

/// One changed field; what does not fit a line goes below.
pub(crate) fn field(page: &mut Page, indent: usize, change: &Change) {
    let path = change.field.as_str();
    let (mark, text) = match (&change.old, &change.new) {
        (None, Some(new)) => ((Style::Good, "+"), one_line(new)),
        (Some(old), None) => ((Style::Bad, "-"), one_line(old).map(|old| format!("was {old}"))),
        (Some(old), Some(new)) if old == new => {
            ((Style::Care, "~"), Some(format!("{new}, changed")))
        }
        (Some(old), Some(new)) => {
            let both = one_line(old).zip(one_line(new));
            ((Style::Care, "~"), both.map(|(old, new)| format!("{old} -> {new}")))
        }
        (None, None) => return,
    };
    match text {
        Some(text) => {
            let name = format!("{path}:");
            page.item(indent, mark, &[(Style::Plain, &name), (Style::Strong, &text)]);
        }
        None => {
            page.item(indent, mark, &[(Style::Plain, path)]);
            lines(page, indent + 4, change);
        }
    }
}

fn one_line(text: &str) -> Option<String> {
    (!text.contains('\n')).then(|| text.to_owned())
}

/// The lines of two texts that differ.
fn lines(page: &mut Page, indent: usize, change: &Change) {
    let split = |text: &Option<String>| -> Vec<String> {
        text.iter().flat_map(|t| t.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let (old, new) = (split(&change.old), split(&change.new));
    let gone = old.iter().filter(|line| !new.contains(line)).map(|line| (Style::Bad, "-", line));
    let come = new.iter().filter(|line| !old.contains(line)).map(|line| (Style::Good, "+", line));
    let all: Vec<_> = gone.chain(come).collect();
    let folds = !page.all && all.len() > LINES;
    for (style, mark, line) in all.iter().take(if folds { LINES - 1 } else { all.len() }) {
        page.item(indent, (*style, mark), &[(Style::Plain, line)]);
    }
    if folds {
        let more = format!("… {} more lines", all.len() - (LINES - 1));
        page.item(indent, (Style::Dim, ""), &[(Style::Dim, &more)]);
    }
}

fn children(page: &mut Page, children: &[Child]) {
    page.heading(2, "Children");
    let (same, others): (Vec<&Child>, Vec<&Child>) =
        children.iter().partition(|child| child.fate == Fate::Unchanged);
    page.list(&others, LONGEST, |page, child| {
        let (mark, word) = match child.fate {
            Fate::Create => ((Style::Good, "+"), "create"),
            Fate::Change => ((Style::Care, "~"), "change"),
            Fate::Delete => ((Style::Bad, "-"), "delete"),
            Fate::Hold => ((Style::Care, "!"), "hold"),
            Fate::Unchanged => ((Style::Dim, "="), "unchanged"),
        };
        let made_up = match child.generated.as_slice() {
            [] => String::new(),
            keys if child.fate == Fate::Create => {
                format!("({} made up by the operator)", keys.join(", "))
            }
            keys => format!("({} follow from its password)", keys.join(", ")),
        };
        let words =
            [(Style::Plain, word), (Style::Strong, child.name.as_str()), (Style::Dim, &made_up)];
        page.item(4, mark, &words);
        if child.made_again || matches!(child.fate, Fate::Delete | Fate::Hold) {
            page.item(8, (Style::Plain, ""), &[(Style::Plain, &sentence(&child.why))]);
        }
        page.list(&child.fields, LONGEST, |page, change| field(page, 8, change));
    });
    if !same.is_empty() {
        let names: Vec<String> = same.iter().map(|child| child.name.clone()).collect();
        let names = if page.all { names.join(", ") } else { folded(&names, 4) };
        let text = format!("{} unchanged: {names}", same.len());
        page.item(4, (Style::Dim, "="), &[(Style::Dim, &text)]);
    }
    if children.is_empty() {
        page.item(4, (Style::Dim, "="), &[(Style::Dim, "none is touched")]);
    }
}

fn consequences(page: &mut Page, forecast: &Forecast) {
    page.heading(2, &later("Consequences", forecast));
    for restart in &forecast.pods {
        pods(page, restart);
    }
    if forecast.pods.is_empty() {
        calm(page, "No pod restarts.");
    }
    for one in &forecast.service {
        interruption(page, one);
    }
    if forecast.service.is_empty() && !forecast.pods.is_empty() && forecast.outcome != Outcome::New
    {
        calm(page, "No Service loses a ready pod.");
    }
    for one in &forecast.storage {
        storage(page, one);
    }
    for act in &forecast.outside {
        let text = format!("Outside Kubernetes: {} (gate {}): {}", act.name, act.gate, act.why);
        care(page, &sentence(&text));
    }
    for text in &forecast.lasting {
        let text = format!("Cannot be undone: {}", sentence(text));
        page.item(4, (Style::Bad, "!"), &[(Style::Plain, &text)]);
    }
}

/// A heading over what does not come before a pause ends.
fn later(heading: &str, forecast: &Forecast) -> String {
    let when = if forecast.held.is_some() { " once the pause is lifted" } else { "" };
    format!("{heading}{when}")
}

fn storage(page: &mut Page, one: &Storage) {
    let names = if page.all { one.claims.join(", ") } else { folded(&one.claims, PODS) };
    let number = count(one.claims.len(), "volume");
    let verb = if one.claims.len() == 1 { "is" } else { "are" };
    care(page, &format!("{number} {verb} {}: {names}.", one.what));
}

fn care(page: &mut Page, text: &str) {
    page.item(4, (Style::Care, "!"), &[(Style::Plain, text)]);
}

fn calm(page: &mut Page, text: &str) {
    page.item(4, (Style::Good, "-"), &[(Style::Plain, text)]);
}

fn pods(page: &mut Page, restart: &Restart) {
    let names = if page.all { restart.pods.join(", ") } else { folded(&restart.pods, PODS) };
    let one = restart.pods.len() == 1;
    let verb = match (restart.what, one) {
        ("restart", true) => "restarts",
        ("restart", false) => "restart",
        ("start", true) => "starts",
        ("start", false) => "start",
        ("stop", true) => "stops",
        ("stop", false) => "stop",
        (_, true) => "is deleted and made anew",
        (_, false) => "are deleted and made anew",
    };
    let pace = match restart.at_a_time {
        Some(1) if !one => ", one at a time",
        None => ", as fast as its update strategy lets it",
        Some(_) => "",
    };
    let number = match restart.at_a_time {
        Some(_) => count(restart.pods.len(), "pod"),
        None => "Its pods".to_owned(),
    };
    let verb = if restart.at_a_time.is_none() { restart.what } else { verb };
    let why =
        if restart.why.is_empty() { String::new() } else { format!(", since {}", restart.why) };
    let text = format!("{number} of {} {verb}{pace}: {names}{why}", restart.of);
    care(page, &sentence(&text));
}

fn interruption(page: &mut Page, one: &Interruption) {
    let missing = folded(&one.while_missing, PODS);
    let while_missing =
        if missing.is_empty() { String::new() } else { format!(" while {missing} is not ready") };
    if one.interrupted {
        let only = if one.before == 1 { ", since it has only one" } else { "" };
        let text = format!(
            "Service is interrupted: {} has no ready pod for a time{while_missing}{only}.",
            one.service
        );
        page.item(4, (Style::Bad, "!"), &[(Style::Plain, &text)]);
    } else {
        let text =
            format!("{} keeps at least {} of {} ready pods.", one.service, one.fewest, one.before);
        care(page, &text);
    }
}

fn phases(page: &mut Page, forecast: &Forecast) {
    page.heading(2, &later("Phases that follow", forecast));
    let width = forecast.phases.iter().map(|one| one.phase.len()).max().unwrap_or_default();
    let last = forecast.phases.len().saturating_sub(1);
    let settled = forecast.end.as_ref().is_some_and(|end| end.settled);
    for (index, one) in forecast.phases.iter().enumerate() {
        let text = if index == last && settled {
            one.reason.clone()
        } else {
            format!("{}; until {}", one.reason, one.until)
        };
        page.entry(4, (Style::Strong, &one.phase), width, &text);
    }
    let Some(end) = &forecast.end else { return };
    if forecast.phases.is_empty() {
        page.paragraph(4, &format!("It stays {}.", or_new(&end.phase)));
    }
    if let Some(said) = &end.says
        && forecast.refused.iter().all(|refused| refused.message != said.message)
    {
        let text = format!("{}: {}", said.reason, sentence(&said.message));
        page.item(4, (Style::Care, "then"), &[(Style::Plain, &text)]);
    }
}

fn or_new(phase: &str) -> &str {
    if phase.is_empty() { "without a phase" } else { phase }
}
