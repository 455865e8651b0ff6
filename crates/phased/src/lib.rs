//! `phased`: the pure kernel of status-driven reconciliation in phases.
//!
//! A controller is a pure function, [`Controller::plan`], from one snapshot of the world
//! ([`Observed`]) to plain data ([`Plan`]). A program with I/O (crate `runner`) takes the
//! snapshot, answers the questions that the plan asks, carries its steps out, writes its status
//! and comes back when the plan says so. Nothing here may await, read a clock, draw a random
//! number, or name a client: what a plan cannot know it asks for.
//!
//! | To find | Look in |
//! |---|---|
//! | what a controller provides | [`controller`] |
//! | the snapshot | [`observed`], [`object`], [`fact`] |
//! | the result | [`plan`], [`step`], [`wake`], [`reason`] |
//! | phases and their order | [`ladder`] |
//! | children: wanted, compared, repaired | [`child`], [`compare`], [`ownership`] |
//! | rollouts and their deadlines | [`rollout`], [`deadline`], [`retry`] |
//! | conditions | [`condition`] |
//! | a pause | [`pause`] |
//! | a controller with its type forgotten | [`subject`] |
//! | how the server stores what it is sent | [`stored`] |
//! | what every plan must satisfy | [`lint`] |
//! | a plan as text | [`render`] |
//! | a ladder as documentation | [`docs`] |
//! | quantities and names by Kubernetes' rules | [`quantity`], [`name`] |
//! | digests of content | [`digest`] |

pub mod child;
pub mod compare;
pub mod condition;
pub mod controller;
pub mod deadline;
pub mod digest;
pub mod docs;
pub mod fact;
pub mod ladder;
pub mod lint;
pub mod name;
pub mod object;
pub mod observed;
pub mod ownership;
pub mod pause;
pub mod plan;
pub mod quantity;
pub mod reason;
pub mod render;
pub mod retry;
pub mod rollout;
pub mod step;
pub mod stored;
pub mod subject;
pub mod wake;

pub use controller::{Controller, Past, Settings, Trigger, Want, Watch};
pub use fact::{Answer, Facts, Question, Reply, Trouble};
pub use ladder::{Ladder, Rung, Verdict};
pub use object::{KindRef, Live, ObjectId};
pub use observed::{Observed, StepTrouble};
pub use plan::{EventNote, Note, Plan, Stands, StatusWrite, Transition};
pub use reason::Reason;
pub use step::Step;
pub use subject::{Seen, Subject};
pub use wake::Wake;
