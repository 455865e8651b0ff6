//! The write-ahead log as far as replication shows it: positions, segments, what is kept and what
//! has been removed.
//!
//! The rules are those of `KeepLogSeg` and `GetWALAvailability`. Must not know who streams.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Bytes of a segment.
pub(super) const SEGMENT: u64 = 16 << 20;
/// Where a fresh cluster's log stands.
const FIRST: u64 = 0x0150_0000;

/// A position as PostgreSQL prints it.
pub(super) fn shown(position: u64) -> String {
    format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff)
}

/// Reads a position.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let half = |part: &str| {
        let plain = (1..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_hexdigit());
        plain.then(|| u64::from_str_radix(part, 16).ok()).flatten()
    };
    Some(half(high)? << 32 | half(low)?)
}

/// Name of a segment's file.
pub(super) fn file(timeline: u32, segment: u64) -> String {
    format!("{timeline:08X}{:08X}{:08X}", segment >> 8, segment & 0xff)
}

/// A cluster's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wal {
    /// End of what is written, or replayed on a standby.
    pub(super) position: u64,
    pub(super) timeline: u32,
    /// Earlier timelines, each with the position at which it was left.
    pub(super) history: Vec<(u32, u64)>,
    /// Oldest segment that is still there.
    pub(super) oldest: u64,
    /// Where the last checkpoint began.
    pub(super) redo: u64,
    /// Time of the last change.
    pub(super) changed: Option<Timestamp>,
}

/// A physical replication slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// Oldest position that it keeps; none until it is first used.
    pub(super) restart: Option<u64>,
    /// Process that uses it.
    pub(super) active: Option<i32>,
    /// Whether what it kept has been removed.
    pub(super) lost: bool,
}

/// The settings that limit what is kept, in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// `max_slot_wal_keep_size`; none is without a limit.
    pub(super) slots: Option<u64>,
    /// `wal_keep_size`.
    pub(super) keep: u64,
    /// `max_wal_size`.
    pub(super) most: u64,
}

impl Wal {
    pub(super) fn new() -> Wal {
        Wal {
            position: FIRST,
            timeline: 1,
            history: Vec::new(),
            oldest: 1,
            redo: FIRST,
            changed: None,
        }
    }

    pub(super) fn write(&mut self, bytes: u64, now: Timestamp) {
        self.position += bytes;
        self.changed = Some(now);
    }

    fn segment(&self) -> u64 {
        self.position / SEGMENT
    }

    /// The oldest segment that slots and settings ask to keep.
    fn keeps(&self, slots: &BTreeMap<String, Slot>, limits: Limits) -> u64 {
        let now = self.segment();
        let asked = slots.values().filter_map(|slot| slot.restart).min();
        let asked = asked.map_or(now, |position| (position / SEGMENT).min(now));
        let asked = limits.slots.map_or(asked, |most| asked.max(now.saturating_sub(most)));
        match limits.keep {
            0 => asked,
            keep => asked.min(now.saturating_sub(keep)).max(1),
        }
    }

    /// A checkpoint: forgets segments that nobody asks for. Answers the slots that lost theirs,
    /// with the process of each that was using one.
    pub(super) fn checkpoint(
        &mut self,
        slots: &mut BTreeMap<String, Slot>,
        limits: Limits,
    ) -> Vec<(String, u64, Option<i32>)> {
        self.redo = self.position;
        let oldest = self.keeps(slots, limits);
        let mut lost = Vec::new();
        for (name, slot) in slots.iter_mut() {
            let Some(restart) = slot.restart.filter(|restart| restart / SEGMENT < oldest) else {
                continue;
            };
            lost.push((name.clone(), restart, slot.active.take()));
            *slot = Slot { restart: None, active: None, lost: true };
        }
        // What only the lost slots asked for goes in the same checkpoint.
        let oldest = if lost.is_empty() { oldest } else { self.keeps(slots, limits) };
        self.oldest = self.oldest.max(oldest);
        lost
    }

    /// `wal_status` of a slot; none where it never kept anything.
    pub(super) fn status(
        &self,
        slot: &Slot,
        slots: &BTreeMap<String, Slot>,
        limits: Limits,
    ) -> Option<&'static str> {
        let Some(restart) = slot.restart else { return slot.lost.then_some("lost") };
        let segment = restart / SEGMENT;
        if segment >= self.keeps(slots, limits) {
            let early = self.segment().saturating_sub(limits.most + 1);
            return Some(if segment >= early { "reserved" } else { "extended" });
        }
        let kept = segment >= self.oldest || slot.active.is_some();
        Some(if kept { "unreserved" } else { "lost" })
    }

    /// Bytes that may be written before the slot is in danger; none without a limit.
    pub(super) fn safe(&self, slot: &Slot, limits: Limits) -> Option<i64> {
        let (restart, most) = (slot.restart?, limits.slots?);
        let end = (restart / SEGMENT + most.max(limits.keep) + 1) * SEGMENT;
        Some(i64::try_from(end).ok()? - i64::try_from(self.position).ok()?)
    }

    /// Whether a log that stands at `position` of `timeline` can be continued with this one.
    pub(super) fn continues(&self, timeline: u32, position: u64) -> bool {
        if timeline == self.timeline {
            return true;
        }
        let left = self.history.iter().find(|(one, _)| *one == timeline);
        left.is_some_and(|(_, at)| position <= *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { slots: Some(2), keep: 0, most: 64 };

    #[test]
    fn positions_are_read_and_shown() {
        for (text, position) in [("0/0", 0), ("0/15000028", 0x1500_0028), ("A/B", 0xA_0000_000B)] {
            assert_eq!(parse(text), Some(position), "{text}");
            assert_eq!(shown(position), text);
        }
        for text in ["zz", "0", "/", "0/", "0/123456789", "x/1"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(file(1, 9), "000000010000000000000009");
        assert_eq!(file(2, 0x101), "000000020000000100000001");
    }

    /// The figures of a PostgreSQL 15 with `max_slot_wal_keep_size` of 32 MB.
    #[test]
    fn a_slot_that_falls_behind_is_lost_at_a_checkpoint() {
        let mut wal = Wal::new();
        wal.position = 0x0900_0000;
        let slot = Slot { restart: Some(0x0900_0000), ..Slot::default() };
        let mut slots = BTreeMap::from([("s1".to_owned(), slot)]);
        let mut seen = Vec::new();
        for position in [0x0900_0000, 0x0A00_0188, 0x0B00_0188, 0x0C00_0000] {
            wal.position = position;
            seen.push((wal.status(&slots["s1"], &slots, LIMITS), wal.safe(&slots["s1"], LIMITS)));
            if position < 0x0C00_0000 {
                assert!(wal.checkpoint(&mut slots, LIMITS).is_empty());
            }
        }
        let expected = [
            (Some("reserved"), Some(50_331_648)),
            (Some("reserved"), Some(33_554_040)),
            (Some("reserved"), Some(16_776_824)),
            (Some("unreserved"), Some(0)),
        ];
        assert_eq!(seen, expected);
        assert_eq!(wal.checkpoint(&mut slots, LIMITS), [("s1".to_owned(), 0x0900_0000, None)]);
        assert_eq!(wal.status(&slots["s1"], &slots, LIMITS), Some("lost"));
        assert_eq!(wal.safe(&slots["s1"], LIMITS), None);
        assert_eq!(wal.oldest, 0xC);
    }

    #[test]
    fn without_a_limit_a_slot_keeps_everything() {
        let mut wal = Wal::new();
        let slot = Slot { restart: Some(wal.position), ..Slot::default() };
        let mut slots = BTreeMap::from([("s1".to_owned(), slot)]);
        let limits = Limits { slots: None, keep: 0, most: 64 };
        wal.position += 100 * SEGMENT;
        assert!(wal.checkpoint(&mut slots, limits).is_empty());
        assert_eq!(wal.status(&slots["s1"], &slots, limits), Some("extended"));
        assert_eq!(wal.safe(&slots["s1"], limits), None);
        assert_eq!(wal.oldest, 1);
    }

    #[test]
    fn a_log_continues_what_it_branched_from() {
        let wal = Wal { timeline: 2, history: vec![(1, 0x500)], ..Wal::new() };
        assert!(wal.continues(1, 0x400) && wal.continues(1, 0x500) && wal.continues(2, 0x900));
        assert!(!wal.continues(1, 0x501) && !wal.continues(3, 0x100));
    }
}
