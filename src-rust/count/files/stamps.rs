//! The hash of a file that was hashed before, by what its file system says of it: a file that is the same is not read
//! again, neither in this process nor in the next.
//!
//! A stamp hashes device, inode, size, and the times of the last write and the last change. Every write sets the time
//! of change, and no call sets it back. A file that was changed in the last seconds has no stamp: where times are coarse,
//! a second write could have the same one. Nor has a file on a system without inodes: it is hashed each time.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;
use twox_hash::XxHash3_64;

use super::cache;

/// The hash of a file's content, and its size in bytes.
pub(super) type Hashed = (u128, usize);

/// File systems count in steps of two seconds at most.
#[cfg_attr(not(unix), expect(dead_code, reason = "a file has no stamp there"))]
const SETTLED: Duration = Duration::from_secs(3);

/// The files of this process by their stamps.
static KNOWN: RwLock<Option<FxHashMap<u128, Hashed>>> = RwLock::new(None);

/// The stamp of a file.
pub(super) fn of(file: &Path) -> Option<u128> {
    stamp(file, SystemTime::now())
}

#[cfg(unix)]
fn stamp(file: &Path, now: SystemTime) -> Option<u128> {
    use std::os::unix::fs::MetadataExt;

    let found = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    let seconds = Duration::from_secs(u64::try_from(found.ctime()).ok()?);
    let age = now.duration_since(SystemTime::UNIX_EPOCH + seconds).ok()?;
    let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()].map(i64::to_le_bytes);
    let place = [found.dev(), found.ino(), found.size()].map(u64::to_le_bytes);
    (age >= SETTLED).then(|| {
        twox_hash::XxHash3_128::oneshot([place.as_flattened(), times.as_flattened()].concat().as_slice())
    })
}

#[cfg(not(unix))]
fn stamp(_: &Path, _: SystemTime) -> Option<u128> {
    None
}

/// The hash of the file with this stamp, if this process or an earlier one has hashed it.
pub(super) fn find(stamp: u128) -> Option<Hashed> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.as_ref().and_then(|known| known.get(&stamp)) {
        return Some(*found);
    }
    drop(known);
    let found = decode(&std::fs::read(entry(stamp)?).ok()?)?;
    remember(stamp, found);
    Some(found)
}

/// Keeps the hash of the file with this stamp.
pub(super) fn keep(stamp: u128, hashed: Hashed) {
    remember(stamp, hashed);
    if hashed.1 >= cache::SHORTEST
        && let Some(entry) = entry(stamp)
    {
        // Without a place to write, the next process hashes the file again.
        let _ = cache::write(&entry, &encode(hashed));
    }
}

fn remember(stamp: u128, hashed: Hashed) {
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(stamp, hashed);
}

fn entry(stamp: u128) -> Option<PathBuf> {
    cache::path(&format!("{stamp:032x}.hash"))
}

fn encode((hash, size): Hashed) -> Vec<u8> {
    let mut entry = hash.to_le_bytes().to_vec();
    entry.extend((size as u64).to_le_bytes());
    entry.extend(XxHash3_64::oneshot(&entry).to_le_bytes());
    entry
}

fn decode(entry: &[u8]) -> Option<Hashed> {
    let (content, sum) = entry.split_last_chunk::<8>()?;
    let (hash, size) = content.split_first_chunk::<16>()?;
    let size = u64::from_le_bytes(size.try_into().ok()?);
    (XxHash3_64::oneshot(content) == u64::from_le_bytes(*sum))
        .then_some((u128::from_le_bytes(*hash), usize::try_from(size).ok()?))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_stamp_once_it_has_settled_and_another_after_every_write() {
        let file = std::env::temp_dir().join(format!("foldline-stamp-{}", std::process::id()));
        std::fs::write(&file, "one").unwrap();
        let later = SystemTime::now() + 2 * SETTLED;
        let written = std::fs::metadata(&file).unwrap().modified().unwrap();
        assert_eq!(stamp(&file, SystemTime::now()), None);
        let first = stamp(&file, later);
        assert!(first.is_some());
        assert_eq!(stamp(&file, later), first);

        // Of the same size, and with the time of the first write.
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(&file, "two").unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(written).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), written);
        let second = stamp(&file, later);
        assert!(second.is_some() && second != first);

        std::fs::remove_file(&file).unwrap();
        assert_eq!(stamp(&file, later), None);
        assert_eq!(stamp(&std::env::temp_dir(), later), None);
    }

    #[test]
    fn a_hash_is_found_again_and_a_damaged_entry_is_none() {
        let entry = encode((7, 1 << 20));
        assert_eq!(decode(&entry), Some((7, 1 << 20)));
        for at in 0..entry.len() {
            let mut damaged = entry.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "{at}");
            assert_eq!(decode(&entry[..at]), None, "{at}");
        }
        keep(u128::MAX, (5, 3));
        assert_eq!(find(u128::MAX), Some((5, 3)));
    }
}
