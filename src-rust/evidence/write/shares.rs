//! The share of each section of a page, by the size of the page.

use super::item::Share;

/// Shares of a page of 500, 1,000, 2,000 and 4,000 tokens.
pub(super) const SHARES: [(Share, [usize; 4]); 10] = [
    (Share::Request, [100, 160, 280, 450]),
    (Share::Task, [60, 100, 250, 600]),
    (Share::Rules, [120, 220, 450, 900]),
    (Share::State, [40, 80, 150, 250]),
    (Share::Done, [20, 30, 100, 200]),
    (Share::Open, [40, 80, 150, 300]),
    (Share::Next, [50, 120, 250, 450]),
    (Share::Files, [35, 120, 200, 450]),
    (Share::Commands, [0, 30, 50, 100]),
    (Share::Names, [15, 20, 50, 150]),
];
const SIZES: [usize; 4] = [500, 1_000, 2_000, 4_000];
/// The share of a section in a page of `max_tokens`.
pub(super) fn share(of: Share, max_tokens: usize) -> usize {
    let Some((_, row)) = SHARES.iter().find(|(share, _)| *share == of) else { return 0 };
    let above = SIZES.iter().position(|size| *size >= max_tokens);
    match above {
        Some(0) => row[0] * max_tokens / SIZES[0],
        Some(at) => {
            let (low, high) = (SIZES[at - 1], SIZES[at]);
            row[at - 1] + (row[at].saturating_sub(row[at - 1])) * (max_tokens - low) / (high - low)
        }
        None => row[3].saturating_mul(max_tokens) / SIZES[3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_table() {
        assert_eq!(share(Share::Request, 500), 100);
        assert_eq!(share(Share::Rules, 1_500), 335);
        assert_eq!(share(Share::Task, 8_000), 1_200);
        assert_eq!(share(Share::Open, 250), 20);
        for size in [500, 1_000, 2_000, 4_000] {
            let sum: usize = SHARES.iter().map(|(of, _)| share(*of, size)).sum();
            assert!(sum <= size, "{sum} of {size}");
        }
    }
}
