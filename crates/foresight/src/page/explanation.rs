//! An explanation as a page.

use phased::pause::BECAUSE_PAUSED;

use super::{Page, Style};
use crate::explanation::{Explanation, Mark};
use crate::told::Word;
use crate::words::{count, folded, from_now, sentence, span};

/// The most items of a list before it is folded.
const LONGEST: usize = 6;
/// The most moments of the time line.
const MOMENTS: usize = 12;

/// Puts an explanation on the page.
pub fn add(page: &mut Page, told: &Explanation) {
    page.gap();
    head(page, told);
    if let Some(overdue) = &told.overdue {
        let since = overdue.since.map(|at| format!("since {at} ({}): ", from_now(at, told.now)));
        let text = format!("{}{}", since.unwrap_or_default(), sentence(&overdue.what));
        page.item(2, (Style::Bad, "overdue"), &[(Style::Plain, &text)]);
    }
    ladder(page, told);
    now(page, told);
    words(page, &told.words, told);
    next(page, told);
    if !told.remedies.is_empty() {
        page.heading(2, "You can");
        for remedy in &told.remedies {
            page.item(4, (Style::Strong, "->"), &[(Style::Plain, &sentence(remedy))]);
        }
    }
    history(page, told);
}

/// The last line: how many of what stand how.
pub fn summary(page: &mut Page, all: &[Explanation]) {
    let ready = all.iter().filter(|one| one.ready).count();
    let stuck =
        all.iter().filter(|one| one.ladder.iter().any(|step| step.mark == Mark::Stuck)).count();
    let overdue = all.iter().filter(|one| one.overdue.is_some()).count();
    let degraded = all.iter().filter(|one| one.lacks.is_some()).count();
    let paused = all.iter().filter(|one| one.held.is_some()).count();
    let mut text = format!("{}: {ready} ready", count(all.len(), "resource"));
    if degraded > 0 {
        text.push_str(&format!(" ({degraded} degraded)"));
    }
    for (number, what) in [
        (all.len() - ready - stuck.min(all.len() - ready), "on the way"),
        (stuck, "stuck"),
        (paused, "paused"),
        (overdue, "overdue for the operator"),
    ] {
        if number > 0 {
            text.push_str(&format!(", {number} {what}"));
        }
    }
    let style = match (stuck + overdue, ready == all.len() && degraded + paused == 0) {
        (0, true) => Style::Good,
        (0, false) => Style::Care,
        _ => Style::Bad,
    };
    page.gap();
    page.item(0, (Style::Plain, ""), &[(style, &format!("{text}."))]);
}

fn head(page: &mut Page, told: &Explanation) {
    let phase = if told.phase.is_empty() { "without a status" } else { told.phase.as_str() };
    let paused = if told.held.is_some() { ", paused" } else { "" };
    let since = told.since.map(|at| span(told.now.as_second() - at.as_second()));
    let since = since.map_or_else(|| paused.to_owned(), |since| format!("for {since}{paused}"));
    let style = if told.ready { Style::Good } else { Style::Care };
    let words = [
        (Style::Strong, format!("{}:", told.resource)),
        (style, phase.to_owned()),
        (Style::Plain, since),
    ];
    let words: Vec<(Style, &str)> = words.iter().map(|(s, text)| (*s, text.as_str())).collect();
    page.item(0, (Style::Plain, ""), &words);
}

fn ladder(page: &mut Page, told: &Explanation) {
    let width = told.ladder.iter().map(|step| step.phase.len()).max().unwrap_or_default();
    let top = told.ladder.len().saturating_sub(1);
    for (index, step) in told.ladder.iter().enumerate() {
        let (style, mark) = match step.mark {
            Mark::Done => (Style::Good, "[x]"),
            Mark::Here => (Style::Care, "[>]"),
            Mark::Stuck => (Style::Bad, "[!]"),
            Mark::Ahead => (Style::Dim, "[ ]"),
        };
        let here = matches!(step.mark, Mark::Here | Mark::Stuck) && index < top;
        let text = if here { format!("until {}", step.leaves_when) } else { String::new() };
        let name = format!("{mark} {:<width$}", step.phase);
        page.item(2, (style, &name), &[(Style::Plain, &text)]);
    }
}

/// Whether there is nothing to tell of how it stands now.
fn is_quiet(told: &Explanation) -> bool {
    told.ready && told.unmet.is_empty() && told.lacks.is_none() && told.held.is_none()
}

fn now(page: &mut Page, told: &Explanation) {
    let quiet = is_quiet(told);
    if !quiet {
        page.heading(2, "Now");
    }
    for said in &told.unmet {
        let reason = format!("{}:", said.reason);
        let message = sentence(&said.message);
        page.item(4, (Style::Bad, "unmet"), &[(Style::Strong, &reason), (Style::Plain, &message)]);
    }
    if let Some(said) = &told.lacks {
        let (reason, message) = (format!("{}:", said.reason), sentence(&said.message));
        page.item(4, (Style::Bad, "lacks"), &[(Style::Strong, &reason), (Style::Plain, &message)]);
    }
    if told.held.is_some() {
        let text = sentence(&format!("{BECAUSE_PAUSED}: nothing but the status is written"));
        page.item(4, (Style::Care, "held "), &[(Style::Plain, &text)]);
    }
    for met in told.met.iter().filter(|_| !quiet) {
        let objects = if page.all { met.objects.join(", ") } else { folded(&met.objects, 4) };
        let text = format!("{}: {objects}.", met.what);
        page.item(4, (Style::Good, "met  "), &[(Style::Plain, &text)]);
    }
    if let Some(gate) = &told.gate {
        page.item(4, (Style::Care, "gate "), &[(Style::Plain, &format!("{gate} is shut."))]);
    }
    if let Some(deadline) = told.deadline {
        let text = format!(
            "{deadline}, {}; without progress until then it counts as failed.",
            from_now(deadline, told.now)
        );
        page.item(4, (Style::Care, "until"), &[(Style::Plain, &text)]);
    }
}

fn words(page: &mut Page, words: &[Word], told: &Explanation) {
    if words.is_empty() || (told.ready && told.lacks.is_none() && !page.all) {
        return;
    }
    page.heading(2, "Last words");
    page.list(words, LONGEST, |page, word| {
        let when = word.at.map(|at| format!(", {}", from_now(at, told.now))).unwrap_or_default();
        let times = if word.times > 1 { format!(", {} times", word.times) } else { String::new() };
        let who = format!("{} about {}{when}{times}:", word.who, word.about);
        let text = format!("{}: {}", word.reason, word.message);
        page.item(4, (Style::Care, "-"), &[(Style::Strong, &who), (Style::Plain, &text)]);
    });
}

fn next(page: &mut Page, told: &Explanation) {
    page.heading(2, "Next");
    page.list(&told.next, LONGEST, |page, step| {
        page.item(4, (Style::Plain, "-"), &[(Style::Plain, &format!("Steadfast {step}."))]);
    });
    page.list(told.held.as_deref().unwrap_or_default(), LONGEST, |page, step| {
        let text = format!("Once the pause is lifted, Steadfast {step}.");
        page.item(4, (Style::Plain, "-"), &[(Style::Plain, &text)]);
    });
    let text = match told.looks_again {
        Some(at) => format!(
            "Steadfast looks again {} at the latest, and on every change.",
            from_now(at, told.now)
        ),
        None if told.next.is_empty() => "Steadfast waits for a change.".to_owned(),
        None => "Steadfast goes on at once.".to_owned(),
    };
    page.item(4, (Style::Plain, "-"), &[(Style::Plain, &text)]);
}

fn history(page: &mut Page, told: &Explanation) {
    if told.history.is_empty() {
        return;
    }
    page.heading(2, "History (UTC)");
    let skip = if page.all { 0 } else { told.history.len().saturating_sub(MOMENTS) };
    if skip > 0 {
        let text = format!("{skip} earlier (--all shows them)");
        page.item(4, (Style::Dim, "…"), &[(Style::Dim, &text)]);
    }
    for moment in &told.history[skip..] {
        let who = format!("{}:", moment.who);
        let words = [(Style::Dim, who.as_str()), (Style::Plain, moment.what.as_str())];
        page.item(4, (Style::Dim, &moment.at.strftime("%m-%d %H:%M:%S").to_string()), &words);
    }
}
