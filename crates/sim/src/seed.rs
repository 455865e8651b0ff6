//! The only randomness of the simulator: a seeded generator, so that a seed names a history.

/// Letters that Kubernetes uses in generated names: no vowels, no look-alikes.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A seeded generator. Forks are independent: drawing from one does not shift another.
#[derive(Clone, Debug)]
pub struct Seed {
    origin: u64,
    generator: fastrand::Rng,
}

impl Seed {
    /// The generator of history `seed`.
    pub fn new(seed: u64) -> Seed {
        Seed { origin: seed, generator: fastrand::Rng::with_seed(seed) }
    }

    /// A generator for `purpose`, the same for the same seed and purpose.
    pub fn fork(&self, purpose: &str) -> Seed {
        let mixed = purpose.bytes().fold(self.origin ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Seed::new(mixed)
    }

    /// A whole number in `0..limit`; 0 when `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.generator.u64(0..limit) }
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.generator.f64() < p
    }

    /// A text in the form of a version 4 UUID.
    pub fn uuid(&mut self) -> String {
        let high = self.generator.u64(..);
        let low = self.generator.u64(..);
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// `length` characters as `generateName` appends them.
    pub fn suffix(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(ALPHABET[self.generator.usize(0..ALPHABET.len())])).collect()
    }
}
