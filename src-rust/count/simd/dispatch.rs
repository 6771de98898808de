//! Engines: the hot loops compiled for several processor features, selected at run time.
//!
//! Every engine runs the same code. They differ in how bytes are classified and bits are spread, and in the
//! instructions available to the compiler. The library itself is built for the baseline of its architecture.

use crate::count::bpe::batch::{self, Batch};
use crate::count::bpe::lookup::{MissMask, Misses, Window, look_up, recall};
use crate::count::memo::cache_lines::{CacheLine, find_in_line};
use crate::count::memo::thread::Memo;
use crate::count::pretokenize::classify::{self, Block, Masks};
use crate::count::tables::hash::Key;
use crate::count::tables::vocab::Vocab;

/// A set of processor features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    /// Any processor.
    Portable,
    /// x86-64 since about 2013.
    #[cfg(target_arch = "x86_64")]
    Avx2(x86::Detected),
    /// x86-64 since about 2019 (servers) and 2022 (AMD).
    #[cfg(target_arch = "x86_64")]
    Avx512(x86::Detected),
}

impl Engine {
    /// The engines that this processor supports, the fastest last.
    pub(crate) fn all() -> impl Iterator<Item = Engine> {
        #[cfg(target_arch = "x86_64")]
        let fast = [x86::Detected::avx2().map(Engine::Avx2), x86::Detected::avx512().map(Engine::Avx512)];
        #[cfg(not(target_arch = "x86_64"))]
        let fast: [Option<Engine>; 0] = [];
        std::iter::once(Engine::Portable).chain(fast.into_iter().flatten())
    }

    /// The fastest engine that this processor supports.
    #[inline]
    pub(crate) fn fastest() -> Engine {
        Engine::all().last().unwrap_or(Engine::Portable)
    }

    /// [`Batch::cut`].
    pub(crate) fn cut<const P: u8>(self, batch: &mut Batch, text: &[u8]) {
        match self {
            Engine::Portable => {
                batch.cut::<P>(text, classify::portable, classify::portable_leads, batch::spread);
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(detected) => detected.cut_avx2::<P>(batch, text),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512(detected) => detected.cut_avx512::<P>(batch, text),
        }
    }

    /// [`look_up`].
    pub(crate) fn look_up(self, vocab: &Vocab, batch: &Batch, window: &Window, rare: &mut MissMask) {
        match self {
            Engine::Portable => look_up(vocab, batch, window, rare),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(detected) | Engine::Avx512(detected) => {
                detected.look_up(vocab, batch, window, rare);
            }
        }
    }

    /// [`recall`].
    pub(crate) fn recall(
        self,
        memo: &Memo,
        batch: &Batch,
        window: &Window,
        rare: &MissMask,
        misses: &mut Misses,
    ) -> usize {
        match self {
            Engine::Portable => recall(memo, batch, window, rare, misses, find_in_line),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(detected) => detected.recall_avx2(memo, batch, window, rare, misses),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512(detected) => detected.recall_avx512(memo, batch, window, rare, misses),
        }
    }
}

/// A hot loop in portable code, compiled for each engine.
pub(crate) trait Kernel {
    /// The result of the loop.
    type Outcome;

    /// Runs the loop. `fetch` prefetches data that is read soon, where supported. Implementations are
    /// `#[inline(always)]`, so that they are compiled for the features of the engine.
    fn run(self, fetch: impl Fn(&[u8; 4]) + Copy) -> Self::Outcome;
}

/// A loop over blocks of 64 bytes, compiled for each engine with its functions on blocks.
pub(crate) trait BlockKernel {
    /// The result of the loop.
    type Outcome;

    /// Runs the loop. `classify` is a function of [`classify`], `spread` one like [`batch::spread`], `find` one like
    /// [`find_in_line`]. Implementations are `#[inline(always)]`.
    fn run(
        self,
        classify: impl Fn(&Block) -> Masks,
        spread: impl Fn(u64, u16, &mut [u16; 64]),
        find: impl Fn(&CacheLine, Key) -> usize,
    ) -> Self::Outcome;
}

impl Engine {
    /// Runs a kernel over blocks, compiled for this engine.
    #[inline]
    pub(crate) fn run_blocks<K: BlockKernel>(self, kernel: K) -> K::Outcome {
        match self {
            Engine::Portable => kernel.run(classify::portable, batch::spread, find_in_line),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(detected) => detected.run_blocks_avx2(kernel),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512(detected) => detected.run_blocks_avx512(kernel),
        }
    }

    /// Runs a kernel, compiled for this engine.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Outcome {
        match self {
            Engine::Portable => kernel.run(|_| {}),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(detected) | Engine::Avx512(detected) => detected.run(kernel),
        }
    }

    /// Prefetches data that is read soon, where supported.
    #[inline(always)]
    pub(crate) fn fetch<T>(self, what: &T) {
        match self {
            Engine::Portable => {}
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(_) | Engine::Avx512(_) => x86::fetch(what),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use super::{Batch, BlockKernel, Kernel, Memo, MissMask, Misses, Vocab, Window, look_up, recall};
    use crate::count::simd::{avx2, avx512};
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    /// Proof of detected features: AVX2 and its companions, optionally AVX-512.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Detected {
        avx512: bool,
    }

    impl Detected {
        #[inline]
        pub(crate) fn avx2() -> Option<Detected> {
            let detected = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            detected.then_some(Detected { avx512: false })
        }

        #[inline]
        pub(crate) fn avx512() -> Option<Detected> {
            let detected = Detected::avx2().is_some()
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vbmi2");
            detected.then_some(Detected { avx512: true })
        }

        #[inline]
        pub(super) fn cut_avx2<const P: u8>(self, batch: &mut Batch, text: &[u8]) {
            // SAFETY: every constructor of `Detected` checks for AVX2 and its companions.
            unsafe { cut_avx2::<P>(batch, text) }
        }

        #[inline]
        pub(super) fn cut_avx512<const P: u8>(self, batch: &mut Batch, text: &[u8]) {
            if self.avx512 {
                // SAFETY: `avx512` is set only if all its features were detected.
                unsafe { cut_avx512::<P>(batch, text) }
            } else {
                self.cut_avx2::<P>(batch, text);
            }
        }

        #[inline]
        pub(super) fn look_up(self, vocab: &Vocab, batch: &Batch, window: &Window, rare: &mut MissMask) {
            // SAFETY: every constructor of `Detected` checks for AVX2 and its companions.
            unsafe { look_up_avx2(vocab, batch, window, rare) }
        }

        #[inline]
        pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Outcome {
            // SAFETY: every constructor of `Detected` checks for AVX2 and its companions.
            unsafe { run_avx2(kernel) }
        }

        #[inline]
        pub(super) fn run_blocks_avx2<K: BlockKernel>(self, kernel: K) -> K::Outcome {
            // SAFETY: every constructor of `Detected` checks for AVX2 and its companions.
            unsafe { run_blocks_avx2(kernel) }
        }

        #[inline]
        pub(super) fn run_blocks_avx512<K: BlockKernel>(self, kernel: K) -> K::Outcome {
            if self.avx512 {
                // SAFETY: `avx512` is set only if all its features were detected.
                unsafe { run_blocks_avx512(kernel) }
            } else {
                self.run_blocks_avx2(kernel)
            }
        }

        #[inline]
        pub(super) fn recall_avx2(
            self,
            memo: &Memo,
            batch: &Batch,
            window: &Window,
            rare: &MissMask,
            misses: &mut Misses,
        ) -> usize {
            // SAFETY: every constructor of `Detected` checks for AVX2 and its companions.
            unsafe { recall_avx2(memo, batch, window, rare, misses) }
        }

        #[inline]
        pub(super) fn recall_avx512(
            self,
            memo: &Memo,
            batch: &Batch,
            window: &Window,
            rare: &MissMask,
            misses: &mut Misses,
        ) -> usize {
            if self.avx512 {
                // SAFETY: `avx512` is set only if all its features were detected.
                unsafe { recall_avx512(memo, batch, window, rare, misses) }
            } else {
                self.recall_avx2(memo, batch, window, rare, misses)
            }
        }
    }

    #[inline(always)]
    pub(super) fn fetch<T>(what: &T) {
        // SAFETY: a prefetch neither reads nor writes memory, and every x86-64 processor supports it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast()) }
    }

    // A closure, so that `spread` is compiled for the features of the enclosing function.
    #[allow(clippy::redundant_closure)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn cut_avx2<const P: u8>(batch: &mut Batch, text: &[u8]) {
        batch.cut::<P>(
            text,
            |block| avx2::classify(block),
            |block| avx2::leads(block),
            |starts, offset, room| avx2::spread(starts, offset, room),
        );
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
    fn cut_avx512<const P: u8>(batch: &mut Batch, text: &[u8]) {
        batch.cut::<P>(
            text,
            |block| avx512::classify(block),
            |block| avx512::leads(block),
            |starts, offset, room| avx512::spread(starts, offset, room),
        );
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn look_up_avx2(vocab: &Vocab, batch: &Batch, window: &Window, rare: &mut MissMask) {
        look_up(vocab, batch, window, rare);
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn run_avx2<K: Kernel>(kernel: K) -> K::Outcome {
        kernel.run(fetch)
    }

    #[allow(clippy::redundant_closure)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn run_blocks_avx2<K: BlockKernel>(kernel: K) -> K::Outcome {
        kernel.run(
            |block| avx2::classify(block),
            |starts, offset, room| avx2::spread(starts, offset, room),
            |line, key| avx2::find_in_line(line, key),
        )
    }

    #[allow(clippy::redundant_closure)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
    fn run_blocks_avx512<K: BlockKernel>(kernel: K) -> K::Outcome {
        kernel.run(
            |block| avx512::classify(block),
            |starts, offset, room| avx512::spread(starts, offset, room),
            |line, key| avx512::find_in_line(line, key),
        )
    }

    #[allow(clippy::redundant_closure)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
    fn recall_avx512(
        memo: &Memo,
        batch: &Batch,
        window: &Window,
        rare: &MissMask,
        misses: &mut Misses,
    ) -> usize {
        recall(memo, batch, window, rare, misses, |line, key| avx512::find_in_line(line, key))
    }

    #[allow(clippy::redundant_closure)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn recall_avx2(
        memo: &Memo,
        batch: &Batch,
        window: &Window,
        rare: &MissMask,
        misses: &mut Misses,
    ) -> usize {
        recall(memo, batch, window, rare, misses, |line, key| avx2::find_in_line(line, key))
    }
}
