//! `foresight`: what happens if a resource is applied, and why it stands where it stands.
//!
//! Pure: a snapshot goes in, data and text come out. A forecast plays the controller forward: its
//! plans are carried out on the snapshot, and a small model of Kubernetes' own controllers moves in
//! between. Must not read or write anything, nor name a controller: everything comes through
//! [`phased::Subject`].
//!
//! | To find | Look in |
//! |---|---|
//! | the edit as `kubectl apply` makes it | [`edit`] |
//! | playing a controller | [`stage`], [`course`], `carry` |
//! | what the server makes of an apply | [`apply`], [`storing`] |
//! | Kubernetes' own controllers | [`workload`], [`pod`], [`world`] |
//! | a forecast as data | [`forecast`], [`child`], [`consequence`], [`storage`], [`service`], [`happening`] |
//! | children as they are declared | [`rendering`] |
//! | an explanation as data | [`explanation`], [`next`], [`overdue`], [`told`], [`history`] |
//! | fields that differ | [`change`] |
//! | mistakes that people make, in words | [`mistake`], [`schema`] |
//! | text | [`page`], [`words`] |
//! | drawings of a ladder | [`graph`] |

pub mod apply;
mod carry;
pub mod cause;
pub mod change;
pub mod child;
pub mod consequence;
pub mod course;
pub mod edit;
pub mod explanation;
pub mod forecast;
pub mod graph;
pub mod happening;
pub mod history;
pub mod mistake;
pub mod next;
pub mod overdue;
pub mod page;
pub mod pod;
pub mod rendering;
pub mod schema;
pub mod service;
pub mod stage;
pub mod storage;
pub mod storing;
pub mod told;
pub mod words;
pub mod workload;
pub mod world;
