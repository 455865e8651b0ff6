//! Runs a simulation so that the same seed gives the same history, byte for byte.
//!
//! Overrides the C library's `getrandom` and `clock_gettime` for threads that ask for it, fixes
//! ahash's keys, and gives each run a thread and a paused runtime of its own. For test binaries
//! only: in a program that makes passwords these symbols would be a disaster. Another crate's test
//! takes this file in with `#[path]`.

#![allow(unsafe_code, reason = "symbols of the C library can be replaced in no other way")]

use std::cell::Cell;
use std::ffi::{c_int, c_long, c_uint, c_void};
use std::sync::Once;

#[cfg(target_arch = "x86_64")]
const GETRANDOM: c_long = 318;
#[cfg(target_arch = "x86_64")]
const CLOCK_GETTIME: c_long = 228;
#[cfg(target_arch = "aarch64")]
const GETRANDOM: c_long = 278;
#[cfg(target_arch = "aarch64")]
const CLOCK_GETTIME: c_long = 113;

/// Seconds at which every simulated thread's clock starts: 2026-01-01.
const EPOCH: i64 = 1_767_225_600;

thread_local! {
    /// State of the thread's random source; none leaves it to the kernel.
    static RANDOM: Cell<Option<u64>> = const { Cell::new(None) };
    /// Nanoseconds of the thread's clock; none leaves it to the kernel.
    static NANOS: Cell<Option<i64>> = const { Cell::new(None) };
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// As the C library declares it.
#[repr(C)]
pub(crate) struct TimeSpec {
    seconds: i64,
    nanoseconds: c_long,
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// `buffer` must be valid for writes of `length` bytes, as for the original.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getrandom(
    buffer: *mut c_void,
    length: usize,
    flags: c_uint,
) -> isize {
    let Some(mut state) = RANDOM.try_with(Cell::get).ok().flatten() else {
        // SAFETY: the arguments are the caller's, who promised what the system call needs.
        return unsafe { syscall(GETRANDOM, buffer, length, flags) } as isize;
    };
    for index in 0..length {
        // splitmix64, a byte a turn.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // SAFETY: `index` is below `length`, for which the caller vouches.
        unsafe { buffer.cast::<u8>().add(index).write((mixed ^ (mixed >> 31)) as u8) };
    }
    RANDOM.with(|random| random.set(Some(state)));
    length as isize
}

/// Replaces the C library's function of this name. A simulated thread's clock moves by a
/// microsecond a look, so that nothing that waits for it waits for ever.
///
/// # Safety
/// `time` must be valid for a write, as for the original.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int {
    let Some(nanos) = NANOS.try_with(Cell::get).ok().flatten() else {
        // SAFETY: the arguments are the caller's, who promised what the system call needs.
        return unsafe { syscall(CLOCK_GETTIME, clock, time) } as c_int;
    };
    let nanos = nanos + 1000;
    NANOS.with(|clock| clock.set(Some(nanos)));
    let value = TimeSpec {
        seconds: EPOCH + nanos / 1_000_000_000,
        nanoseconds: (nanos % 1_000_000_000) as c_long,
    };
    // SAFETY: the caller vouches for the place.
    unsafe { time.write(value) };
    0
}

/// Keys that are the same in every map of every run.
struct FixedKeys;

impl ahash::random_state::RandomSource for FixedKeys {
    fn gen_hasher_seed(&self) -> usize {
        0x5eed
    }
}

/// Runs `simulate` on a thread of its own, under virtual time, with all chance drawn from `seed`.
pub(crate) fn run<T, F>(seed: u64, simulate: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    static KEYS: Once = Once::new();
    KEYS.call_once(|| {
        // Refused only when somebody was faster, and then with other keys: the comparison shows it.
        let _ = ahash::random_state::set_random_source(FixedKeys);
        // ahash draws more keys once a process: here, from a constant, not from the first run's seed.
        RANDOM.with(|random| random.set(Some(0)));
        let _ = ahash::RandomState::new();
        RANDOM.with(|random| random.set(None));
    });
    let thread = std::thread::spawn(move || {
        RANDOM.with(|random| random.set(Some(seed)));
        NANOS.with(|clock| clock.set(Some(0)));
        fastrand::seed(seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without input and output needs nothing of the system");
        let answer = runtime.block_on(simulate());
        drop(runtime);
        RANDOM.with(|random| random.set(None));
        NANOS.with(|clock| clock.set(None));
        answer
    });
    match thread.join() {
        Ok(answer) => answer,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
