//! A ladder as Mermaid, DOT and SVG.

mod toy;

use foresight::graph;
use insta::assert_snapshot;

#[test]
fn mermaid() {
    assert_snapshot!(graph::mermaid(&toy::WIDGET.ladder()));
}

#[test]
fn dot() {
    assert_snapshot!(graph::dot(&toy::WIDGET.ladder()));
}

#[test]
fn svg() {
    assert_snapshot!(graph::svg(&toy::WIDGET.ladder()));
}
