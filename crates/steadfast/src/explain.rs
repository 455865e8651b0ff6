//! `steadfast explain`: how resources stand, why, and what comes next.
//!
//! Reads only. Must not decide; `foresight` does.

mod watch;

use std::process::ExitCode;

use foresight::explanation::{self, Explanation};
use foresight::mistake::Mistake;
use foresight::page::{self, Page};
use foresight::stage::{Outside, Progress, Stage};
use foresight::words::named;
use operators::catalog::Row;
use phased::{Live, ObjectId, Seen, Settings};
use runner::store::Store;
use runner::trouble::ApiError;

use crate::args::foresight::{Explain, Output};
use crate::link::Link;
use crate::plan::{answer, unread};
use crate::{kinds, output};

/// What is to be explained.
pub struct Target {
    /// The kind.
    pub row: Row,
    /// The name; `None` for all.
    pub name: Option<String>,
    /// The namespace; empty for all.
    pub namespace: String,
}

impl Target {
    /// What the command line means, in all namespaces.
    ///
    /// # Errors
    /// When it means nothing.
    pub fn of(options: &Explain) -> Result<Self, Mistake> {
        let (kind, name) = match (options.what.split_once('/'), &options.name) {
            (Some((kind, name)), None) => (kind, Some(name.to_owned())),
            (None, name) => (options.what.as_str(), name.clone()),
            (Some(_), Some(_)) => {
                let next = "Write KIND/NAME or KIND NAME.";
                return Err(Mistake::new("The name is given twice.", next));
            }
        };
        Ok(Self { row: kinds::named(kind)?, name, namespace: String::new() })
    }
}

/// Explains.
///
/// # Errors
/// When something cannot be read, or does not exist.
pub fn explain(options: &Explain) -> anyhow::Result<ExitCode> {
    let mut target = Target::of(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let link = Link::real(&options.access, "").await?;
        if !options.all_namespaces {
            target.namespace.clone_from(&link.namespace);
        }
        let settings = options.settings();
        if options.watch {
            return watch::watch(&link, &target, &settings, options.all).await;
        }
        let told = all(&link, &target, &settings).await?;
        match options.output {
            Output::Text => output::page(&page_of(&told, options.all)),
            form if target.name.is_some() => output::data(form, &told.first())?,
            form => output::data(form, &told)?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Explanations as a page, the summary last.
pub fn page_of(told: &[Explanation], all: bool) -> Page {
    let mut page = Page::new(all);
    for one in told {
        page::explanation::add(&mut page, one);
    }
    page::explanation::summary(&mut page, told);
    page
}

/// Explains everything that is meant.
///
/// # Errors
/// When something cannot be read, or does not exist.
pub async fn all(
    link: &Link,
    target: &Target,
    settings: &Settings,
) -> Result<Vec<Explanation>, Mistake> {
    let roots = roots(link, target).await?;
    let mut told = Vec::new();
    let mut namespace: Option<(String, Store, Vec<Live>)> = None;
    for root in roots {
        let own = root.metadata.namespace.clone().unwrap_or_default();
        if namespace.as_ref().is_none_or(|(known, ..)| *known != own) {
            let only = target.name.as_deref();
            let store = link.viewer.gather(target.row.subject, &own, only).await;
            let store = store.map_err(|e| unread(link, &e))?;
            // Without the right to list Events the rest is still worth telling.
            let events = link.viewer.events(&own).await.unwrap_or_default();
            namespace = Some((own, store, events));
        }
        let Some((_, store, events)) = &namespace else { continue };
        told.push(one(link, &target.row, root, (store, events, settings)).await);
    }
    Ok(told)
}

async fn roots(link: &Link, target: &Target) -> Result<Vec<Live>, Mistake> {
    let kind = target.row.kind;
    let trouble = |error: &ApiError| read_trouble(link, target, error);
    let Some(name) = &target.name else {
        let mut roots = match link.viewer.list(kind, &target.namespace, "").await {
            Ok(roots) => roots,
            Err(error) => return Err(trouble(&error)),
        };
        roots.sort_by_key(|root| (root.metadata.namespace.clone(), root.metadata.name.clone()));
        if roots.is_empty() {
            let place = match target.namespace.as_str() {
                "" => "anywhere".to_owned(),
                namespace => format!("in namespace {namespace}"),
            };
            return Err(Mistake::new(
                format!("There is no {} {place}.", kind.kind),
                "Name another namespace with -n, or look everywhere with -A.",
            ));
        }
        return Ok(roots);
    };
    if target.namespace.is_empty() {
        let everywhere = link.viewer.list(kind, "", "").await.map_err(|error| trouble(&error))?;
        return Ok(everywhere
            .into_iter()
            .filter(|r| r.metadata.name.as_ref() == Some(name))
            .collect());
    }
    let id = ObjectId::new(kind, target.namespace.clone(), name.clone());
    match link.viewer.get(&id).await {
        Ok(Some(root)) => Ok(vec![root]),
        Ok(None) => Err(absent(link, &id).await),
        Err(error) => Err(trouble(&error)),
    }
}

/// A resource that is not there may be elsewhere.
async fn absent(link: &Link, id: &ObjectId) -> Mistake {
    let sentence = format!("{} does not exist.", named(id));
    let all = match link.viewer.list(id.kind, "", "").await {
        Ok(all) => all,
        Err(ApiError::NotFound) => {
            let next = "Install the definitions: steadfast crds | kubectl apply --server-side -f -";
            return Mistake::new(format!("The cluster does not know {}.", id.kind.kind), next);
        }
        Err(_) => Vec::new(),
    };
    let place = |root: &Live| root.metadata.namespace.clone().unwrap_or_default();
    if let Some(other) = all.iter().find(|root| root.metadata.name.as_deref() == Some(&id.name)) {
        let next = format!("One of that name is in namespace {0}: add -n {0}.", place(other));
        return Mistake::new(sentence, next);
    }
    let here = all.iter().filter(|root| place(root) == id.namespace);
    let names: Vec<String> = here.filter_map(|root| root.metadata.name.clone()).collect();
    let next = if names.is_empty() {
        format!("There is no {} in namespace {}; try -A.", id.kind.kind, id.namespace)
    } else {
        let names = foresight::words::folded(&names, 8);
        format!("In namespace {} there are: {names}.", id.namespace)
    };
    Mistake::new(sentence, next)
}

fn read_trouble(link: &Link, target: &Target, error: &ApiError) -> Mistake {
    let trouble = error.trouble();
    let kind = target.row.kind;
    let place = match target.namespace.as_str() {
        "" => "in all namespaces".to_owned(),
        namespace => format!("in namespace {namespace}"),
    };
    match (error, trouble.reason.as_str()) {
        (ApiError::NotFound, _) => Mistake::new(
            format!("The cluster does not know {}.", kind.kind),
            "Install the definitions: steadfast crds | kubectl apply --server-side -f -",
        ),
        (_, "Forbidden") => Mistake::new(
            format!("You may not read {}.{} {place}.", kind.plural, kind.group),
            format!(
                "Ask for that permission, or name a namespace with -n. The server says: {}",
                trouble.message
            ),
        ),
        (_, "Unauthorized") => Mistake::new(
            "The cluster does not accept your credentials.",
            "Log in again, or name another context with --context.",
        ),
        _ => link.silent(&trouble.message),
    }
}

async fn one(
    link: &Link,
    row: &Row,
    root: Live,
    (store, events, settings): (&Store, &[Live], &Settings),
) -> Explanation {
    let seen = Seen {
        resource: (),
        objects: store.select(&row.subject.wants(&root)),
        root,
        facts: phased::Facts::new(),
        troubles: Vec::new(),
        now: link.clock.now(),
        settings: settings.clone(),
    };
    let mut stage = Stage::new(row.subject, seen, Outside::Unasked);
    loop {
        match explanation::explain(&mut stage, events) {
            Progress::Done(told) => return told,
            Progress::Needs(questions) => {
                for question in questions {
                    let answer = answer(link, &question).await;
                    stage.tell(question, answer);
                }
            }
        }
    }
}
